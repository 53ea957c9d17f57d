"""Write the signature of a statically linked CUDA runtime: what finds it in a stripped program.

    make_signatures.py ARCHIVE --release "13.0.48 13.0.88" [--source TEXT] [-o DIRECTORY]
    make_signatures.py --names 13 LIBRARY... > runtime_shim/native/cudart/names_13.inc

ARCHIVE is a ``libcudart_static.a``.  Its one member has one ``.text`` block, which the linker
copies as a whole and changes only where relocations lie.  The signature holds facts about that
block, never its bytes: its length, where its public functions start, which bytes the linker may
change, and hashes.

    anchor OFFSET HASH   hash of 32 unchanged bytes at a multiple of 16: what the search looks for
    digest HASH          BLAKE2b-256 of the whole block with the changeable bytes as zeros
    mask BASE64          those bytes, as pairs (bytes kept, bytes masked) of LEB128 numbers
    entry OFFSET NAME    a public function
    quiet OFFSET         one that the runtime's start or end calls, which does nothing instead
    absent NAME          a public function of a neighbouring release that was not found

The last two are in signatures by ``cudart_in_library.py`` alone.  Where there are any, the detour
overwrites the whole block, so a function that is no entry cannot run.
"""

# pyelftools has no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import re
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_RELOC_TYPE_x64
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import SymbolTableSection

ANCHOR_BYTES = 32
ANCHOR_STEP = 16
INTERNAL = re.compile(r"__cudart\d")
"""Functions of 11 that are not public."""
JUMP_BYTES = 5
"""The bytes that the detour writes over an entry: a near jump."""

MASKS = {
    # type: (bytes masked before the field, after its start), the field of four bytes included.
    "R_X86_64_PC32": (0, 4),
    "R_X86_64_PLT32": (3, 4),  # __tls_get_addr's call is rewritten together with its prefix
    "R_X86_64_GOTPCREL": (3, 4),
    "R_X86_64_GOTPCRELX": (3, 4),  # call or jump through the GOT becomes a direct one
    "R_X86_64_REX_GOTPCRELX": (3, 4),  # mov from the GOT becomes lea or mov of a constant
    "R_X86_64_TLSLD": (3, 16),  # lea and call become one load of the thread pointer
    "R_X86_64_TLSGD": (4, 16),
    "R_X86_64_GOTTPOFF": (3, 4),
    "R_X86_64_DTPOFF32": (0, 4),
    "R_X86_64_TPOFF32": (0, 4),
    "R_X86_64_32": (0, 4),
    "R_X86_64_32S": (0, 4),
    "R_X86_64_64": (0, 8),
    "R_X86_64_NONE": (0, 0),
}
NOPS = (0x90, 0x66, 0x0F, 0x1F, 0x2E, 0x40, 0x44, 0x80, 0x84, 0x00, 0xCC)
"""Bytes that compilers pad with, between functions."""


class SignatureError(ValueError):
    """The archive has an unexpected layout."""


@dataclass(frozen=True, slots=True)
class Block:
    """The runtime's machine code: ``text`` with its relocations' masks and its functions."""

    text: bytes
    masks: tuple[tuple[int, int], ...]  # (start, end), sorted and apart
    entries: tuple[tuple[int, str], ...]  # (offset, name), public functions by offset
    quiet: tuple[int, ...] = ()  # offsets
    absent: tuple[str, ...] = ()  # names

    def masked(self) -> bytes:
        """The text with every byte that a linker may change as zero."""
        out = bytearray(self.text)
        for start, end in self.masks:
            out[start:end] = bytes(end - start)
        return bytes(out)


def members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    """The members of a System V archive, without its symbol and name tables."""
    if not archive.startswith(b"!<arch>\n"):
        raise SignatureError("not an archive")
    at = 8
    while at + 60 <= len(archive):
        name = archive[at : at + 16].decode("ascii", "replace").rstrip()
        size = int(archive[at + 48 : at + 58])
        at += 60
        if name not in ("/", "//", "/SYM64/"):
            yield name.rstrip("/"), archive[at : at + size]
        at += size + (size & 1)


