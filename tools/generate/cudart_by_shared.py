"""Write the signature of a CUDA runtime of which there is a shared library, but no archive.

    python -m tools.generate.cudart_by_shared SHARED LIBRARY --release 12.1 --source TEXT

SHARED is the release's ``libcudart.so``: it has the functions that ``libcudart_static.a`` has,
compiled alike and in nearly the same order, and the names of the public ones.  LIBRARY is one that
has the runtime inside.  `cudart_in_library` finds the functions; what an archive's symbols and
relocations say is read from elsewhere:

* where functions begin and end, from ``.eh_frame``, in both files: a function that is not exactly
  where the library has one is not that function;
* the bytes that a linker changes: the distances in instructions, the codes of instructions that
  it may replace for them, and calls for the address of a thread's variable;
* what a function refers to, from these distances;
* what runs when the library is loaded and closed (``quiet``), from ``.init_array`` and
  ``.fini_array``.  In a stretch with a public function that was not found nothing is taken for it.

A public function that was compiled otherwise, the only one of a stretch between functions that were
found, is an entry if one function there refers to all functions that it alone of the stretch refers
to in the shared runtime, no other one to any of them, it has the same place in the row, from the
stretch's start or its end, and no other one is called by code outside of the runtime.  Where the
library has nothing between the two functions, its release does not have the public one.
"""

# pyelftools has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import argparse
import bisect
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import capstone
import numpy as np
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

from tools.generate.cudart_in_library import (
    Archive,
    Reference,
    agreed,
    confirmed,
    lay_out,
    place_functions,
    relative_fields,
    span_of,
    unmasked,
)
from tools.generate.cudart_signatures import (
    Block,
    SignatureError,
    check_room,
    merge,
    render,
)

_CALL = 0xE8
_PREFIXES, _MOVES = (0x48, 0x4C), (0x8B, 0x8D)  # mov from the GOT, and the lea that replaces it
_LOCAL, _GLOBAL = 12, 16  # bytes that load a thread variable's address, by module and by variable
_GLOBAL_CALL = bytes.fromhex("666648e8")
_SPARE = 20  # of so many functions, one may have gone or come, and two anyway
_TEXT = 64  # bytes of a text that are compared


@dataclass(frozen=True, slots=True)
class Library:
    """A library or program as it is loaded.  An address is an offset in ``image``."""

    image: bytes  # what is not writable
    code: range  # addresses of .text
    functions: dict[int, int]  # lengths, by address
    starts: tuple[int, ...]  # what runs when it is loaded and closed
    elf: ELFFile


def read_library(data: bytes) -> Library:
    """`SignatureError` where the file has no code, or does not say where functions begin."""
    elf = ELFFile(io.BytesIO(data))
    text = elf.get_section_by_name(".text")
    frames = elf.get_section_by_name(".eh_frame")
    if text is None or frames is None:
        raise SignatureError("no .text and .eh_frame")
    segments = [s for s in elf.iter_segments("PT_LOAD") if not s["p_flags"] & 2]
    image = bytearray(max(s["p_vaddr"] + s["p_filesz"] for s in segments))
    for s in segments:
        start, at = s["p_vaddr"], s["p_offset"]
        image[start : start + s["p_filesz"]] = data[at : at + s["p_filesz"]]
    code = range(text["sh_addr"], text["sh_addr"] + text["sh_size"])
    functions = {
        entry["initial_location"]: entry["address_range"]
        for entry in elf.get_dwarf_info().EH_CFI_entries()
        if isinstance(entry, FDE) and entry["initial_location"] in code
    }
    return Library(bytes(image), code, functions, tuple(_starts(elf)), elf)


def _starts(elf: ELFFile) -> Iterator[int]:
    """What .init_array and .fini_array hold: by relocations, or as it is."""
    for name in (".init_array", ".fini_array"):
        section = elf.get_section_by_name(name)
        if section is None:
            continue
        values = np.frombuffer(section.data(), "<u8")
        yield from (int(value) for value in values if value)
        place = range(section["sh_addr"], section["sh_addr"] + section["sh_size"])
        for rows in elf.iter_sections():
            if isinstance(rows, RelocationSection):
                held = (r for r in rows.iter_relocations() if r["r_offset"] in place)
                yield from (row["r_addend"] for row in held)


