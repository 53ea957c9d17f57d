"""`pip install sassxlate` brings no z3: what needs no proof works without it, the rest says what is
missing.  Once every engine but the rules ended in an internal error there, llvm and best too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SAXPY = Path(__file__).parents[2] / "fixtures" / "programs" / "saxpy"
# Python imports this at its start: a finder of paths that finds no z3.
HIDDEN = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "z3" else PathFinder.find_spec(name, path, target)
sys.meta_path[:] = [Without if f is PathFinder else f for f in sys.meta_path]
"""


def _sassxlate(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "sitecustomize.py").write_text(HIDDEN)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]),
        "SASSXLATE_CACHE_DIR": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-P", "-m", "sassxlate", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=environment, check=False
    )


@pytest.mark.parametrize("engine", ["llvm", "best"])
def test_whole_kernels_need_no_solver(tmp_path: Path, engine: str) -> None:
    out = str(tmp_path / "out")
    done = _sassxlate(tmp_path, "translate", str(SAXPY), "--engine", engine, "-o", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert "by LLVM's AMDGPU backend" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["SX1002", "translate", str(SAXPY), "--engine", "search", "-o", "out"],
        ["SX1002", "run", "--engine", "hybrid", "--", str(SAXPY)],
        ["SX1002", "eval", str(SAXPY)],
        ["SX0823", "dataset", "make", "out", "--count", "1"],
        ["SX0823", "verify", "blocks", str(SAXPY)],
    ],
    ids=lambda words: words[1],
)
def test_what_proves_names_the_package(tmp_path: Path, words: list[str]) -> None:
    code, *command = words
    done = _sassxlate(tmp_path, *command)
    assert done.returncode == 2
    assert done.stderr.startswith(f"sassxlate: {code}: ")
    assert "sassxlate[verify]" in done.stderr
