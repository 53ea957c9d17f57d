"""Source lines in code objects: each address has the line of the SASS that it came from."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sassxlate import toolchain
from sassxlate.cli.translate import command
from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.containers.elf import Elf
from sassxlate.disasm.listing.source_lines import source_of
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.codeobject.debug_lines import CubinLines, with_lines
from sassxlate.lowering.pipeline import translate_kernel

ROOT = Path(__file__).resolve().parents[2]
# Of nvcc -lineinfo, with an inlined function in another file.
CUBIN = ROOT / "tests" / "disasm" / "containers" / "data" / "lines_sm_90.cubin"


def _by_address(code_object: bytes) -> list[tuple[int, str, int]]:
    """The rows that pyelftools reads: address, file, line; line -1 ends a sequence."""
    pytest.importorskip("elftools")
    from elftools.elf.elffile import ELFFile

    elf: Any = ELFFile(io.BytesIO(code_object))
    dwarf = elf.get_dwarf_info()
    rows: list[tuple[int, str, int]] = []
    for unit in dwarf.iter_CUs():
        program = dwarf.line_program_for_CU(unit)
        folders = program["include_directory"]
        for entry in program.get_entries():
            state = entry.state
            if state is None:
                continue
            file = program["file_entry"][state.file - 1]
            folder = folders[file.dir_index - 1].decode() if file.dir_index else ""
            name = f"{folder}/{file.name.decode()}" if folder else file.name.decode()
            rows.append((state.address, name, -1 if state.end_sequence else state.line))
    return rows


@pytest.mark.parametrize("kernel", ["_Z5firstPii", "_Z6secondPii"])
def test_each_address_has_its_line(kernel: str) -> None:
    data = CUBIN.read_bytes()
    made = translate_kernel(parse_cubin(data), kernel).code_object
    source = source_of(Elf(data))
    code = with_lines(made, source)
    rows = _by_address(code)
    starts = [row[0] for row in rows]
    found = read(code)
    one = found.kernel(kernel)
    sass = source_map.parse(source_map.find(code))[kernel]
    lines: set[tuple[str, int]] = set()
    begins = sass[0][0]  # where the kernel's own code does
    assert begins > 0
    assert [row[0] for row in rows[:2]] == [found.text_address + one.entry + n for n in (0, begins)]
    for offset in range(0, one.size, 4):
        text = source_map.at(sass, max(offset, begins))
        expected = None
        if text is not None:
            expected = source(f".text.{kernel}", int(text[2 : text.index("*/")], 16))
        address = found.text_address + one.entry + offset
        _, file, line = rows[bisect_right(starts, address) - 1]
        assert ((file, line) if line else None) == expected, hex(offset)
        lines |= {expected} if expected else set()
    assert len(lines) > 3
    assert (rows[-1][0], rows[-1][2]) == (found.text_address + one.entry + one.size, -1)
    # What is loaded is the same, to the byte.
    assert found.text == read(made).text
    assert code[64 : len(made) // 2] == made[64 : len(made) // 2]


def test_translate_writes_them(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, [str(CUBIN), "-o", str(tmp_path)])
    assert run.exit_code == 0, run.output
    files = sorted(tmp_path.glob("*.hsaco"))
    assert len(files) == 2
    assert all(_by_address(file.read_bytes()) for file in files)
    tool = shutil.which("llvm-dwarfdump")
    for file in files if tool else ():
        told = subprocess.run(
            [str(tool), "--verify", file], capture_output=True, text=True, check=False
        )
        assert "No errors" in told.stdout, told.stdout


def _same_in_gdb(file: Path) -> None:
    """GDB, whose reader of DWARF is rocgdb's, reads the rows that pyelftools does."""
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("no gdb")
    words = [gdb, "-nx", "-q", "-batch", str(file), "-ex", "maint expand-symtabs"]
    told = subprocess.run(
        [*words, "-ex", "maint info line-table"], capture_output=True, text=True, check=True
    )
    rows = re.findall(r"^\d+ +(\d+) +0x([0-9a-f]+) ", told.stdout, re.M)
    got = {(int(address, 16), int(line)) for line, address in rows}
    assert re.search(r"^1 .* Y +Y *$", told.stdout, re.M), told.stdout  # the prologue's end
    entry = min(got)[0]
    at_entry = [*words[:5], "-ex", f"info line *{entry:#x}"]
    shown = subprocess.run(at_entry, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^Line \d+ of ", shown, re.M), shown
    own = {(at, line) for at, _, line in _by_address(file.read_bytes()) if line > 0}
    assert got == own, told.stdout


def test_gdb_reads_them(tmp_path: Path) -> None:
    run = CliRunner().invoke(command, [str(CUBIN), "-o", str(tmp_path)])
    assert run.exit_code == 0, run.output
    for file in sorted(tmp_path.glob("*.hsaco")):
        _same_in_gdb(file)


def test_without_lines_it_is_the_same() -> None:
    data = (ROOT / "fixtures" / "kernels" / "sm_80" / "half_pairs.cubin").read_bytes()
    cubin = parse_cubin(data)
    made = translate_kernel(cubin, cubin.kernels[0].name).code_object
    assert CubinLines(data, {}).added_to(made) == made


def test_a_damaged_table_adds_nothing() -> None:
    data = bytearray(CUBIN.read_bytes())
    section = Elf(bytes(data)).section(".debug_line")
    assert section is not None
    data[section.offset : section.offset + 4] = b"\xef\xff\xff\x7f"
    made = translate_kernel(parse_cubin(bytes(data)), "_Z5firstPii").code_object
    assert CubinLines(bytes(data), {}).added_to(made) == made


@pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")
def test_functions_of_their_own_have_lines(tmp_path: Path) -> None:
    """nvcc -G calls functions in other sections, which linking puts after the kernel."""
    source = tmp_path / "called.cu"
    source.write_text(
        "__device__ __noinline__ int twice(int x) { return x * 2 + 1; }\n"
        "__global__ void k(int *p) {\n"
        "  p[threadIdx.x] = twice(p[threadIdx.x]);\n"
        "}\n"
    )
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    out = tmp_path / "called.cubin"
    words = [*nvcc.command, "-arch=sm_80", "-G", "-cubin", str(source), "-o", str(out)]
    subprocess.run(words, check=True, capture_output=True)
    run = CliRunner().invoke(command, [str(out), "-o", str(tmp_path)])
    assert run.exit_code == 0, run.output
    (file,) = tmp_path.glob("*.hsaco")
    rows = _by_address(file.read_bytes())
    assert {1, 3} <= {line for _, name, line in rows if name.endswith("called.cu")}
    assert "twice" in {f.name for f in parse_cubin(out.read_bytes()).functions}.pop()
    _same_in_gdb(file)
