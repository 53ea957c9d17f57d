"""Write the signature of a CUDA runtime of which there is no archive, only a library that has it.

    python -m tools.generate.cudart_in_library ARCHIVE LIBRARY --release 13.4.24 --source TEXT

ARCHIVE is the ``libcudart_static.a`` of a neighbouring release.  Its functions are found in the
library in their order: a function is there if all bytes that a linker leaves alone are the same,
or differ by one constant wherever they differ (the place of a member of a structure that lost or
gained others).  What lies between two such functions is masked as a whole.

A public function is an entry only if more than its shape says so: the text of its own name, where
the archive's function refers to it, and the functions that it calls are those at the same places,
or those that another such function calls where the archive's two call the same.
With ``--shared``, the release's ``libcudart.so`` says so too: it has the names of its functions,
and what was not found by the archive is an entry if its code is in the block exactly once.
With ``--exports``, what is not there is named by that library instead of the archive: another
build may have other code, but the same functions.
Any contradiction is an error; a function that is not there is no entry, but named (``absent``).
The functions that the archive's other code calls when a library is loaded and closed (``quiet``)
are found by that code, which has to be there: the detour lets nothing else of the block run.
"""

# pyelftools has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import argparse
import bisect
import io
import re
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import capstone
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from tools.generate.cudart_signatures import (
    ANCHOR_BYTES,
    ANCHOR_STEP,
    NOPS,
    Block,
    SignatureError,
    members,
    merge,
    read_block,
    render,
)

_NEAR = 4  # anchors before and after a function whose distances are tried
_RELATIVE = (2, 4)  # R_X86_64_PC32, R_X86_64_PLT32
_RIP = 0x05  # of a ModR/M byte: an address relative to the next instruction
_LONG = 64  # bytes of a function that its code alone tells from others
_OUTSIDE = ".text."  # how the names of other code begin


@dataclass(frozen=True, slots=True)
class Reference:
    """A relative field of four bytes at ``at``, and what it refers to: a function of the block, or
    a text.  Offsets are those of the block."""

    at: int
    function: int | None
    text: bytes


@dataclass(frozen=True, slots=True)
class Outside:
    """Code that is not in the block, the places of its relative fields, and those of them that
    refer to functions of the block: (place, function)."""

    text: bytes
    fields: tuple[int, ...]
    targets: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """A runtime's block, the offset and length of each function, and what the code refers to."""

    block: Block
    functions: tuple[tuple[int, int], ...]
    references: tuple[Reference, ...]
    outside: tuple[Outside, ...] = ()


def read_archive(data: bytes) -> Archive:
    """The runtime of an archive; `SignatureError` where it is otherwise than expected."""
    block = read_block(data)
    elf = ELFFile(io.BytesIO(next(member for _, member in members(data))))
    index = elf.get_section_index(".text")
    tables = [t for t in elf.iter_sections() if isinstance(t, SymbolTableSection)]
    functions = {
        s["st_value"]: s["st_size"]
        for s in tables[0].iter_symbols()
        if s["st_info"]["type"] == "STT_FUNC" and s["st_shndx"] == index and s["st_size"]
    }
    references: list[Reference] = []
    outside: list[Outside] = []
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection):
            continue
        of = elf.get_section(section["sh_info"])
        if of.name.startswith(_OUTSIDE):
            fields: list[int] = []
            targets: list[tuple[int, int]] = []
            for row in section.iter_relocations():
                symbol = tables[0].get_symbol(row["r_info_sym"])
                fields.append(row["r_offset"])
                if symbol["st_shndx"] == index:
                    targets.append((row["r_offset"], symbol["st_value"] + row["r_addend"] + 4))
            if targets:
                outside.append(Outside(of.data(), tuple(fields), tuple(targets)))
        if section["sh_info"] != index:
            continue
        for row in section.iter_relocations():
            if row["r_info_type"] not in _RELATIVE:
                continue
            symbol = tables[0].get_symbol(row["r_info_sym"])
            place = symbol["st_value"] + row["r_addend"] + 4
            if symbol["st_shndx"] == index and place in functions:
                references.append(Reference(row["r_offset"], place, b""))
            elif symbol["st_info"]["type"] == "STT_SECTION":
                text = elf.get_section(symbol["st_shndx"]).data()[place : place + 64]
                references.append(Reference(row["r_offset"], None, text.split(b"\0")[0]))
    return Archive(block, tuple(sorted(functions.items())), tuple(references), tuple(outside))