def read_shared(data: bytes) -> Archive:
    """The functions of a ``libcudart.so``, as an archive would give them.

    Raises:
        SignatureError: an exported function is not one of ``.eh_frame``, or has two names.
    """
    library = read_library(data)
    functions, image = library.functions, library.image
    order = [at for at in sorted(functions) if at not in library.starts]
    first = order[0]
    masks: list[tuple[int, int]] = []
    references: list[Reference] = []
    thread = _thread_address(library)
    room = sum(s["p_memsz"] for s in library.elf.iter_segments("PT_TLS"))
    for start in order:
        body = image[start : start + functions[start]]
        for field in relative_fields(body):
            at = start + field
            target = _target(image, at)
            before = 3 if field >= 3 and _may_be_replaced(body[field - 3 : field - 1]) else 0
            masks.append((at - before - first, at + 4 - first))
            if body[field - 1] == _CALL and target == thread:
                long = _GLOBAL if body[field - 4 : field] == _GLOBAL_CALL else _LOCAL
                masks.append((at + 4 - long - first, at + 4 - first))
                masks += ((n - first, n + 4 - first) for n in offsets_in(body, start, room))
            if target in functions and target not in library.starts:
                references.append(Reference(at - first, target - first, b""))
            elif target not in library.code and 0 <= target < len(image):
                text = image[target : target + _TEXT].split(b"\0")[0]
                references.append(Reference(at - first, None, text))
    names = _exported(library)
    for at, name in names:
        if at not in functions:
            raise SignatureError(f"{name} is no function of .eh_frame")
    if len({at for at, _ in names}) != len(names):
        raise SignatureError("a function has two names")
    block = Block(
        image[first : library.code.stop],
        merge(masks),
        tuple(sorted((at - first, name) for at, name in names)),
    )
    return Archive(block, tuple((at - first, functions[at]) for at in order), tuple(references))


def offsets_in(body: bytes, start: int, room: int) -> Iterator[int]:
    """Where a function at ``start`` has numbers of four bytes that may be places among a thread's
    variables, of which the runtime has ``room`` bytes: another library has variables of its own."""
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    for instruction in decoder.disasm(body, start):
        encoding = instruction.encoding
        for offset, size in (
            (encoding.disp_offset, encoding.disp_size),
            (encoding.imm_offset, encoding.imm_size),
        ):
            number = instruction.bytes[offset : offset + 4]
            if offset and size == 4 and int.from_bytes(number, "little") < room:
                yield instruction.address + offset


def _target(image: bytes, at: int) -> int:
    """What the distance at an address leads to."""
    return at + 4 + int.from_bytes(image[at : at + 4], "little", signed=True)


def _may_be_replaced(codes: bytes) -> bool:
    return codes[0] in _PREFIXES and codes[1] in _MOVES


def _exported(library: Library) -> list[tuple[int, str]]:
    """Addresses and names of the functions that a library exports."""
    table = library.elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        raise SignatureError("the shared runtime exports nothing")
    return [
        (s["st_value"], s.name)
        for s in table.iter_symbols()
        if s["st_info"]["type"] == "STT_FUNC" and s["st_shndx"] != "SHN_UNDEF"
    ]


def _thread_address(library: Library) -> int | None:
    """The stub by which a library calls __tls_get_addr."""
    stubs = library.elf.get_section_by_name(".plt")
    rows = library.elf.get_section_by_name(".rela.plt")
    if stubs is None or not isinstance(rows, RelocationSection):
        return None
    names = library.elf.get_section(rows["sh_link"])
    if not isinstance(names, SymbolTableSection):
        return None
    for n, row in enumerate(rows.iter_relocations()):
        if names.get_symbol(row["r_info_sym"]).name == "__tls_get_addr":
            return stubs["sh_addr"] + 16 * (n + 1)  # the first stub is the linker's own
    return None


