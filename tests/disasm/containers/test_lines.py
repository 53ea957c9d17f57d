"""Line tables: DWARF 2 to 5 against pyelftools, inlined calls, and tables that lie."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.containers.line_table import LINES_OF_PTX, LineEntry, parse_lines
from sassxlate.errors import ContainerError

from .conftest import DATA

CUBINS = sorted(p for p in DATA.glob("*.cubin") if p.name.startswith(("lines", "debug")))


def theirs(data: bytes) -> list[tuple[str, int, int, int, bool, bool]]:
    """(file, address without relocation, line, column, is_stmt, end) as pyelftools reads them."""
    elf: Any = ELFFile(io.BytesIO(data))
    dwarf = elf.get_dwarf_info(relocate_dwarf_sections=False)
    section = dwarf.debug_line_sec
    found: list[tuple[str, int, int, int, bool, bool]] = []
    offset = 0
    while offset < section.size:
        program = dwarf._parse_line_program_at_offset(offset, dwarf.structs)
        files = program["file_entry"]
        folders = program["include_directory"]
        old = program["version"] < 5
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            file = files[state.file - old]
            folder = folders[file.dir_index - old] if file.dir_index or not old else b""
            name = file.name.decode()
            if folder and not name.startswith("/"):
                name = f"{folder.decode()}/{name}"
            end = bool(state.end_sequence)
            stmt = bool(state.is_stmt) or end
            found.append((name, state.address, state.line, state.column, stmt, end))
        offset += program["unit_length"] + 4
    return found


def ours(data: bytes) -> list[tuple[str, int, int, int, bool, bool]]:
    return [
        (r.file, r.address, r.line, r.column, r.is_stmt or r.end, r.end)
        for table in parse_lines(Elf(data))
        for r in table.rows
    ]


@pytest.mark.parametrize("path", CUBINS, ids=lambda p: p.stem)
def test_tables_as_pyelftools_reads_them(path: Path) -> None:
    data = path.read_bytes()
    assert ours(data) == theirs(data)
    assert ours(data)


SOURCE = """
#include <stdlib.h>
int f(int a) { if (a) { a += 3; } else { a -= abs(a); }
  for (int i = 0; i < a; i++)
    a += f(i);
  return a; }
__attribute__((section(".text.other"))) int g(int b) { return f(b) + 1; }
"""


@pytest.mark.parametrize("version", [3, 4, 5])
def test_versions(version: int, tmp_path: Path, gxx: Callable[..., str]) -> None:
    """Those that the host's tools write; device code has version 2."""
    source, target = tmp_path / "a.cpp", tmp_path / "a.so"
    source.write_text(SOURCE)
    flags = (f"-gdwarf-{version}", "-gstrict-dwarf", "-O1", "-shared", "-fPIC", "-nostdlib")
    gxx(*flags, source, "-o", target)
    data = target.read_bytes()
    got = ours(data)
    assert got == theirs(data)
    assert {row[2] for row in got if row[0].endswith("/a.cpp")} >= {3, 4, 5, 7}
    assert {t.version for t in parse_lines(Elf(data))} == {version}


def test_inlined_calls() -> None:
    (table,) = parse_lines(Elf((DATA / "lines_sm_90.cubin").read_bytes()))
    inlined = [r for r in table.rows if r.call]
    assert {r.function for r in inlined} >= {"_Z6squarei", "_Z5twicei"}
    nested = next(r for r in inlined if len(table.calls(r)) == 2)
    inner, outer = table.calls(nested)
    assert (nested.file, nested.line) == ("/src/lines.cu", 9)
    assert (inner.line, outer.line) == (13, 23)
    assert nested.section == ".text._Z5firstPii"


def test_lines_of_ptx() -> None:
    (table,) = parse_lines(Elf((DATA / "lines_sm_90.cubin").read_bytes()), LINES_OF_PTX)
    assert {r.file for r in table.rows} == {".nv_debug_ptx_txt"}


def patched(at: int, value: bytes) -> bytes:
    data = bytearray((DATA / "lines_sm_90.cubin").read_bytes())
    section = Elf(bytes(data)).section(".debug_line")
    assert section is not None
    data[section.offset + at : section.offset + at + len(value)] = value
    return bytes(data)


LIES = {
    "longer than its section": (0, b"\xff\xff\0\0"),
    "a reserved length": (0, b"\xf5\xff\xff\xff"),
    "64-bit without a length": (0, b"\xff\xff\xff\xff"),
    "version 1": (4, b"\1\0"),
    "version 6": (4, b"\6\0"),
    "a header longer than the table": (6, b"\xff\xff\0\0"),
    "a header shorter than its names": (6, b"\5\0\0\0"),
    "no range of lines": (13, b"\0"),
    "no opcodes": (14, b"\0"),
    "directories without an end": (24, b"a" * 300),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie: str) -> None:
    with pytest.raises(ContainerError) as caught:
        parse_lines(Elf(patched(*LIES[lie])))
    assert caught.value.code == "SX0129"
    assert caught.value.where.offset is not None


def test_calls_in_a_circle() -> None:
    (table,) = parse_lines(Elf((DATA / "lines_sm_90.cubin").read_bytes()))
    row = LineEntry(".text.a", 0, "a", 1, 0, True, False, call=1)
    circle = type(table)(2, 7, (), (row,))
    with pytest.raises(ContainerError) as caught:
        circle.calls(row)
    assert (caught.value.code, caught.value.where.offset) == ("SX0129", 7)


def test_no_table() -> None:
    assert parse_lines(Elf((DATA / "cuda13_sm_80.cubin").read_bytes())) == ()