def kept_bytes(block: Block) -> bytes:
    """1 for each byte that a linker leaves alone, else 0."""
    kept = bytearray(b"\x01" * len(block.text))
    for start, end in block.masks:
        kept[start:end] = bytes(end - start)
    return bytes(kept)


def common_windows(block: Block, kept: bytes, code: bytes) -> list[tuple[int, int]]:
    """Windows that are once in the block and in the code: the longest row of (offset in the block,
    place in the code) in which both grow."""
    windows: dict[bytes, list[int]] = defaultdict(list)
    for at in range(0, len(block.text) - ANCHOR_BYTES, ANCHOR_STEP):
        if all(kept[at : at + ANCHOR_BYTES]):
            windows[block.text[at : at + ANCHOR_BYTES]].append(at)
    found: dict[int, list[int]] = defaultdict(list)
    for place in range(0, len(code) - ANCHOR_BYTES, ANCHOR_STEP):
        offsets = windows.get(code[place : place + ANCHOR_BYTES], ())
        if len(offsets) == 1:
            found[offsets[0]].append(place)
    pairs = sorted((at, places[0]) for at, places in found.items() if len(places) == 1)
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for n, (_, place) in enumerate(pairs):
        k = bisect.bisect_left(ends, place)
        ends[k:], last[k:] = [place, *ends[k + 1 :]], [n, *last[k + 1 :]]
        before.append(last[k - 1] if k else -1)
    row: list[tuple[int, int]] = []
    n = last[-1] if last else -1
    while n >= 0:
        row.append(pairs[n])
        n = before[n]
    return row[::-1]


def steps_between(ours: bytes, theirs: bytes, kept: bytes) -> list[int]:
    """How far each kept byte that differs is from ours, as a signed byte, without carries."""
    steps: list[int] = []
    before = -2
    for n, (a, b, keep) in enumerate(zip(ours, theirs, kept, strict=True)):
        if keep and a != b:
            step = ((b - a + 128) & 0xFF) - 128
            if before != n - 1 or abs(step) != 1:
                steps.append(step)
            before = n
    return steps


def place_functions(archive: Archive, code: bytes) -> dict[int, int]:
    """The place in the code of each function that is there, by its offset in the block."""
    text, kept = archive.block.text, kept_bytes(archive.block)
    anchors = common_windows(archive.block, kept, code)
    placed: dict[int, int] = {}
    for start, size in archive.functions:
        near = bisect.bisect_left(anchors, (start, 0))
        distances = {p - at for at, p in anchors[max(0, near - _NEAR) : near + _NEAR]}
        fits: list[tuple[int, int]] = []
        for distance in distances:
            if not 0 <= start + distance <= len(code) - size:
                continue
            end = start + size
            there = code[start + distance : end + distance]
            steps = steps_between(text[start:end], there, kept[start:end])
            if len(set(steps)) <= 1 and len(steps) * 8 <= size:
                fits.append((len(steps), start + distance))
        if fits and [f[0] for f in sorted(fits)].count(min(fits)[0]) == 1:
            placed[start] = min(fits)[1]
    ordered = sorted(placed.items())
    if any(a[1] >= b[1] for a, b in pairwise(ordered)):
        raise SignatureError("the functions are in another order")
    return placed


