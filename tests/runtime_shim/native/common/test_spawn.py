"""The native libraries' start of the service, in an application with threads and signals."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
NATIVE = ROOT / "runtime_shim" / "native"
SOURCES = tuple(f"common/{n}.cpp" for n in ("spawn", "files", "log", "trusted", "blake2b"))


def _build(folder: Path, *options: str) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ here")
    program = folder / "spawning"
    command = [compiler, "-std=c++17", "-O1", "-g1", "-D_GNU_SOURCE", "-pthread", *options]
    command += [f"-I{NATIVE}", f"-I{NATIVE / 'common'}"]
    command += [str(Path(__file__).with_name("spawning.cpp")), *(str(NATIVE / s) for s in SOURCES)]
    done = subprocess.run([*command, "-ldl", "-o", program], capture_output=True, check=False)
    if b"libtsan" in done.stderr:
        pytest.skip("g++ has no ThreadSanitizer here")
    assert done.returncode == 0, done.stderr.decode()
    return program


@pytest.mark.parametrize(
    ("busy", "options"), [("signals", ()), ("threads", ()), ("threads", ("-fsanitize=thread",))]
)
@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.sweep)])
def test_start_in_a_busy_process(
    busy: str, options: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    """No handler of the application runs in the copies between fork and exec, and these wait for no
    lock that another thread held: a sanitizer's, for one, which stands before `_exit`."""
    program = _build(tmp_path, *options)
    command = [str(program), busy, str(count)]
    if options:  # newer kernels randomise addresses more than its shadow allows
        command = ["setarch", "--addr-no-randomize", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == f"started {count}, handled elsewhere 0\n", done.stderr
    assert "WARNING" not in done.stderr, done.stderr
