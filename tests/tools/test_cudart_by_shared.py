"""A runtime found in a library by a shared library's code: a stand-in of our own, made as an
archive and as a shared library, and CUDA 13.0's, of which there are both."""

from __future__ import annotations

import bisect
import shutil
import subprocess
from dataclasses import replace
from importlib import util
from pathlib import Path

import pytest

from sassxlate.disasm.containers.elf import Elf
from sassxlate.runtime_shim.static_runtime import functions_of
from tools.generate import cudart_by_shared, cudart_in_library
from tools.generate.cudart_by_shared import (
    by_elimination,
    derive,
    read_library,
    read_shared,
    where_they_are,
)
from tools.generate.cudart_in_library import read_archive
from tools.generate.cudart_signatures import SignatureError, read_block

ROOT = Path(__file__).parents[2]
FUNCTIONS = 12  # public ones that are the same everywhere
OTHER = "cudaOther"  # has one call more in the shared library, which also has cudaEnded

_FUNCTION = """
PUBLIC int cuda{n}(int a, int b) {{
  for (int i = b; i < {n} + 7; ++i) a = (a ^ {k}) * {m} + (state[{n}] >> (i & 15));
  if (a == {k}) return inner{n}(a, b) + kept;
  kept += a;
  seen ^= a;
  return put(a, "cuda{n}");
}}
NOINLINE int inner{n}(int a, int b) {{
  a = a * {m} - b;
  for (int i = 0; i < a; ++i) b = (b << 3) ^ (i * {k} + {n}) ^ state[i & 7];
  return put(b, "inner") ^ 0x{n:02x}55;
}}
"""
_RUNTIME = """
#define NOINLINE __attribute__((noipa))
__attribute__((visibility("default"))) int seen;
#define PUBLIC __attribute__((visibility("default"))) NOINLINE
int state[64];
static __thread int kept;
extern int printf(const char *, ...);
NOINLINE int put(int a, const char *text) {
  for (int i = 0; text[i]; ++i) state[i & 63] = state[(i + a) & 63] * 77 + text[i];
  return a + state[a & 63];
}
NOINLINE int table(int a) {
  for (int i = 0; i < a; ++i) state[i & 63] ^= a * 0x3f51 + i;
  return put(a, "table") - 99;
}
#ifdef EXPORTED
NOINLINE int lock(int a) { return put(a * 0x1234567, "lock"); }
#else
NOINLINE int unlock(int a) { return put(a * 0x1234567 - 5, "unlock") * 3; }
#endif
NOINLINE void finish(void) {
  for (int i = 0; i < 64; ++i) state[i] = put(i * 0x2345 + 1, "finish") + state[63 - i];
}
NOINLINE int before(int a) {
#ifdef EXPORTED
  a ^= lock(a);
#else
  a = unlock(a + 1);
#endif
#ifdef TWO_CALL
  a += table(a);
#endif
  return put(a, "before") * 31;
}
PUBLIC int cudaOther(int a) {
#ifdef EXPORTED
  a += lock(a);
#endif
  return table(a) + before(a);
}
"""
_ENDED = """
#ifdef EXPORTED
PUBLIC int cudaEnded(int a) { return table(a * 3) - put(a, "ended"); }
#endif
"""
_START = """
__attribute__((constructor)) static void begin(void) { START(); }
__attribute__((destructor)) static void end(void) { finish(); }
"""
_LIBRARY = """
__thread int own[{variables}];
{declared}
static int other(int a) {{ for (int i = 0; i < a; ++i) own[i & 1] += a * 3; return own[1]; }}
int use(int a) {{ return other(a){calls}; }}
int main(void) {{ return use(1); }}
"""


def _runtime() -> str:
    """The stand-in's source."""
    heads = "".join(f"int inner{n}(int, int);\n" for n in range(FUNCTIONS))
    each = [
        _FUNCTION.format(n=n, k=0x51ED270B + n * 7919, m=0x9E3779B1 - n * 6)
        for n in range(FUNCTIONS)
    ]
    half = FUNCTIONS // 2
    opened, tail = _RUNTIME.split("NOINLINE int before", 1)
    middle = ("NOINLINE int before", tail)
    return "".join((opened, heads, *each[:half], *middle, *each[half:-1], _ENDED, each[-1], _START))