def where_they_are(archive: Archive, library: Library) -> dict[int, int]:
    """`place_functions`, of what is exactly a function of the library's ``.eh_frame``."""
    code = library.image[: library.code.stop]
    sizes = dict(archive.functions)
    found = place_functions(archive, code)
    return {s: at for s, at in found.items() if library.functions.get(at) == sizes[s]}


def calls_from_outside(library: Library, block: range) -> set[int]:
    """The block's functions that code outside of it calls."""
    data = np.frombuffer(library.image[: library.code.stop], np.uint8)
    at = np.flatnonzero(data[library.code.start : -4] == _CALL) + library.code.start + 1
    at = at[(at < block.start) | (at >= block.stop)]
    distance = sum(data[at + n].astype(np.int64) << 8 * n for n in range(4))
    target = at + 4 + (distance - ((distance >> 31) << 32))
    inside = target[(target >= block.start) & (target < block.stop)]
    return {int(place) for place in inside} & library.functions.keys()


def stretches(
    archive: Archive, placed: dict[int, int], library: Library
) -> Iterator[tuple[list[int], list[int]]]:
    """Functions between two neighbours that were found: the archive's and the library's."""
    starts, there = [start for start, _ in archive.functions], sorted(library.functions)
    for (a, b), (c, d) in pairwise(sorted(placed.items())):
        ours = starts[bisect.bisect_right(starts, a) : bisect.bisect_left(starts, c)]
        theirs = there[bisect.bisect_right(there, b) : bisect.bisect_left(there, d)]
        if ours or theirs:
            yield ours, theirs


def by_elimination(archive: Archive, placed: dict[int, int], library: Library) -> dict[int, int]:
    """Public functions that were compiled otherwise, and where they have to be."""
    names = dict(archive.block.entries)
    refers = callees(archive, placed)
    outside = calls_from_outside(library, span_of(archive, placed))
    found: dict[int, int] = {}
    for ours, theirs in stretches(archive, placed, library):
        public = [start for start in ours if start in names]
        if len(public) != 1:
            continue
        own = refers[public[0]].difference(*(refers[start] for start in ours if start != public[0]))
        calls = [referred(library, at) & own for at in theirs]
        candidates = [n for n, called in enumerate(calls) if called]
        if len(candidates) != 1 or calls[candidates[0]] != own:
            continue
        n, k = ours.index(public[0]), candidates[0]
        if n != k and n - len(ours) != k - len(theirs):
            continue
        if {*outside} & {*theirs} <= {theirs[k]}:
            found[public[0]] = theirs[k]
    return found


def callees(archive: Archive, placed: dict[int, int]) -> dict[int, set[int]]:
    """Where the functions are that each function of the archive refers to, of those that were
    found."""
    starts = [start for start, _ in archive.functions]
    found: dict[int, set[int]] = {start: set() for start in starts}
    for reference in archive.references:
        if reference.function in placed:
            start = starts[bisect.bisect_right(starts, reference.at) - 1]
            found[start].add(placed[reference.function])
    return found


def referred(library: Library, start: int) -> set[int]:
    """What a function of the library refers to."""
    body = library.image[start : start + library.functions[start]]
    return {_target(library.image, start + field) for field in relative_fields(body)}


