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

from .under import runtime_of

ROOT = Path(__file__).resolve().parents[4]
NATIVE = ROOT / "runtime_shim" / "native"
UNDER = Path(__file__).with_name("under.py")
FLAGS = {"asan": "address", "ubsan": "undefined", "tsan": "thread"}
ENDURANCE = ROOT / "tests" / "e2e" / "builds" / "endurance.cu"
DRIVER = ROOT / "tests" / "runtime_shim" / "native" / "cuda" / "programs"
CHECKS = (
    *("launch", "library", "mixed", "variables", "shared", "limits", "extended", "memory"),
    *("streams", "contexts", "resolution", "facts", "fault", "forked", "ending", "threads"),
    *("reset", "modules", "boxes", "textures", "parameters"),
)

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
    subprocess.run([cmake, "--preset", kind], cwd=NATIVE, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([cmake, "--build", "--preset", kind], cwd=NATIVE, check=True)
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


@pytest.mark.parametrize("name", ["saxpy", "reduction", "collatz"])
def test_programs(kind: str, libraries: Path, tmp_path: Path, name: str) -> None:
    done, report = _run(kind, libraries, tmp_path, ROOT / "fixtures" / "programs" / name)
    assert not report, report
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [("loop", 100), ("streams", 3)])
def test_under_load(kind: str, libraries: Path, tmp_path: Path, arguments: tuple[str, int]) -> None:
    """Threads, streams, events, graphs, pools: results are checked by the program."""
    program = tmp_path / "endurance"
    command = [_need("nvcc"), "-O3", "-w", "-arch=sm_80", ENDURANCE, "-o", program]
    subprocess.run(command, check=True)
    done, report = _run(kind, libraries, tmp_path, program, *arguments)
    assert not report, report
    assert " bad 0" in done.stdout, done.stdout + done.stderr


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
    for check in CHECKS:
        done, report = _run(kind, libraries, tmp_path, program, check, image, MODULE_ROUNDS="100")
        assert not report, f"{check}\n{report}"
        assert done.stdout.endswith("PASS\n"), f"{check}\n{done.stdout}{done.stderr}"