def confirmed(archive: Archive, placed: dict[int, int], code: bytes, file: bytes) -> set[int]:
    """Entries whose references say that they are what their shape says.  ``file`` is the library,
    whose first byte and ``code``'s are at the same address.

    Raises:
        SignatureError: a reference is to another text or function.
    """
    starts = [start for start, _ in archive.functions]
    sizes = dict(archive.functions)
    names = dict(archive.block.entries)
    sure: set[int] = set()
    calls: dict[int, dict[int, int]] = defaultdict(dict)  # of what has no place: caller, target
    for reference in archive.references:
        start = starts[bisect.bisect_right(starts, reference.at) - 1]
        if start not in placed or reference.at >= start + sizes[start]:
            continue
        at = reference.at - start + placed[start]
        target = at + 4 + int.from_bytes(code[at : at + 4], "little", signed=True)
        name = names.get(start, "").removesuffix("_ptsz").removesuffix("_ptds").encode()
        if reference.function is not None:
            if reference.function not in placed:
                before = calls[reference.function].setdefault(start, target)
                if before != target:
                    raise SignatureError(f"{names.get(start, hex(start))} calls two functions")
                continue
            if placed[reference.function] != target:
                raise SignatureError(f"{names.get(start, hex(start))} calls another function")
            sure.add(start)
        elif name and reference.text.startswith(name):
            if file[target : target + len(reference.text) + 1] != reference.text + b"\0":
                raise SignatureError(f"{name.decode()} names itself otherwise")
            sure.add(start)
    for callers in calls.values():
        known = sure & callers.keys()
        targets = {callers[start] for start in known}
        if len(targets) > 1:
            raise SignatureError("functions that call one function in the archive call several")
        sure |= {start for start, target in callers.items() if target in targets}
    return sure & names.keys()


def quiet_places(archive: Archive, placed: dict[int, int], code: bytes, ends: range) -> set[int]:
    """Places of what the code outside of the block refers to; ``ends`` is where the block is.

    Raises:
        SignatureError: that code is not there, or at several places that disagree.
    """
    places: set[int] = set()
    for part in archive.outside:
        found: set[tuple[int, ...]] = set()
        for match in re.finditer(pattern_of(part.text, part.fields), code):
            there: list[int] = []
            for field, function in part.targets:
                end = match.start() + field + 4
                place = end + int.from_bytes(code[end - 4 : end], "little", signed=True)
                if place in ends and placed.get(function, place) == place:
                    there.append(place)
            if len(there) == len(part.targets):
                found.add(tuple(there))
        if len(found) != 1:
            what = ", ".join(hex(function) for _, function in part.targets)
            raise SignatureError(f"{len(found)} places have the code that refers to {what}")
        places.update(*found)
    return places


def exported(shared: bytes) -> dict[str, bytes]:
    """The code of each function that a shared runtime exports."""
    elf = ELFFile(io.BytesIO(shared))
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        raise SignatureError("the shared runtime exports nothing")
    bodies: dict[str, bytes] = {}
    for symbol in table.iter_symbols():
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF":
            place = next(elf.address_offsets(symbol["st_value"], symbol["st_size"]), None)
            if place is None:
                raise SignatureError(f"{symbol.name} is outside the shared runtime")
            bodies[symbol.name] = shared[place : place + symbol["st_size"]]
    return bodies


def same_names(archive: Archive, block: Block, bodies: dict[str, bytes]) -> tuple[str, ...]:
    """Entries of ``block`` whose bodies say nothing: ``bodies`` has none of the name and length.

    Raises:
        SignatureError: a body of the same name and length is another function's.
    """
    kept = kept_bytes(archive.block)
    starts = {name: start for start, name in archive.block.entries}
    sizes = dict(archive.functions)
    unknown: list[str] = []
    for at, name in block.entries:
        start, size = starts[name], sizes[starts[name]]
        body = bodies.get(name, b"")
        if len(body) != size:
            unknown.append(name)
        elif not _alike(block.text[at : at + size], body, kept[start : start + size]):
            raise SignatureError(f"{name} is another function in the shared runtime")
    return tuple(unknown)


