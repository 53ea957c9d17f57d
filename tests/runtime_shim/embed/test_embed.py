"""`sassxlate embed`: programs run without Python, service or cache, and come back bit for bit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.cli import cli
from sassxlate.disasm.containers import load
from sassxlate.disasm.containers.elf import PHDR
from sassxlate.errors import ShimError
from sassxlate.runtime_shim import paths
from sassxlate.runtime_shim.cache.keys import module_key
from sassxlate.runtime_shim.embed import elf_segment, pack
from sassxlate.runtime_shim.service.early import library
from tools.generate import programs

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "fixtures" / "programs"
SAXPY = KEPT / "saxpy"
Done = subprocess.CompletedProcess


def sassxlate(*arguments: object, cache: Path) -> Done[str]:
    """The command, with a cache of the test's own."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "sassxlate", *map(str, arguments)],
        env={**os.environ, "SASSXLATE_CACHE_DIR": str(cache), "SASSXLATE_SERVICE_IDLE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def here(*arguments: object) -> tuple[int, str]:
    """The command in this process: its status and what it says on standard error."""
    done = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stderr


def alone(program: Path, *arguments: str, home: Path, **more: str) -> Done[str]:
    """The program where nothing of ours can be found: no PATH, an empty home."""
    home.mkdir(mode=0o700, exist_ok=True)
    done = subprocess.run(
        [program, *arguments],
        env={"PATH": "", "HOME": str(home), "XDG_RUNTIME_DIR": str(home), **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not [path for path in home.rglob("*") if path.suffix in (".sock", ".lock", ".log")]
    return done


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that the tests share."""
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """saxpy, embedded, with our libraries beside it."""
    made = tmp_path_factory.mktemp("saxpy") / "saxpy.amd"
    done = sassxlate("embed", SAXPY, "-o", made, cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    return made


def test_runs_alone_and_comes_back(saxpy: Path, cache: Path, tmp_path: Path) -> None:
    """The same output as under `run`; the original's bytes; moved together with its libraries."""
    wanted = sassxlate("run", "--", SAXPY, cache=cache)
    shutil.copytree(saxpy.parent, tmp_path / "elsewhere", symlinks=True)
    moved = tmp_path / "elsewhere" / saxpy.name
    done = alone(moved, home=tmp_path / "home")
    assert (done.returncode, done.stdout, done.stderr) == (0, wanted.stdout, "")
    assert "PASS" in done.stdout
    back = tmp_path / "saxpy"
    done = sassxlate("unembed", moved, "-o", back, cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert back.read_bytes() == SAXPY.read_bytes()
    assert back.stat().st_mode & 0o777 == SAXPY.stat().st_mode & 0o777 | 0o200


@pytest.mark.parametrize(("words", "cc"), [((), 90), (("--arch", "sm_80"), 80)])
def test_the_device_that_it_is_for(
    words: tuple[str, ...], cc: int, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest that the file has code for, or the one that is asked for: its code alone."""
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(cache))
    monkeypatch.delenv("SASSXLATE_CC", raising=False)
    made = tmp_path / "made"
    assert here("embed", SAXPY, "-o", made, "--host", "none", *words) == (0, "")
    segment = elf_segment.find(elf_segment.read(made.read_bytes()))
    assert segment is not None
    carried = pack.read(segment)
    assert carried.settings["cc"] == str(cc)
    ((offset, size, archs, _),) = library.images(SAXPY)
    assert archs == (80, 90)
    key = module_key(library.part(SAXPY, offset, size), cc)
    manifests = [name for name in carried.files if name.endswith(".txt")]
    assert manifests == [f"gfx1100/module/{key}.txt"]
    assert f"\narch {cc}\n" in bytes(carried.files[manifests[0]]).decode()


def test_no_such_device(tmp_path: Path) -> None:
    status, told = here("embed", SAXPY, "-o", tmp_path / "made", "--arch", "sm_12")
    assert status == 2
    assert told.startswith("sassxlate: SX0719: --arch sm_12: not one of sm_75, ")
    assert not (tmp_path / "made").exists()


def test_run_ignores_what_it_carries(saxpy: Path, cache: Path) -> None:
    """`run` has options of its own, here the strict mode, for which nothing is carried."""
    done = sassxlate("run", "--strict", "--", saxpy, cache=cache)
    assert done.returncode == 0, done.stderr
    assert "PASS" in done.stdout


def test_what_is_not_carried_is_refused(saxpy: Path, tmp_path: Path) -> None:
    """Strict mode, which needs other host code: a line with a code, and the status of a refusal."""
    done = alone(saxpy, home=tmp_path / "home", SASSXLATE_STRICT="1")
    lines = done.stderr.splitlines()
    assert done.returncode == 3, done.stderr
    assert any("SX0792: kernel" in line for line in lines)
    last = r"sassxlate: DO NOT TRUST the output of saxpy.amd: kernel \w+ was not run \(SX0716\)"
    assert re.fullmatch(last, lines[-1]), lines


def test_refused_kernel(cache: Path, tmp_path: Path) -> None:
    """A refusal is carried: the same lines and status as under `run`."""
    program, made = tmp_path / "damaged", tmp_path / "damaged.amd"
    data = SAXPY.read_bytes()
    for _, cubin in load(SAXPY).cubins():
        for kernel in cubin.kernels:
            assert data.count(kernel.code) == 1
            data = data.replace(kernel.code, b"\xff" * 16 + kernel.code[16:])
    program.write_bytes(data)
    program.chmod(0o755)
    wanted = sassxlate("run", "--", program, cache=cache)
    done = sassxlate("embed", program, "-o", made, cache=cache)
    assert done.returncode == 3, done.stderr
    assert "1 refused" in done.stdout
    assert re.search(r"SX02\d\d", done.stderr)
    done = alone(made, home=tmp_path / "home")
    assert (done.returncode, done.stdout) == (3, wanted.stdout)
    mine, theirs = done.stderr.splitlines(), wanted.stderr.splitlines()
    assert mine[0] == theirs[0]
    assert mine[-1] == theirs[-1].replace("damaged:", "damaged.amd:")
    assert "SX02" in mine[-1]
    done = alone(made, home=tmp_path / "home", SASSXLATE_RUN_KEEP_STATUS="1")
    assert done.returncode not in (0, 3)
    assert done.stderr.splitlines()[-1] == mine[-1]


def test_damaged_translation(saxpy: Path, tmp_path: Path) -> None:
    """A changed byte in the code, or in the index, is never run."""
    data = saxpy.read_bytes()
    segment = elf_segment.find(elf_segment.read(data))
    assert segment is not None
    carried = pack.read(segment)
    code = next(bytes(v) for k, v in carried.files.items() if k.endswith(".hsaco"))
    index = data.find(b"targets gfx1100")
    shutil.copytree(saxpy.parent / "sassxlate-libs", tmp_path / "sassxlate-libs")
    for place in (data.find(code) + 64, index):
        made = tmp_path / "damaged.amd"
        made.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        made.chmod(0o755)
        done = alone(made, home=tmp_path / "home")
        assert done.returncode == 3, done.stderr
        assert "SX0791: the translation that the program carries is damaged" in done.stderr
        assert "DO NOT TRUST" in done.stderr.splitlines()[-1]
        with pytest.raises(ShimError, match="damaged"):
            elf_segment.remove(elf_segment.read(made.read_bytes()))


def _bits32(data: bytes) -> bytes:
    return data[:4] + b"\1" + data[5:]


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _text(_: bytes) -> bytes:
    return b"#!/bin/sh\n" * 10


def _other_machine(data: bytes) -> bytes:
    return data[:18] + b"\xb7\0" + data[20:]


@pytest.mark.parametrize(
    ("change", "code"),
    [(_bits32, "SX0703"), (_other_machine, "SX0703"), (_cut, "SX0794"), (_text, "SX0794")],
)
def test_files_that_cannot(change: Callable[[bytes], bytes], code: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(change(SAXPY.read_bytes()))
    status, told = here("embed", file, "-o", tmp_path / "out")
    assert status == (126 if code == "SX0703" else 2), told
    assert re.fullmatch(f"sassxlate: {code}: {re.escape(str(file))}: .*\n", told)
    assert not (tmp_path / "out").exists()


def test_files_that_should_not(
    saxpy: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without device code; embedded twice; a program as a library; unembedded twice."""
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(cache))
    for arguments, code in (
        (("embed", sys.executable, "-o", tmp_path / "out"), "SX0796"),
        (("embed", saxpy, "-o", tmp_path / "out"), "SX0795"),
        (("embed", "--library", SAXPY, "-o", tmp_path / "out"), "SX0794"),
        (("unembed", SAXPY, "-o", tmp_path / "out"), "SX0797"),
    ):
        status, told = here(*arguments)
        assert status != 0
        assert code in told
        assert told.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_changed_afterwards(saxpy: Path, tmp_path: Path) -> None:
    """The original comes back bit for bit, or not at all."""
    made = tmp_path / "changed"
    data = bytearray(saxpy.read_bytes())
    data[len(SAXPY.read_bytes()) // 2] ^= 1
    made.write_bytes(data)
    assert "SX0797" in here("unembed", made, "-o", tmp_path / "out")[1]
    assert not (tmp_path / "out").exists()


def test_header_table_of_the_segment(saxpy: Path) -> None:
    """The program headers lie as far from the start in memory as in the file, for old kernels."""
    image = elf_segment.read(saxpy.read_bytes())
    table = image.segment(elf_segment.PT_PHDR)
    assert table is not None
    assert table[2] == table[3] == image.head[4]
    assert table[5] == PHDR.size * len(image.segments)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["static", "shared", "stripped"])
@pytest.mark.parametrize("name", sorted(programs.load_programs()))
def test_sixteen_programs(
    name: str, kind: str, nvcc: Callable[..., str], cache: Path, tmp_path: Path
) -> None:
    """The same output as under `run`, for each way to link the runtime."""
    program = programs.load_programs()[name]
    built, made = tmp_path / name, tmp_path / f"{name}.amd"
    more = ["-cudart", "shared"] if kind == "shared" else ["-Xlinker", "-s"] * (kind == "stripped")
    nvcc("-arch=sm_80", "-O3", *program.flags, *more, "-o", built, program.source)
    wanted = sassxlate("run", "--", built, cache=cache)
    assert sassxlate("embed", built, "-o", made, cache=cache).returncode == 0
    done = alone(made, home=tmp_path / "home")
    assert done.returncode == wanted.returncode == 0, done.stderr

    def kept(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("time:")]

    assert kept(done.stdout) == kept(wanted.stdout)
    back = tmp_path / "back"
    assert sassxlate("unembed", made, "-o", back, cache=cache).returncode == 0
    assert back.read_bytes() == built.read_bytes()


LIBRARY = """
__global__ void twice(int *p) { p[threadIdx.x] *= 2; }
__global__ void thrice(int *p) { p[threadIdx.x] *= 3; }
extern "C" int run(int which) {
  int *p, h[256], sum = 0;
  for (int i = 0; i < 256; ++i) h[i] = i;
  if (cudaMalloc(&p, sizeof h)) return -1;
  cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice);
  if (which) twice<<<1, 256>>>(p); else thrice<<<1, 256>>>(p);
  if (int error = cudaGetLastError()) return -error;
  if (cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost)) return -1;
  for (int i = 0; i < 256; ++i) sum += h[i];
  return sum;
}
"""
CALLER = "import ctypes, sys; print(*(ctypes.CDLL(sys.argv[1]).run(n) for n in (1, 0)))"


@pytest.mark.sweep
def test_library(nvcc: Callable[..., str], cache: Path, tmp_path: Path) -> None:
    """A library that Python loads: its kernels run without the service, and it comes back."""
    source, built = tmp_path / "twice.cu", tmp_path / "libtwice.so"
    source.write_text(LIBRARY)
    nvcc("-arch=sm_80", "-shared", "-Xcompiler", "-fPIC", "-o", built, source)
    made = tmp_path / "out" / "libtwice.so"
    made.parent.mkdir()
    assert sassxlate("embed", "--library", built, "-o", made, cache=cache).returncode == 0
    done = alone(Path(sys.executable), "-I", "-c", CALLER, str(made), home=tmp_path / "home")
    assert (done.stdout, done.stderr) == ("65280 97920\n", "")
    back = tmp_path / "back.so"
    assert sassxlate("unembed", made, "-o", back, cache=cache).returncode == 0
    assert back.read_bytes() == built.read_bytes()
