"""DWARF line tables of code objects: rocgdb and llvm-dwarfdump show the CUDA source lines.

A code object's note has the SASS that each RDNA3 instruction came from (:mod:`.source_map`), and
the cubin's line table (nvcc -lineinfo or -G) the source of the SASS.  The sections ``.debug_line``,
``.debug_info`` and ``.debug_abbrev`` (DWARF 4) say both together.  What begins a kernel has the
kernel's first line, and ends with DW_LNS_set_prologue_end: without a line a debugger that stops
there would step to the kernel's end.  Other code that comes from no line, such as the translator's
own, has line 0.
"""

from __future__ import annotations

import contextlib
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from posixpath import split
from typing import Final, TypeAlias

from sassxlate.disasm.containers.demangle import demangle
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.line_table import LINES
from sassxlate.disasm.listing.source_lines import source_of
from sassxlate.errors import ContainerError
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.codeobject.elf_writer import with_sections

Place: TypeAlias = tuple[str, int]  # file, line
SourceOf: TypeAlias = Callable[[str, int], Place | None]  # by code section and offset in it

_NOWHERE: Final[Place] = ("", 0)
_STEP: Final = 4  # bytes: instructions are multiples of it
_OPERANDS: Final = bytes((0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1))  # of the standard opcodes
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _PROLOGUE_END = 1, 2, 3, 4, 10
_END_SEQUENCE, _SET_ADDRESS = 1, 2
_CPLUSPLUS14: Final = 0x21
# Tag, whether there are children, and (attribute, form) pairs.
_ABBREVIATIONS: Final = (
    (0x11, 1, ((0x25, 8), (0x13, 5), (0x03, 8), (0x1B, 8), (0x10, 0x17), (0x11, 1), (0x12, 7))),
    (0x2E, 0, ((0x03, 8), (0x6E, 8), (0x3F, 0x19), (0x11, 1), (0x12, 7))),
)


@dataclass(frozen=True, slots=True)
class _Function:
    """A kernel's code and the source from each offset in it on."""

    name: str
    address: int
    size: int
    rows: tuple[tuple[int, Place], ...]


def with_lines(code_object: bytes, source_of: SourceOf) -> bytes:
    """The code object with line tables; itself if no instruction has a line.

    Raises:
        EncodeError: as :func:`.code_object.read`.
    """
    found = read(code_object)
    runs = source_map.parse(source_map.find(code_object))
    functions = [
        _Function(
            kernel.name,
            found.text_address + kernel.entry,
            kernel.size,
            tuple(_rows(runs.get(kernel.name, ()), f".text.{kernel.name}", source_of)),
        )
        for kernel in found.kernels
    ]
    files = list(dict.fromkeys(f for one in functions for _, (f, line) in one.rows if line))
    if not files:
        return code_object
    sections = {
        ".debug_abbrev": _abbreviations(),
        ".debug_info": _information(functions, files[0]),
        ".debug_line": _line_table(functions, files),
    }
    return with_sections(code_object, sections)


class CubinLines:
    """The line table of a cubin, read when the first code object asks for it.  A damaged one, or
    none, adds no lines: code is right without them.

    ``functions`` are the offsets at which linking puts functions of sections of their own."""

    def __init__(self, cubin: bytes, functions: Mapping[str, int]) -> None:
        self._cubin = cubin if LINES.encode() in cubin else b""
        self._source: SourceOf | None = None
        self._functions = sorted((at, name) for name, at in functions.items())

    def added_to(self, code_object: bytes) -> bytes:
        """The code object with the lines of this cubin."""
        if self._cubin:
            with contextlib.suppress(ContainerError):
                self._source = source_of(Elf(self._cubin))
            self._cubin = b""
        return code_object if self._source is None else with_lines(code_object, self._of)

    def _of(self, section: str, offset: int) -> Place | None:
        assert self._source is not None
        before = bisect_right(self._functions, offset, key=lambda function: function[0])
        if before:
            at, name = self._functions[before - 1]
            return self._source(f".text.{name}", offset - at)
        return self._source(section, offset)


def _rows(
    runs: Iterable[tuple[int, str]], section: str, source_of: SourceOf
) -> Iterable[tuple[int, Place]]:
    """Where the source changes, from the kernel's first byte on; the second is where its own code
    begins, whose place the first has, too."""
    last: Place | None = None
    for offset, text in runs:
        sass = int(text[2 : text.index("*/")], 16)
        place = source_of(section, sass) or _NOWHERE
        if last is None:
            yield 0, place
        if place != last:
            yield offset, place
        last = place


def _line_table(functions: Sequence[_Function], files: Sequence[str]) -> bytes:
    folders = list(dict.fromkeys(folder for folder, _ in map(split, files) if folder))
    names = b"".join(_text(folder) for folder in folders) + b"\0"
    for file in files:
        folder, name = split(file)
        at = folders.index(folder) + 1 if folder else 0
        names += _text(name) + _unsigned(at) + b"\0\0"
    # Steps of the address, one operation each, statements by default, line base and range.
    head = struct.pack("<BBBbBB", _STEP, 1, 1, -5, 14, len(_OPERANDS) + 1) + _OPERANDS
    head += names + b"\0"
    program = b"".join(_sequence(one, files) for one in functions)
    body = struct.pack("<HI", 4, len(head)) + head + program
    return struct.pack("<I", len(body)) + body


def _sequence(function: _Function, files: Sequence[str]) -> bytes:
    out = b"\0" + _unsigned(9) + struct.pack("<BQ", _SET_ADDRESS, function.address)
    at, line, number = 0, 1, 1
    for row, (offset, place) in enumerate(function.rows):
        if offset >= function.size:
            break
        if place[1] and files.index(place[0]) + 1 != number:
            number = files.index(place[0]) + 1
            out += bytes((_SET_FILE,)) + _unsigned(number)
        out += bytes((_ADVANCE_PC,)) + _unsigned((offset - at) // _STEP)
        out += bytes((_ADVANCE_LINE,)) + _signed(place[1] - line)
        out += bytes((_PROLOGUE_END,) if row == 1 else ()) + bytes((_COPY,))
        at, line = offset, place[1]
    out += bytes((_ADVANCE_PC,)) + _unsigned((function.size - at) // _STEP)
    return out + bytes((0, 1, _END_SEQUENCE))


def _information(functions: Sequence[_Function], file: str) -> bytes:
    first = min(one.address for one in functions)
    end = max(one.address + one.size for one in functions)
    folder, _ = split(file)
    unit = _unsigned(1) + _text("sassxlate") + struct.pack("<H", _CPLUSPLUS14) + _text(file)
    unit += _text(folder) + struct.pack("<IQQ", 0, first, end - first)
    for one in functions:
        unit += _unsigned(2) + _text(demangle(one.name)) + _text(one.name)
        unit += struct.pack("<QQ", one.address, one.size)
    body = struct.pack("<HIB", 4, 0, 8) + unit + b"\0"
    return struct.pack("<I", len(body)) + body


def _abbreviations() -> bytes:
    out = b""
    for number, (tag, children, attributes) in enumerate(_ABBREVIATIONS, 1):
        out += _unsigned(number) + _unsigned(tag) + bytes((children,))
        out += b"".join(_unsigned(a) + _unsigned(form) for a, form in attributes) + b"\0\0"
    return out + b"\0"


def _text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape").replace(b"\0", b"?") + b"\0"


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def _signed(value: int) -> bytes:
    out = bytearray()
    while not -0x40 <= value < 0x40:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value & 0x7F))


__all__ = ["CubinLines", "Place", "SourceOf", "with_lines"]