def _cc(*arguments: str | Path) -> None:
    subprocess.run(
        ["gcc", "-O2", "-fno-toplevel-reorder", "-fcf-protection=none", *arguments], check=True
    )


def _library(
    folder: Path, name: str, *options: str, kind: str = "-shared", variables: int = 2
) -> tuple[Path, dict[str, int]]:
    """A stripped library or program with the stand-in inside, and where its functions are."""
    public = [*(f"cuda{n}" for n in range(FUNCTIONS)), OTHER]
    declared = "".join(f"int {p}(int, ...);\n" for p in public)
    source = folder / f"{name}.c"
    calls = "".join(f" + {p}(a, 2)" for p in public)
    source.write_text(_LIBRARY.format(declared=declared, calls=calls, variables=variables))
    made, archive = folder / f"{name}.o", folder / f"{name}.a"
    _cc("-fPIC", "-fvisibility=hidden", "-c", *options, folder / "runtime.c", "-o", made)
    archive.unlink(missing_ok=True)
    subprocess.run(["ar", "rc", archive, made], check=True)
    out = folder / f"lib{name}.so"
    hide = ("-Wl,--exclude-libs,ALL", "-Wl,-z,noseparate-code")
    _cc("-fPIC", kind, *hide, source, archive, "-o", out)
    elf = Elf(memoryview(out.read_bytes()))
    table = next(s for s in elf.sections if s.name == ".symtab")
    truth = {s.name: s.value for s in elf.symbols(table)}
    subprocess.run(["strip", out], check=True)
    return out, truth


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not all(shutil.which(tool) for tool in ("gcc", "ar", "strip")):
        pytest.skip("gcc, ar and strip are needed")
    path = tmp_path_factory.mktemp("runtime")
    (path / "runtime.c").write_text(_runtime())
    options = ("-fPIC", "-shared", "-fvisibility=hidden", "-DEXPORTED", "-DSTART=finish")
    _cc(*options, path / "runtime.c", "-o", path / "libshared.so")
    return path


@pytest.fixture(scope="module")
def first(folder: Path) -> tuple[Path, dict[str, int]]:
    """A library with the stand-in, and where its functions are."""
    return _library(folder, "first", "-DSTART=finish")


def test_every_function_is_found_as_by_the_archive(
    folder: Path, first: tuple[Path, dict[str, int]]
) -> None:
    """cudaOther is found by elimination, what the library does not have is not looked for; the
    start's function is quiet; a program has the same signature, though its linker changed more."""
    shared = (folder / "libshared.so").read_bytes()
    path, truth = first
    block, eliminated = derive(shared, [path.read_bytes()])
    assert eliminated == (OTHER,)
    assert block.absent == ()
    names = {name: at for at, name in block.entries}
    assert len(names) == FUNCTIONS + 1
    assert len({truth[name] - at for name, at in names.items()}) == 1
    assert [at - names["cuda0"] for at in block.quiet] == [truth["finish"] - truth["cuda0"]]
    archive = {name: at for at, name in read_block((folder / "first.a").read_bytes()).entries}
    assert archive.keys() == names.keys()
    assert len({archive[name] - at for name, at in names.items()}) == 1
    second, _ = _library(folder, "second", "-DSTART=finish", kind="-no-pie", variables=999)
    again, _ = derive(shared, [second.read_bytes(), path.read_bytes()])
    assert again.text != block.text
    assert again.masked() == block.masked()
    assert (again.entries, again.quiet) == (block.entries, block.quiet)


def test_an_archive_of_the_release_says_the_same(
    folder: Path, first: tuple[Path, dict[str, int]]
) -> None:
    """Both ways, function by function; the archive's code has the masks of its relocations."""
    data, archive = first[0].read_bytes(), read_archive((folder / "first.a").read_bytes())
    by_archive, _ = cudart_in_library.derive(archive, data, data)
    by_shared, _ = derive((folder / "libshared.so").read_bytes(), [data])
    ours = {name: at for at, name in by_archive.entries}
    theirs = {name: at for at, name in by_shared.entries}
    assert ours.keys() == theirs.keys()
    (shift,) = {theirs[name] - at for name, at in ours.items()}
    assert tuple(at + shift for at in by_archive.quiet) == by_shared.quiet


