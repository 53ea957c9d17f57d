"""Static archives (``.a``): their members, with GNU's and BSD's long names.

The layout is that of ar(5): a magic number, then members, each a header of 60 bytes in ASCII and
its contents, padded to an even length.  Symbol tables are members too; they are checked, not used.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from sassxlate.disasm.containers.elf import fail, printable

MAGIC = b"!<arch>\n"
THIN_MAGIC = b"!<thin>\n"
_HEADER = struct.Struct("16s12s6s6s8s10s2s")
_NUMBER = re.compile(rb"\s*(\d{1,10})\s*\Z")
_BSD_TABLES = ("__.SYMDEF", "__.SYMDEF SORTED", "__.SYMDEF_64", "__.SYMDEF_64 SORTED")
_MAX_NAME = 1 << 16
_MAX_MEMBERS = 1 << 20


@dataclass(frozen=True, slots=True)
class Member:
    """A member's name, the offset of its contents in the archive, and the contents."""

    name: str
    offset: int
    data: memoryview


def members(data: bytes | memoryview) -> tuple[Member, ...]:
    """The members of an archive in file order, tables left out.

    Raises ContainerError SX0108 (a thin archive), SX0109 (a broken one).
    """
    view = memoryview(data)
    if bytes(view[:8]) == THIN_MAGIC:
        raise fail("SX0108", "a thin archive names other files and holds none of them", 0)
    if bytes(view[:8]) != MAGIC:
        raise fail("SX0109", "no archive", 0)
    found: list[Member] = []
    names = memoryview(b"")
    places: set[int] = set()
    tables: list[tuple[int, int, memoryview]] = []  # offset, bytes per number, contents
    for at, raw, body in _raw_members(view):
        places.add(at)
        start = at + _HEADER.size
        title = raw.rstrip(b" ")
        if title in (b"/", b"/SYM64/"):
            tables.append((start, 8 if title == b"/SYM64/" else 4, body))
        elif title == b"//":
            names = body
        else:
            name, skipped = _name(title, names, body, at)
            if name not in _BSD_TABLES:
                found.append(Member(name, start + skipped, body[skipped:]))
    for start, width, body in tables:
        _check_table(start, width, body, places)
    return tuple(found)


def _raw_members(view: memoryview) -> Iterator[tuple[int, bytes, memoryview]]:
    """(offset of the header, name field, contents) of each member."""
    at = len(MAGIC)
    count = 0
    while at < len(view):
        if len(view) - at < _HEADER.size:
            if not bytes(view[at:]).strip(b"\n\0"):
                return
            raise fail("SX0109", "the archive ends within a member's header", at)
        name, _, _, _, _, size_text, end = _HEADER.unpack_from(view, at)
        if end != b"`\n":
            raise fail("SX0109", "no member of an archive where one must be", at)
        match = _NUMBER.match(size_text)
        if match is None:
            raise fail("SX0109", "a member's size is not a number", at + 48)
        size = int(match[1])
        start = at + _HEADER.size
        if size > len(view) - start:
            raise fail("SX0109", f"a member's {size} bytes reach past the end of the archive", at)
        count += 1
        if count > _MAX_MEMBERS:
            raise fail("SX0109", f"more than {_MAX_MEMBERS} members", at)
        yield at, name, view[start : start + size]
        at = start + size + size % 2


def _name(title: bytes, names: memoryview, body: memoryview, at: int) -> tuple[str, int]:
    """(name, bytes of the contents that the name takes up)."""
    if title.startswith(b"#1/"):  # BSD: the name precedes the contents
        match = _NUMBER.match(title[3:])
        if match is None or int(match[1]) > min(len(body), _MAX_NAME):
            raise fail("SX0109", "a member's name is longer than the member", at)
        size = int(match[1])
        return printable(bytes(body[:size]).rstrip(b"\0")), size
    if title.startswith(b"/"):  # GNU: in the table of long names
        match = _NUMBER.match(title[1:])
        if match is None or int(match[1]) >= len(names):
            raise fail("SX0109", "a member's name is outside the table of names", at)
        start = int(match[1])
        text = bytes(names[start : start + _MAX_NAME])
        end = text.find(b"\n")
        if end < 0:
            raise fail("SX0109", "a member's name has no end", at)
        return printable(text[:end].removesuffix(b"/")), 0
    return printable(title.removesuffix(b"/")), 0


def _check_table(start: int, width: int, body: memoryview, places: set[int]) -> None:
    """A symbol table's numbers, big-endian: how many symbols, then the member of each."""
    count = int.from_bytes(body[:width], "big")
    if len(body) < width or count > (len(body) - width) // width:
        raise fail("SX0109", f"a symbol table of {count} symbols in {len(body)} bytes", start)
    for i in range(count):
        at = width + i * width
        if int.from_bytes(body[at : at + width], "big") not in places:
            raise fail("SX0109", f"symbol {i} of the archive is in no member", start + at)
