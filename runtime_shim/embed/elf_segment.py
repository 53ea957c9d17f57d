"""Adds a segment and needed libraries to an ELF program or shared object, and takes them away.

Everything that the file had stays where it is, in the file and in memory, so that relocations,
symbols, unwind tables and debug information stay right.  New are, after its end: a segment with the
program headers, the dynamic strings and the translation; the dynamic table, where its old place has
no room; and the section headers.  In place change the ELF header and, where there is room, the
dynamic table; their old bytes are kept for :func:`remove`.

LIEF was tried for this and moves more (docs/decisions.md).  The dynamic linker's rules are in
the System V ABI's chapter 5, and glibc's elf/dl-load.c and elf/rtld.c.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sassxlate.disasm.containers.elf import (
    EHDR,
    EM_X86_64,
    ET_DYN,
    ET_EXEC,
    MAGIC,
    PHDR,
    PT_LOAD,
    SHDR,
    SHF_ALLOC,
)
from sassxlate.errors import ShimError
from sassxlate.runtime_shim.embed import pack

SECTION = b".sassxlate"
PT_DYNAMIC, PT_INTERP, PT_PHDR = 2, 3, 6
PF_W, PF_R = 2, 4
DT_NEEDED, DT_STRTAB, DT_STRSZ, DT_SONAME, DT_RPATH = 1, 5, 10, 14, 15
DT_RUNPATH, DT_FLAGS_1, DF_1_PIE = 29, 0x6FFFFFFB, 0x08000000
_SHT_PROGBITS, _SHT_NOBITS, _SHT_DYNAMIC = 1, 8, 6
_DYN = struct.Struct("<QQ")
_PAGE = 4096
_HOLE = 16 << 20  # most bytes of the hole that keeps the file's offsets equal to addresses
_CHANGES = struct.Struct("<Q32sI")
_CHANGE = struct.Struct("<QQ")


@dataclass(slots=True)
class Image:
    """An ELF file's tables, checked against its size."""

    data: bytes
    head: list[int]  # of EHDR, without e_ident
    segments: list[list[int]]
    dynamic: list[tuple[int, int]]  # without the DT_NULL at its end
    strings: bytes

    def value(self, tag: int) -> int | None:
        """The first value of a tag."""
        return next((value for t, value in self.dynamic if t == tag), None)

    def text(self, offset: int) -> bytes:
        """A string of the dynamic table."""
        return self.strings[offset : self.strings.find(b"\0", offset)]

    @property
    def needed(self) -> list[str]:
        """The libraries that it needs, in order."""
        return [self.text(v).decode(errors="replace") for t, v in self.dynamic if t == DT_NEEDED]

    def segment(self, kind: int) -> list[int] | None:
        """The first segment of a type."""
        return next((s for s in self.segments if s[0] == kind), None)

    @property
    def is_library(self) -> bool:
        """Whether it is a shared object, not a program."""
        pie = (self.value(DT_FLAGS_1) or 0) & DF_1_PIE
        return self.head[0] == ET_DYN and self.segment(PT_INTERP) is None and not pie