def run_at_start_and_end(
    archive: Archive, placed: dict[int, int], library: Library, entries: set[int]
) -> set[int]:
    """The block's functions that run when the library is loaded or closed, and are not public.

    Raises:
        SignatureError: one of them may be a public function that was not found.
    """
    block = span_of(archive, placed)
    names = {start for start, _ in archive.block.entries}
    open_ = {
        at
        for ours, theirs in stretches(archive, placed, library)
        if any(start in names and start not in entries for start in ours)
        for at in theirs
    }
    public = {placed[start] for start in entries if start in placed}
    quiet = {at for at in library.starts if at in block}
    done: set[int] = set()
    waiting = [at for at in library.starts if at not in block and at in library.functions]
    while waiting:
        start = waiting.pop()
        if start in done:
            continue
        done.add(start)
        targets = referred(library, start)
        inside = {at for at in targets if at in block and at in library.functions} - public
        quiet |= inside
        if inside:  # the runtime's own: what it refers to is, too
            waiting += [at for at in targets - inside - public if at in library.functions]
    if wrong := quiet & open_:
        raise SignatureError(f"what runs at the start may be public: {hex(min(wrong))}")
    return quiet


def derive(shared: bytes, libraries: Sequence[bytes]) -> tuple[Block, tuple[str, ...]]:
    """The runtime in the first library, and the public functions found by elimination.  The other
    libraries have to have the same one.

    Raises:
        SignatureError: less than half of the public functions are there, they contradict
        what they refer to, or other code lies between them.
    """
    archive = read_shared(shared)
    read = [read_library(data) for data in libraries]
    library = read[0]
    placed = where_they_are(archive, library)
    for other in read[1:]:
        placed = agreed(placed, where_they_are(archive, other))
    if not placed:
        raise SignatureError("none of the shared runtime's functions is there")
    code = library.image[: library.code.stop]
    entries = confirmed(archive, placed, code, library.image)
    count = len(archive.block.entries)
    if len(entries) * 2 <= count:
        raise SignatureError(f"only {len(entries)} of {count} public functions are there")
    block = span_of(archive, placed)
    ours = [start for start, _ in archive.functions if min(placed) <= start <= max(placed)]
    theirs = sum(at in block for at in library.functions)
    if abs(theirs - len(ours)) > 2 + len(ours) // _SPARE:
        raise SignatureError(f"{theirs} functions are where the shared runtime has {len(ours)}")
    more = by_elimination(archive, placed, library)
    quiet = run_at_start_and_end(archive, placed, library, entries | more.keys())
    quiet -= {*more.values()}
    found = lay_out(archive, placed, entries, quiet, code)
    names = dict(archive.block.entries)
    for start, at in sorted(more.items()):
        body = code[at : at + library.functions[at]]
        found = unmasked(found, names[start], at - block.start, body)
    empty = {
        names[start]
        for ours, theirs in stretches(archive, placed, library)
        if not theirs
        for start in ours
        if start in names
    }
    found = replace(found, absent=tuple(name for name in found.absent if name not in empty))
    starts = [at - block.start for at in sorted(library.functions) if at in block]
    public = [(at, library.functions[at + block.start], name) for at, name in found.entries]
    check_room(found.text, starts, public)
    return found, tuple(names[start] for start in sorted(more))


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("shared", type=Path, help="the release's libcudart.so")
    parser.add_argument("library", type=Path, help="a library that has the runtime")
    parser.add_argument("--also", type=Path, nargs="+", default=[], help="more such libraries")
    parser.add_argument("--release", required=True, help="the release, as doctor will say it")
    parser.add_argument("--source", required=True, help="where the files are from")
    parser.add_argument("-o", "--output", type=Path, default=Path("runtime_shim/signatures"))
    args = parser.parse_args()
    try:
        libraries = [path.read_bytes() for path in (args.library, *args.also)]
        block, eliminated = derive(args.shared.read_bytes(), libraries)
        text = render(block, args.release, args.source)
    except (SignatureError, OSError) as error:
        print(f"cudart_by_shared: {error}", file=sys.stderr)
        return 2
    path = args.output / f"cudart-{args.release}.sig"
    text = text.replace("cudart_signatures.py", "cudart_by_shared.py", 1)
    path.write_text(text, encoding="ascii")
    masked = sum(high - low for low, high in block.masks)
    print(f"{path}: {len(block.entries)} entries, {masked} of {len(block.text)} bytes masked")
    print("by elimination:", *eliminated)
    print("not there:", *block.absent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