def _alike(ours: bytes, theirs: bytes, kept: bytes) -> bool:
    """The same code, but for one constant in the places of members."""
    steps = steps_between(ours, theirs, kept)
    return len(set(steps)) <= 1 and len(steps) * 8 <= len(ours)


def relative_fields(body: bytes) -> tuple[int, ...]:
    """Where a function has a distance of four bytes, to data or to another function."""
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    found: list[int] = []
    for instruction in decoder.disasm(body, 0):
        encoding = instruction.encoding
        if encoding.disp_offset and instruction.modrm & 0xC7 == _RIP:
            found.append(instruction.address + encoding.disp_offset)
        elif instruction.group(capstone.CS_GRP_BRANCH_RELATIVE) and encoding.imm_size == 4:
            found.append(instruction.address + encoding.imm_offset)
    return tuple(found)


def pattern_of(code: bytes, fields: tuple[int, ...]) -> bytes:
    """A regular expression for the code, whatever its fields hold."""
    pattern, at = b"(?s)", 0
    for field in fields:
        pattern += re.escape(code[at:field]) + b".{4}"
        at = field + 4
    return pattern + re.escape(code[at:])


def with_bodies(block: Block, bodies: dict[str, bytes]) -> Block:
    """The block with those of its absent functions whose code it has once, but for relative
    fields, as the shared runtime has it under their names."""
    for name in block.absent:
        body = bodies.get(name, b"")
        if len(body) < _LONG:
            continue
        places = list(re.finditer(pattern_of(body, relative_fields(body)), block.text))
        if len(places) == 1 and places[0].start() % ANCHOR_STEP == 0:
            block = unmasked(block, name, places[0].start(), body)
    return block


def unmasked(block: Block, name: str, start: int, body: bytes) -> Block:
    """The block with one more entry, of which all but the relative fields is known."""
    end = start + len(body)
    outer = [(low, min(high, start)) for low, high in block.masks if low < start]
    outer += [(max(low, end), high) for low, high in block.masks if high > end]
    inner = ((start + at, start + at + 4) for at in relative_fields(body))
    return replace(
        block,
        entries=tuple(sorted((*block.entries, (start, name)))),
        masks=merge([*outer, *inner]),
        absent=tuple(n for n in block.absent if n != name),
    )


