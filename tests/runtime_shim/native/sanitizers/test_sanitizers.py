"""The native libraries under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer.

Programs of the other tests run as they do there; the sanitizers must have nothing to say.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .once import once
from .under import runtime_of

ROOT = Path(__file__).resolve().parents[4]
NATIVE = ROOT / "runtime_shim" / "native"
UNDER = Path(__file__).with_name("under.py")
FLAGS = {"asan": "address", "ubsan": "undefined", "tsan": "thread"}
BUILDS = ROOT / "tests" / "e2e" / "builds"
HOSTILE = ROOT / "tests" / "runtime_shim" / "service" / "programs" / "hostile.cu"
ANSWERS = ROOT / "tests" / "runtime_shim" / "native" / "cudart" / "programs" / "answers.cu"
DRIVER = ROOT / "tests" / "runtime_shim" / "native" / "cuda" / "programs"
CHECKS = (
    *("launch", "library", "mixed", "variables", "shared", "limits", "extended", "memory"),
    *("streams", "contexts", "resolution", "facts", "fault", "forked", "ending", "threads"),
    *("reset", "modules", "boxes", "textures", "parameters"),
)
PTX_CHECKS = ("ptx", "ptx_refused", "ptx_link", "ptx_link_refused")  # the driver's compiler, linker

pytestmark = pytest.mark.sweep


def _need(tool: str) -> str:
    found = shutil.which(tool)
    if found is None:
        pytest.skip(f"there is no {tool} here")
    return found


@pytest.fixture(scope="module", params=[*FLAGS])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def libraries(kind: str) -> Path:
    """The libraries of the preset, built."""
    cmake = _need("cmake")
    _need("ninja")

    def build() -> None:
        subprocess.run([cmake, "--preset", kind], cwd=NATIVE, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([cmake, "--build", "--preset", kind], cwd=NATIVE, check=True)

    once(ROOT / "build", kind, build)
    return ROOT / "build" / kind / "installed" / "lib"


def _run(
    kind: str, libraries: Path, folder: Path, *command: object, **environment: str
) -> tuple[subprocess.CompletedProcess[str], str]:
    """The command's outcome, and what the sanitizer reported."""
    log = folder / "report"
    done = subprocess.run(
        [sys.executable, UNDER, libraries, log, kind, "run", "--", *map(str, command)],
        env={**os.environ, "SASSXLATE_CACHE_DIR": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done, "\n".join(p.read_text() for p in folder.glob("report.*"))


def test_the_sanitizer_sees(kind: str, libraries: Path, tmp_path: Path) -> None:
    """Silence is evidence only if a defect would be reported."""
    program = tmp_path / "control"
    source = Path(__file__).with_name("control.cpp")
    options = ["-g", f"-fsanitize={FLAGS[kind]}", "-pthread"]
    subprocess.run([_need("g++"), *options, source, "-o", program], check=True)
    _, report = _run(kind, libraries, tmp_path, program, kind)
    assert "control.cpp" in report


@pytest.mark.parametrize("tier", ["llvm", "baseline", "auto"])
@pytest.mark.parametrize("name", ["saxpy", "reduction", "collatz"])
def test_programs(kind: str, libraries: Path, tmp_path: Path, name: str, tier: str) -> None:
    """By the compiler's code, by stencils, and by stencils that the compiler's code replaces."""
    program = ROOT / "fixtures" / "programs" / name
    done, report = _run(kind, libraries, tmp_path, program, SASSXLATE_TIER=tier)
    assert not report, report
    assert done.returncode == 0, done.stderr


def _built(source: Path, folder: Path, *flags: str) -> Path:
    """The program, by nvcc for sm_80."""
    program = folder / source.stem
    command = [_need("nvcc"), "-O3", "-w", "-arch=sm_80", *flags, source, "-o", program]
    subprocess.run(command, check=True)
    return program


@pytest.mark.parametrize("arguments", [("loop", 100), ("streams", 3)])
def test_under_load(kind: str, libraries: Path, tmp_path: Path, arguments: tuple[str, int]) -> None:
    """Threads, streams, events, graphs, pools: results are checked by the program."""
    program = _built(BUILDS / "endurance.cu", tmp_path)
    done, report = _run(kind, libraries, tmp_path, program, *arguments)
    assert not report, report
    assert " bad 0" in done.stdout, done.stdout + done.stderr


# What the last line of each begins with: their own tests check the rest.
USES: dict[tuple[str, ...], str] = {
    ("textures",): "bad 0 of",
    ("surfaces", "zero"): "bad 0 0 0 0 0",
    ("graphs",): "bad 0",
    ("capture",): "bad 0",
    ("grid",): "bad 0",
    ("functions",): "bad 0",
    ("hostcalls",): "after: cudaErrorAssert",
    ("several_calls",): "assert: cudaErrorAssert",
    ("heap", "4194304"): "157 of",
    ("launches", "80"): "bad 0",
}


@pytest.mark.parametrize("use", USES, ids=" ".join)
def test_uses(kind: str, libraries: Path, tmp_path: Path, use: tuple[str, ...]) -> None:
    """Textures, graphs, cooperative launches, functions of the driver that kernels call."""
    program = _built(BUILDS / f"{use[0]}.cu", tmp_path)
    done, report = _run(kind, libraries, tmp_path, program, *use[1:])
    assert not report, report
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(USES[use]), done.stdout


REPLACED = ["cublas/test_products.py", "cublas/test_hostile.py", "cublas/test_lt.py", "cufft"]


@pytest.mark.parametrize("tests", REPLACED)
def test_replaced_libraries(kind: str, libraries: Path, tmp_path: Path, tests: str) -> None:
    """cuBLAS, cuBLASLt and cuFFT by their own tests, in an application that is Python."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    where = ROOT / "tests" / "runtime_shim" / "native" / tests
    done, report = _run(kind, libraries, tmp_path, *command, where)
    assert not report, report
    # The run's own status tells of what was refused, as the tests want.
    assert " passed" in done.stdout, done.stdout + done.stderr
    assert " failed" not in done.stdout, done.stdout


def test_answers(kind: str, libraries: Path, tmp_path: Path) -> None:
    """Every function of the runtime, with wrong parameters too."""
    program = _built(ANSWERS, tmp_path, "-cudart", "shared")
    done, report = _run(kind, libraries, tmp_path, program)
    assert not report, report
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "arguments",
    ["trap 5", "bytes 1", "far 9999999999", "null", "shared 100", "local 201", "local -100000"],
)
def test_faults(kind: str, libraries: Path, tmp_path: Path, arguments: str) -> None:
    """Kernels that go wrong."""
    program = _built(ROOT / "tests" / "e2e" / "faults.cu", tmp_path)
    done, report = _run(kind, libraries, tmp_path, program, *arguments.split())
    assert not report, report
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("0 7"), done.stdout


@pytest.mark.parametrize(
    ("what", "status"),
    [
        *(("plain", 0), ("fork_before", 0), ("fork_after", 0), ("threads", 0), ("exit", 5)),
        *(("_exit", 6), ("return", 7), ("thread_exit", 8), ("at_exit", 3), ("main_ends", 4)),
        *(("close_all", 0), ("clearenv", 0), ("exec", 0), ("system", 0)),
    ],
)
def test_processes(kind: str, libraries: Path, tmp_path: Path, what: str, status: int) -> None:
    """Forks, threads, and every way to end: `main_ends` loads the libraries from a thread, which
    the linker's lock alone orders after the first look at what is loaded."""
    program = _built(HOSTILE, tmp_path)
    more = {"exec": [program, "plain"], "system": [program]}.get(what, [])
    done, report = _run(kind, libraries, tmp_path, program, what, *more)
    assert not report, report
    assert done.returncode == status, done.stdout + done.stderr


def test_driver(kind: str, libraries: Path, tmp_path: Path) -> None:
    """Faults, forks, resets, threads, and modules loaded and unloaded."""
    nvcc = _need("nvcc")
    program, image = tmp_path / "driver", tmp_path / "image"
    sources = sorted(DRIVER.glob("driver*.cpp"))
    options = ["-std=c++17", "-cudart", "none", f"-L{libraries}", "-l:libcuda.so.1"]
    options += ["-Xlinker", "--allow-shlib-undefined"]
    if runtime := runtime_of(kind):
        # The libraries use functions that the run time intercepts; without it the linker would
        # take the C library's `atexit`, which is hidden, for the one that they use.
        options += ["-Xlinker", runtime]
    subprocess.run([nvcc, *sources, "-o", program, *options], check=True)
    kernels = DRIVER / "kernels.cu"
    subprocess.run([nvcc, "-cubin", "-arch=sm_80", kernels, "-o", image], check=True)
    text = tmp_path / "text"
    subprocess.run([nvcc, "-ptx", "-arch=compute_80", kernels, "-o", text], check=True)
    for check in (*CHECKS, *PTX_CHECKS):
        given = text if check in PTX_CHECKS else image
        more = {"SASSXLATE_CC": "8.0"} if check in PTX_CHECKS else {"MODULE_ROUNDS": "100"}
        done, report = _run(kind, libraries, tmp_path, program, check, given, **more)
        assert not report, f"{check}\n{report}"
        assert done.stdout.endswith("PASS\n"), f"{check}\n{done.stdout}{done.stderr}"
