"""Source lines in a listing: ``//## File "a.cu", line 5 inlined at "a.cu", line 9``."""

from __future__ import annotations

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