def agreed(placed: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    """Those that are at the same places of another library's runtime.  What else is near may make
    a function that looks like another one be found in one library alone."""
    common = sorted(placed.keys() & other.keys())
    distances = [other[start] - placed[start] for start in common]
    most = max(set(distances), key=distances.count) if distances else 0
    return {start: placed[start] for start in common if other[start] - placed[start] == most}


def derive(
    archive: Archive, code: bytes, file: bytes, others: Sequence[bytes] = ()
) -> tuple[Block, tuple[str, ...]]:
    """The runtime in ``code``, and the public functions of the archive that it does not have.
    ``others`` are the code of more libraries, which have to agree."""
    placed = place_functions(archive, code)
    for other in others:
        placed = agreed(placed, place_functions(archive, other))
    if not placed:
        raise SignatureError("none of the archive's functions is there")
    entries = confirmed(archive, placed, code, file)
    public = len(archive.block.entries)
    if len(entries) * 2 <= public:
        raise SignatureError(f"only {len(entries)} of {public} public functions are there")
    block = span_of(archive, placed)
    quiet = quiet_places(archive, placed, code, block)
    found = lay_out(archive, placed, entries, quiet, code)
    return found, found.absent


def span_of(archive: Archive, placed: dict[int, int]) -> range:
    """From the first function that was found to the end of the last one."""
    last = max(placed)
    return range(placed[min(placed)], placed[last] + dict(archive.functions)[last])


def lay_out(
    archive: Archive, placed: dict[int, int], entries: set[int], quiet: set[int], code: bytes
) -> Block:
    """The block in ``code``: what was found of the archive, with the archive's masks; the rest is
    masked."""
    order = sorted(placed)
    sizes = dict(archive.functions)
    block = span_of(archive, placed)
    first = block.start
    masks: list[tuple[int, int]] = []
    end = first
    for start in order:
        there = placed[start]
        gap = code[end:there]
        if any(b not in NOPS for b in gap) or (any(gap) and len(gap) >= ANCHOR_STEP):
            masks.append((end, there))  # other functions; the rest is padding
        end = there + sizes[start]
        index = bisect.bisect_left(archive.block.masks, (start, 0))
        for low, high in archive.block.masks[max(0, index - 1) :]:
            if low >= start + sizes[start]:
                break
            low, high = max(low, start), min(high, start + sizes[start])
            if low < high:  # the first one may end before
                masks.append((low - start + there, high - start + there))
    names = dict(archive.block.entries)
    return Block(
        code[first : block.stop],
        merge((max(0, low - first), high - first) for low, high in masks),
        tuple(sorted((placed[start] - first, names[start]) for start in entries)),
        tuple(sorted(at - first for at in quiet)),
        tuple(names[start] for start in sorted(names) if start not in entries),
    )


def executable(library: bytes) -> bytes:
    """The segment with code; it and the file have the same first byte."""
    for segment in ELFFile(io.BytesIO(library)).iter_segments():
        if segment["p_type"] == "PT_LOAD" and segment["p_flags"] & 1:
            if segment["p_offset"] != segment["p_vaddr"] or segment["p_offset"]:
                raise SignatureError("the code is not at the file's start")
            return library[: segment["p_filesz"]]
    raise SignatureError("no segment with code")


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("archive", type=Path, help="libcudart_static.a of a neighbouring release")
    parser.add_argument("library", type=Path, help="a library that has the runtime")
    parser.add_argument("--shared", type=Path, help="the release's libcudart.so, as a witness")
    parser.add_argument("--also", type=Path, nargs="+", default=[], help="more such libraries")
    parser.add_argument("--exports", type=Path, help="a libcudart.so with the release's functions")
    parser.add_argument("--release", required=True, help="what the library was built with")
    parser.add_argument("--source", required=True, help="where the library is from")
    parser.add_argument("-o", "--output", type=Path, default=Path("runtime_shim/signatures"))
    args = parser.parse_args()
    try:
        library = args.library.read_bytes()
        archive = read_archive(args.archive.read_bytes())
        others = [executable(path.read_bytes()) for path in args.also]
        block, absent = derive(archive, executable(library), library, others)
        bodies = exported(args.shared.read_bytes()) if args.shared else {}
        unknown = same_names(archive, block, bodies)
        block = with_bodies(block, bodies)
        added = sorted({*absent} - {*block.absent})
        if args.exports:
            known = {name for _, name in block.entries}
            public = exported(args.exports.read_bytes())
            more = {n for n in public if n.startswith(("cuda", "__cuda"))} - known
            block = replace(block, absent=tuple(sorted(more)))
        text = render(block, args.release, args.source)
    except (SignatureError, OSError) as error:
        print(f"cudart_in_library: {error}", file=sys.stderr)
        return 2
    path = args.output / f"cudart-{args.release}.sig"
    text = text.replace("cudart_signatures.py", "cudart_in_library.py", 1)
    path.write_text(text, encoding="ascii")
    masked = sum(high - low for low, high in block.masks)
    print(f"{path}: {len(block.entries)} entries, {masked} of {len(block.text)} bytes masked")
    if args.shared:
        print(f"{len(block.entries) - len(unknown)} have the shared runtime's code of their name")
        print("not of the same length there:", *unknown)
    if added:
        print("found by the shared runtime:", *added)
    if block.absent:
        print("not there:", *block.absent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