def read(data: bytes) -> Image:
    """The tables of a file that can carry a translation.

    Raises:
        ShimError: SX0703 not a 64-bit x86-64 file, SX0704 linked statically, SX0794 damaged, or
            not a program or shared object.
    """
    if len(data) < EHDR.size or data[:4] != MAGIC:
        raise _unfit("it is not an ELF file")
    if data[4] != 2 or data[5] != 1:
        raise ShimError("SX0703", "it is not a 64-bit program")
    head = list(EHDR.unpack_from(data))[1:]
    if head[1] != EM_X86_64:
        raise ShimError("SX0703", f"it is not an x86-64 program (machine {head[1]})")
    if head[0] not in (ET_EXEC, ET_DYN):
        raise _unfit(f"it is neither a program nor a shared object (type {head[0]})")
    place, size, count = head[4], head[8], head[9]
    if size != PHDR.size or place + size * count > len(data):
        raise _unfit("its program headers lie outside the file")
    segments = [list(PHDR.unpack_from(data, place + size * n)) for n in range(count)]
    loads = [s for s in segments if s[0] == PT_LOAD]
    for s in segments:
        if s[0] == PT_LOAD and (s[2] + s[5] > len(data) or s[5] > s[6]):
            raise _unfit("a segment lies outside the file: it is cut short")
    if not loads or any(a[3] + a[6] > b[3] for a, b in pairwise(loads)):
        raise _unfit("its segments are not in order")
    image = Image(data, head, segments, [], b"")
    at = image.segment(PT_DYNAMIC)
    if at is None:
        raise ShimError("SX0704", "it is linked statically: no library can be put in it")
    if at[2] + at[5] > len(data):
        raise _unfit("its dynamic table lies outside the file")
    for tag, value in _DYN.iter_unpack(data[at[2] : at[2] + at[5] // 16 * 16]):
        if tag == 0:
            break
        image.dynamic.append((tag, value))
    table, length = image.value(DT_STRTAB), image.value(DT_STRSZ)
    if table is None or length is None:
        raise ShimError("SX0704", "it is linked statically: no library can be put in it")
    start = next((s[2] + table - s[3] for s in loads if s[3] <= table < s[3] + s[5]), None)
    if start is None or length == 0 or start + length > len(data) or data[start + length - 1]:
        raise _unfit("its dynamic strings lie outside the file")
    image.strings = data[start : start + length]
    names = (DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH)
    if any(v >= length for t, v in image.dynamic if t in names):
        raise _unfit("a name in its dynamic table lies outside its strings")
    return image


def add(
    image: Image,
    needed: Sequence[str],
    runpath: Sequence[str],
    files: Mapping[str, bytes],
    settings: Mapping[str, str],
) -> bytes:
    """The file with a segment for ``files``, needing ``needed`` before all else, which are looked
    for in ``runpath`` before the folders that it names itself.

    Raises:
        ShimError: SX0795, it carries a translation; SX0794, its tables are full.
    """
    if find(image) is not None:
        raise ShimError("SX0795", "it carries a translation; `sassxlate unembed` removes that")
    data, head = image.data, image.head
    strings = bytearray(image.strings)
    table = _dynamic(image, needed, runpath, strings)
    old = image.segment(PT_DYNAMIC)
    assert old is not None
    in_place = (len(table) + 1) * _DYN.size <= old[5]
    changed = [(0, EHDR.size)] + ([(old[2], old[5])] if in_place else [])
    count = len(image.segments) + (1 if in_place else 2)
    if count >= 0xFFFF:
        raise _unfit("it has no room for program headers")
    heads = PHDR.size * count
    body = pack.write({**files, pack.ORIGINAL: _changes(data, changed)}, settings)
    own, at = len(body), len(body)  # the translation's; where the program headers are
    body += bytes(heads + len(strings))

    # Where kernels before 5.18 look for the program headers: at the program's address plus their
    # offset in the file (fs/binfmt_elf.c), so that both are to be equally far from the start.
    loads = [s for s in image.segments if s[0] == PT_LOAD]
    base = loads[0][3] - loads[0][2]
    end = _up(max(s[3] + s[6] for s in loads), max(_PAGE, max(s[7] for s in loads)))
    offset = _up(len(data), _PAGE)
    if (
        end - base - offset > _HOLE
    ):  # of a program with much zeroed memory: a newer kernel is needed
        address = end
    else:
        offset = max(offset, end - base)
        address = base + offset
    names = address + at + heads
    table = [
        (t, names if t == DT_STRTAB else len(strings) if t == DT_STRSZ else v) for t, v in table
    ]
    written = b"".join(_DYN.pack(t, v) for t, v in table)
    segments = [list(s) for s in image.segments]
    for s in segments:
        if s[0] == PT_PHDR:
            s[2:7] = [offset + at, address + at, address + at, heads, heads]
    segments.append([PT_LOAD, PF_R, offset, address, address, len(body), len(body), _PAGE])
    out = bytearray(data) + bytes(offset - len(data))
    if in_place:
        room_there = old[5] // _DYN.size * _DYN.size
        out[old[2] : old[2] + room_there] = written + bytes(room_there - len(written))
        place = (old[2], old[3], old[5])
    else:
        written += bytes(_DYN.size)
        far = offset + _up(len(body), _PAGE)
        place = (far, address + _up(len(body), _PAGE), len(written))
        for s in segments:
            if s[0] == PT_DYNAMIC:
                s[2:7] = [*place[:2], place[1], place[2], place[2]]
        sizes = [place[2], place[2], _PAGE]
        segments.append([PT_LOAD, PF_R | PF_W, *place[:2], place[1], *sizes])
    body[at : at + heads] = b"".join(PHDR.pack(*s) for s in segments)
    body[at + heads :] = strings
    out += body
    if not in_place:
        out += bytes(place[0] - len(out)) + written
    head = list(head)
    head[4], head[9] = offset + at, count
    _sections(image, head, out, (address, offset, own), names, len(strings), place)
    out[: EHDR.size] = EHDR.pack(data[:16], *head)
    return bytes(out)


def _dynamic(
    image: Image, needed: Sequence[str], runpath: Sequence[str], strings: bytearray
) -> list[tuple[int, int]]:
    """The dynamic table with the libraries and folders; their names are added to ``strings``."""

    def kept(text: bytes) -> int:
        at = len(strings)
        strings.extend(text + b"\0")
        return at

    # A program's own folders stay what they were: those of DT_RPATH count before the user's.
    kind = DT_RUNPATH
    if image.value(DT_RUNPATH) is None and image.value(DT_RPATH) is not None:
        kind = DT_RPATH
    own = image.value(kind)
    folders = [*(folder.encode("utf-8", "surrogateescape") for folder in runpath)]
    folders += [image.text(own)] if own is not None and image.text(own) else []
    path = kept(b":".join(folders))
    table = [(DT_NEEDED, kept(name.encode())) for name in needed]
    for tag, value in image.dynamic:
        if tag == DT_NEEDED and image.text(value).decode(errors="replace") in needed:
            continue  # ours comes first
        table.append((tag, path if tag == kind else value))
    return table if own is not None else [*table, (kind, path)]


def _sections(
    image: Image,
    head: list[int],
    out: bytearray,
    body: tuple[int, int, int],
    names: int,
    strings: int,
    dynamic: tuple[int, int, int],
) -> None:
    """Writes the section headers again, with one for the translation, if the file has any."""
    data, place, size, count = image.data, head[5], head[10], head[11]
    if not place or size != SHDR.size or not count or place + size * count > len(data):
        return
    rows = [list(SHDR.unpack_from(data, place + size * n)) for n in range(count)]
    index = head[12]
    if not 0 < index < count or rows[index][4] + rows[index][5] > len(data):
        return
    text = bytearray(data[rows[index][4] : rows[index][4] + rows[index][5]])
    for row in rows:
        if row[1] == _SHT_DYNAMIC:
            row[3:6] = [dynamic[1], dynamic[0], dynamic[2]]
            if row[6] < count:  # its strings
                rows[row[6]][3:6] = [names, body[1] + names - body[0], strings]
    title = len(text)
    text += SECTION + b"\0"
    address, offset, length = body
    rows.append([title, _SHT_PROGBITS, SHF_ALLOC, address, offset, length, 0, 0, _PAGE, 0])
    rows[index][4:6] = [len(out), len(text)]
    out += text
    out += bytes(-len(out) % 8)
    head[5], head[11] = len(out), len(rows)
    out += b"".join(SHDR.pack(*row) for row in rows)


def find(image: Image) -> memoryview | None:
    """The segment with a translation; None if the file carries none."""
    for kind, flags, offset, _, _, size, _, _ in image.segments:
        if kind == PT_LOAD and flags == PF_R and image.data[offset : offset + 8] == pack.MAGIC:
            return memoryview(image.data)[offset : offset + size]
    return None


def remove(image: Image) -> bytes:
    """The file as it was before :func:`add`.

    Raises:
        ShimError: SX0797, it carries nothing, or was changed since; SX0791, damaged.
    """
    segment = find(image)
    if segment is None:
        raise ShimError("SX0797", "it carries no translation")
    changes = bytes(pack.read(segment).files.get(pack.ORIGINAL, b""))
    try:
        size, digest, count = _CHANGES.unpack_from(changes)
        out = bytearray(image.data[:size])
        at = _CHANGES.size
        for _ in range(count):
            offset, length = _CHANGE.unpack_from(changes, at)
            at += _CHANGE.size
            out[offset : offset + length] = changes[at : at + length]
            at += length
    except struct.error:
        raise ShimError("SX0791", "what the file was before cannot be read") from None
    if len(out) != size or hashlib.blake2b(out, digest_size=32).digest() != digest:
        raise ShimError("SX0797", "it was changed after it was embedded")
    return bytes(out)


def overlay(image: Image) -> int:
    """Bytes after all that the ELF file's tables name: a signature or payload of other tools."""
    head = image.head
    ends = [head[4] + head[8] * head[9], head[5] + head[10] * head[11]]
    ends += [s[2] + s[5] for s in image.segments]
    for n in range(head[11]):
        at = head[5] + SHDR.size * n
        if head[10] == SHDR.size and at + SHDR.size <= len(image.data):
            row = SHDR.unpack_from(image.data, at)
            ends.append(row[4] + row[5] if row[1] != _SHT_NOBITS else 0)
    return max(0, len(image.data) - max(ends))


def _changes(data: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    digest = hashlib.blake2b(data, digest_size=32).digest()
    parts = [_CHANGES.pack(len(data), digest, len(places))]
    for offset, size in places:
        parts += [_CHANGE.pack(offset, size), data[offset : offset + size]]
    return b"".join(parts)


def _up(value: int, step: int) -> int:
    return -(-value // step) * step


def _unfit(why: str) -> ShimError:
    return ShimError("SX0794", why)


__all__ = ["Image", "add", "find", "overlay", "read", "remove"]