def merge(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Sorted ranges without overlap or contact."""
    out: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if out and start <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((start, end))
    return tuple(out)


def relocation_masks(elf: ELFFile, index: int, size: int) -> tuple[tuple[int, int], ...]:
    """The ranges of section ``index`` that relocations, and the relaxations they allow, change."""
    names: dict[int, str] = {v: k for k, v in ENUM_RELOC_TYPE_x64.items() if k != "_default_"}
    ranges: list[tuple[int, int]] = []
    for section in elf.iter_sections():
        if not isinstance(section, RelocationSection) or section["sh_info"] != index:
            continue
        for relocation in section.iter_relocations():
            kind = names.get(relocation["r_info_type"], str(relocation["r_info_type"]))
            if kind not in MASKS:
                raise SignatureError(f"relocation {kind} is not known")
            before, after = MASKS[kind]
            offset = relocation["r_offset"]
            ranges.append((max(0, offset - before), min(size, offset + after)))
    return merge(ranges)


def read_block(archive: bytes) -> Block:
    """The one ``.text`` of the archive's one member; `SignatureError` where it is otherwise."""
    objects = list(members(archive))
    if len(objects) != 1:
        raise SignatureError(f"{len(objects)} members, not one")
    elf = ELFFile(io.BytesIO(objects[0][1]))
    index = elf.get_section_index(".text")
    section = elf.get_section(index) if index is not None else None
    if index is None or section is None or section["sh_addralign"] % ANCHOR_STEP:
        raise SignatureError("no .text aligned to 16 bytes")
    text = section.data()
    starts: set[int] = set()
    public: list[tuple[int, int, str]] = []
    for table in elf.iter_sections():
        if not isinstance(table, SymbolTableSection):
            continue
        for symbol in table.iter_symbols():
            if symbol["st_info"]["type"] != "STT_FUNC" or symbol["st_shndx"] == "SHN_UNDEF":
                continue
            if symbol["st_shndx"] == index:
                starts.add(symbol["st_value"])
            if not symbol.name.startswith(("cuda", "__cuda")) or INTERNAL.match(symbol.name):
                continue
            if symbol["st_shndx"] != index:
                raise SignatureError(f"{symbol.name} is outside .text")
            public.append((symbol["st_value"], symbol["st_size"], symbol.name))
    check_room(text, sorted(starts), public)
    return Block(
        text,
        relocation_masks(elf, index, len(text)),
        tuple(sorted((offset, name) for offset, _, name in public)),
    )


def check_room(text: bytes, starts: list[int], public: list[tuple[int, int, str]]) -> None:
    """Every public function has room for a jump: its own bytes, or padding before the next one."""
    following = dict(zip(starts, [*starts[1:], len(text)], strict=True))
    for offset, size, name in public:
        if size >= JUMP_BYTES:
            continue
        padding = text[offset + size : offset + JUMP_BYTES]
        if following[offset] < offset + JUMP_BYTES or any(b not in NOPS for b in padding):
            raise SignatureError(f"{name} has no room for a jump")


def window_hash(data: bytes) -> int:
    """The search's hash of 32 bytes, as runtime_shim/native/preload/signature.cpp computes it."""
    value = 0
    for (word,) in struct.iter_unpack("<Q", data):
        value = ((value ^ word) * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
        value ^= value >> 29
    return value


def choose_anchor(block: Block) -> tuple[int, int]:
    """(offset, hash) of the first aligned window that is unmasked, varied and unique."""
    kept = bytearray(b"\x01" * len(block.text))
    for start, end in block.masks:
        kept[start:end] = bytes(end - start)
    hashes: dict[int, list[int]] = {}
    for offset in range(0, len(block.text) - ANCHOR_BYTES, ANCHOR_STEP):
        value = window_hash(block.text[offset : offset + ANCHOR_BYTES])
        hashes.setdefault(value, []).append(offset)
    for value, offsets in hashes.items():
        window = slice(offsets[0], offsets[0] + ANCHOR_BYTES)
        # 20 different bytes: no padding and no table of alike instructions.
        if len(offsets) == 1 and all(kept[window]) and len(set(block.text[window])) >= 20:
            return offsets[0], value
    raise SignatureError("no window fits as an anchor")


def leb128(value: int) -> bytes:
    """An unsigned number, seven bits per byte, low bits first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_masks(masks: tuple[tuple[int, int], ...]) -> str:
    """The mask ranges as base64 of pairs (bytes kept since the last range, bytes masked)."""
    out = bytearray()
    at = 0
    for start, end in masks:
        out += leb128(start - at) + leb128(end - start)
        at = end
    return base64.b64encode(bytes(out)).decode("ascii")


def render(block: Block, release: str, source: str) -> str:
    """The signature file's text."""
    offset, value = choose_anchor(block)
    lines = [
        "# Generated by tools/generate/cudart_signatures.py; do not edit.",
        f"# {source}",
        f"release {release}",
        f"length {len(block.text):x}",
        f"anchor {offset:x} {value:016x}",
        f"digest {hashlib.blake2b(block.masked(), digest_size=32).hexdigest()}",
        f"mask {encode_masks(block.masks)}",
        *(f"entry {at:x} {name}" for at, name in block.entries),
        *(f"quiet {at:x}" for at in block.quiet),
        *(f"absent {name}" for name in block.absent),
        "end",
    ]
    return "\n".join(lines) + "\n"


def render_names(major: str, libraries: list[Path]) -> str:
    """The X-macro list of every name that the given releases of one shared runtime export."""
    names: set[str] = set()
    for path in libraries:
        with path.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".dynsym")
            if not isinstance(table, SymbolTableSection):
                raise SignatureError(f"{path} exports nothing")
            names.update(
                s.name
                for s in table.iter_symbols()
                if s["st_shndx"] != "SHN_UNDEF" and s["st_info"]["type"] == "STT_FUNC"
            )
    head = (
        f"// Every name that a public release of libcudart.so.{major} exports; stubs.cpp gives each"
        " a stand-in.\n// Generated by tools/generate/cudart_signatures.py --names; do not edit.\n"
    )
    wanted = sorted(n for n in names if n.startswith(("cuda", "__cuda")))
    return head + "".join(f"SX_NAME({name})\n" for name in wanted)


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", type=Path, nargs="+", help="an archive, or libraries with --names")
    parser.add_argument("--release", help="the versions that have this runtime, oldest first")
    parser.add_argument("--source", default="libcudart_static.a", help="where the archive is from")
    parser.add_argument("--names", metavar="MAJOR", help="write the list of exported names instead")
    parser.add_argument("-o", "--output", type=Path, default=Path("runtime_shim/signatures"))
    args = parser.parse_args()
    try:
        if args.names:
            sys.stdout.write(render_names(args.names, args.files))
            return 0
        if not args.release or len(args.files) != 1:
            parser.error("one archive and its --release are needed")
        text = render(read_block(args.files[0].read_bytes()), args.release, args.source)
    except (SignatureError, OSError) as error:
        print(f"make_signatures: {error}", file=sys.stderr)
        return 2
    path = args.output / f"cudart-{args.release.split()[0]}.sig"
    path.write_text(text, encoding="ascii")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
