"""Segments added to programs and libraries of several kinds: they still run, and come back."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sassxlate.disasm.containers.elf import Elf
from sassxlate.errors import SassxlateError, ShimError
from sassxlate.runtime_shim.embed import elf_segment, pack

ROOT = Path(__file__).resolve().parents[3]
FILES = {"gfx1100/kernel/a.hsaco": b"code" * 100, "gfx1100/kernel/b.launch": b"text"}
SETTINGS = {"targets": "gfx1100", "cc": "80"}
MAIN = """
#include <cstdio>
static char zeros[%s];
int add(int, int);
int main(int argc, char **argv) {
  zeros[argc] = 1;
  std::printf("%%d %%s\\n", add(argc, 41), argv[0] ? "ok" : "");
}
"""
LIBRARY = "int add(int a, int b) { return a + b; }\n"
KINDS = {
    "pie": ("-pie", "-fPIE"),
    "fixed": ("-no-pie",),
    "runpath": ("-pie", "-fPIE", "-Wl,-rpath,/nonexistent"),
    "rpath": ("-pie", "-fPIE", "-Wl,--disable-new-dtags,-rpath,/nonexistent"),
    "stripped": ("-pie", "-fPIE", "-s"),
}
Runner = Callable[..., str]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, gxx: Runner) -> Path:
    """A shared object that the programs need."""
    folder = tmp_path_factory.mktemp("library")
    (folder / "add.cpp").write_text(LIBRARY)
    gxx("-shared", "-fPIC", folder / "add.cpp", "-o", folder / "libadd.so")
    return folder / "libadd.so"


def _program(folder: Path, gxx: Runner, library: Path, kind: str, zeros: str = "64") -> Path:
    (folder / "main.cpp").write_text(MAIN % zeros)
    gxx(*KINDS[kind], folder / "main.cpp", library, "-o", folder / "program")
    return folder / "program"


def _embedded(file: Path, needed: list[str], folders: list[str]) -> elf_segment.Image:
    image = elf_segment.read(file.read_bytes())
    made = elf_segment.add(image, needed, folders, FILES, SETTINGS)
    assert elf_segment.remove(elf_segment.read(made)) == image.data
    file.write_bytes(made)
    return elf_segment.read(made)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("many", [1, 40])
def test_programs_run(kind: str, many: int, tmp_path: Path, gxx: Runner, library: Path) -> None:
    """With a few libraries the dynamic table stays in place, with many it moves."""
    program = _program(tmp_path, gxx, library, kind)
    before = elf_segment.read(program.read_bytes())
    after = _embedded(program, ["libm.so.6"] * many, ["/none", str(library.parent)])
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "42 ok\n"), done.stderr
    assert after.needed == ["libm.so.6"] * many + [n for n in before.needed if n != "libm.so.6"]
    tag = elf_segment.DT_RPATH if kind == "rpath" else elf_segment.DT_RUNPATH
    path = after.value(tag)
    assert path is not None
    own = ":/nonexistent" if "path" in kind else ""
    assert after.text(path).decode() == f"/none:{library.parent}{own}"
    moved = [s for s in after.segments if s[0] == elf_segment.PT_DYNAMIC]
    assert (moved[0][2] < len(before.data)) == (many == 1)


@pytest.mark.parametrize("zeros", ["64 << 10", "64 << 20"])
def test_zeroed_memory(zeros: str, tmp_path: Path, gxx: Runner, library: Path) -> None:
    """Little of it becomes a hole in the file; much of it does not."""
    program = _program(tmp_path, gxx, library, "pie", zeros)
    _embedded(program, ["libm.so.6"], [str(library.parent)])
    assert program.stat().st_size < 1 << 20
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "42 ok\n"), done.stderr


def test_libraries_load(tmp_path: Path, gxx: Runner, library: Path) -> None:
    """A program that needs an embedded library."""
    copy = tmp_path / "libadd.so"
    copy.write_bytes(library.read_bytes())
    assert _embedded(copy, ["libm.so.6"], ["/none"]).is_library
    program = _program(tmp_path, gxx, copy, "pie")
    done = subprocess.run(
        [program],
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "42 ok\n"), done.stderr


def test_sections_and_symbols_stay(tmp_path: Path, gxx: Runner, library: Path) -> None:
    """Every section and symbol is where it was; the translation has a section of its own."""
    program = _program(tmp_path, gxx, library, "pie")
    before = Elf(program.read_bytes())
    _embedded(program, ["libm.so.6"], ["/none"])
    after = Elf(program.read_bytes())
    old = {s.name: (s.addr, s.size, bytes(s.data)) for s in before.sections}
    new = {s.name: (s.addr, s.size, bytes(s.data)) for s in after.sections}
    assert {n for n in new if old.get(n) != new[n]} == {
        ".sassxlate",
        ".dynstr",
        ".dynamic",
        ".shstrtab",
    }
    assert pack.read(after.section(".sassxlate").data).settings == SETTINGS  # type: ignore[union-attr]
    for name in (".symtab", ".dynsym"):
        one, two = before.section(name), after.section(name)
        assert one is not None
        assert two is not None
        assert before.symbols(one) == after.symbols(two)


def _read(data: bytearray) -> tuple[dict[str, bytes], str]:
    """The files, or an error's code."""
    try:
        return {k: bytes(v) for k, v in pack.read(memoryview(data)).files.items()}, ""
    except ShimError as error:
        return {}, error.code


def test_pack_comes_back() -> None:
    """Equal contents are stored once; each damaged byte is noticed or belongs to no file."""
    files = {**FILES, "gfx1101/kernel/a.hsaco": FILES["gfx1100/kernel/a.hsaco"], "empty": b""}
    data = bytes(pack.write(files, SETTINGS))
    read = pack.read(memoryview(data))
    assert {k: bytes(v) for k, v in read.files.items()} == files
    assert read.settings == SETTINGS
    assert data.count(FILES["gfx1100/kernel/a.hsaco"]) == 1
    for at in range(0, len(data), 3):
        changed = bytearray(data)
        changed[at] ^= 0x41
        found, code = _read(changed)
        assert code == "SX0791" or found == files


def _there_and_back(data: bytes) -> str:
    """Adds and removes a segment; the code of the error, or \"\"."""
    try:
        image = elf_segment.read(data)
        made = elf_segment.add(image, ["libm.so.6"], ["/none"], FILES, SETTINGS)
    except SassxlateError as error:
        return error.code
    assert elf_segment.remove(elf_segment.read(made)) == data
    return ""


@pytest.mark.parametrize("seed", range(2))
def test_damaged_files(seed: int) -> None:
    """Whatever a header says, the end is a file that can be read, or a typed error."""
    original = (ROOT / "fixtures" / "programs" / "saxpy").read_bytes()
    places = random.Random(seed)
    dynamic = elf_segment.read(original).segment(elf_segment.PT_DYNAMIC)
    assert dynamic is not None
    spots = [*range(0, 64 + 56 * 14), *range(dynamic[2], dynamic[2] + dynamic[5])]
    codes: set[str] = set()
    for _ in range(150):
        data = bytearray(original)
        for at in places.sample(spots, places.choice((1, 1, 2, 8))):
            data[at] = places.choice((0, 1, 0x7F, 0x80, 0xFF, places.randrange(256)))
        if places.random() < 0.2:
            del data[places.randrange(len(data)) :]
        codes.add(_there_and_back(bytes(data)))
    assert codes <= {"", "SX0703", "SX0704", "SX0794", "SX0795"}
    assert {"", "SX0794"} <= codes