def test_what_may_be_two_functions_is_none(folder: Path) -> None:
    """In the library another function, too, refers to what cudaOther alone should.  It runs at the
    start, so it may not be left quiet."""
    path, _ = _library(folder, "start", "-DSTART()=before(1)", "-DTWO_CALL")
    shared = (folder / "libshared.so").read_bytes()
    archive, library = read_shared(shared), read_library(path.read_bytes())
    assert by_elimination(archive, where_they_are(archive, library), library) == {}
    with pytest.raises(SignatureError, match="what runs at the start may be public"):
        derive(shared, [path.read_bytes()])


def test_elimination_asks_for_the_place_and_who_calls(
    folder: Path, first: tuple[Path, dict[str, int]]
) -> None:
    archive = read_shared((folder / "libshared.so").read_bytes())
    path, truth = first
    library = read_library(path.read_bytes())
    placed = where_they_are(archive, library)
    (found,) = by_elimination(archive, placed, library).values()
    before = max(at for at in library.functions if at < found)
    assert before not in placed.values()
    moved = {at: size for at, size in library.functions.items() if at != before}
    moved[found + library.functions[found] - 1] = 1  # after it instead of before it
    assert by_elimination(archive, placed, replace(library, functions=moved)) == {}
    image, at = bytearray(library.image), truth["use"]
    image[at : at + 5] = b"\xe8" + (before - at - 5).to_bytes(4, "little", signed=True)
    assert by_elimination(archive, placed, replace(library, image=bytes(image))) == {}


def test_a_place_that_is_no_function_is_not_taken(
    folder: Path, first: tuple[Path, dict[str, int]]
) -> None:
    """The library's own table of functions has to have one of the length there."""
    archive = read_shared((folder / "libshared.so").read_bytes())
    library = read_library(first[0].read_bytes())
    placed = where_they_are(archive, library)
    start = next(at for at, name in archive.block.entries if name == "cuda3")
    other = dict(library.functions) | {placed[start]: library.functions[placed[start]] - 1}
    assert placed.keys() - where_they_are(archive, replace(library, functions=other)) == {start}


def test_other_libraries_are_refused(folder: Path) -> None:
    shared = (folder / "libshared.so").read_bytes()
    with pytest.raises(SignatureError, match="none of the shared runtime's functions is there"):
        derive(shared, [Path(shutil.which("ar") or "").read_bytes()])
    with pytest.raises(SignatureError, match=r"no .text and .eh_frame"):
        derive(shared.replace(b".eh_frame\0", b".ah_frame\0"), [shared])
    assert cudart_by_shared.derive(shared, [shared])[0].absent == ()


@pytest.mark.sweep
def test_cuda_13_0_by_its_shared_library() -> None:
    """As by its archive's signature, in two programs: every place, and what the start calls."""
    found = util.find_spec("nvidia.cu13")
    places = found.submodule_search_locations if found else None
    folder = Path(str(next(iter(places)))) / "lib" if places else Path()
    if not (folder / "libcudart.so.13").is_file():
        pytest.skip("nvidia-cuda-runtime is not installed")
    archive = read_archive((folder / "libcudart_static.a").read_bytes())
    masked: set[bytes] = set()
    for name in ("saxpy", "collatz"):
        program = (ROOT / "fixtures/programs" / name).read_bytes()
        block, eliminated = derive((folder / "libcudart.so.13").read_bytes(), [program])
        assert (len(block.entries), eliminated) == (421, ("cudaGetExportTable",))
        assert block.absent == ("__cudaGetProcAddress",)
        truth, ranges = functions_of(Elf(memoryview(program)))
        there = {public: at for at, public in truth.items()}
        bases = {there[public] - at for at, public in block.entries}
        assert len(bases) == 1
        first = bases.pop() - ranges[0].start
        starts = [start for start, _ in archive.functions]
        assert first == starts[bisect.bisect_left(starts, first)]
        called = {target for part in archive.outside for _, target in part.targets}
        assert {at + first for at in block.quiet} == called
        masked.add(block.masked())
    assert len(masked) == 1
