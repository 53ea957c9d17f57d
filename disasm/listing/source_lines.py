"""Source lines in a listing: ``//## File "a.cu", line 5 inlined at "a.cu", line 9``."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Literal, TypeAlias

from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.line_table import (
    LINES,
    LINES_OF_PTX,
    LineEntry,
    LineTable,
    parse_lines,
)

# Source lines; source lines with inlined calls; PTX lines.
Mode: TypeAlias = Literal["line", "inline", "ptx"]
Comments: TypeAlias = Callable[[str, int], tuple[str, ...]]


def comments(elf: Elf, mode: Mode) -> Comments:
    """The lines that nvdisasm prints before the instruction at (section, offset).

    Its options for the modes are -g, -gi and -gp.  Raises ContainerError SX0129.
    """
    rows: dict[tuple[str, int], tuple[LineTable, LineEntry]] = {}
    for table in parse_lines(elf, LINES_OF_PTX if mode == "ptx" else LINES):
        for row in table.rows:
            if row.section and not row.end:
                rows[row.section, row.address] = (table, row)
    texts: dict[tuple[str, int], tuple[str, ...]] = {}
    last = ("", "", 0)
    for place, (table, row) in sorted(rows.items(), key=lambda item: item[0]):
        calls = table.calls(row) if mode == "inline" else ()
        line = (row.section, row.file, row.line)
        if line != last:  # regardless of where it was inlined
            texts[place] = tuple(_texts(row, calls))
        last = line

    def at(section: str, offset: int) -> tuple[str, ...]:
        return texts.get((section, offset), ())

    return at


def _texts(row: LineEntry, calls: tuple[LineEntry, ...]) -> list[str]:
    found: list[str] = []
    for call in calls:
        found.append(f'\t//## {_file(row)} inlined at "{call.file}", line {call.line}')
        row = call
    return [*found, f"\t//## {_file(row)}"]


def _file(row: LineEntry) -> str:
    return f'File "{row.file}", line {row.line}'


def source_of(elf: Elf) -> Callable[[str, int], tuple[str, int] | None]:
    """The file and line of the instruction at an offset of a section; None without one.

    Raises ContainerError SX0129: the line table cannot be read.
    """
    rows: dict[str, list[LineEntry]] = {}
    for table in parse_lines(elf, LINES):
        for row in table.rows:
            if row.section:
                rows.setdefault(row.section, []).append(row)
    for of_section in rows.values():
        # Where one sequence ends and another begins, the beginning counts.
        of_section.sort(key=lambda row: (row.address, not row.end))
    starts = {name: [row.address for row in some] for name, some in rows.items()}

    def at(section: str, offset: int) -> tuple[str, int] | None:
        before = bisect_right(starts.get(section, []), offset)
        row = rows[section][before - 1] if before else None
        return None if row is None or row.end else (row.file, row.line)

    return at
