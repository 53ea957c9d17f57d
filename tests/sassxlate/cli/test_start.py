"""What a command loads at its start: `--help` and a missing extra are cheap and plain."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sassxlate.cli import SUBCOMMANDS

CUBIN = Path(__file__).resolve().parents[3] / "fixtures" / "kernels" / "sm_80" / "early_exit.cubin"
# A module of None in sys.modules cannot be imported: as where an extra is not installed.
_WITHOUT = "import sys\nfor name in {absent!r}: sys.modules[name] = None\n"
_NEED_NUMPY = {"bench", "interpret"}


def _python(absent: tuple[str, ...], program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", _WITHOUT.format(absent=absent) + program],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_command_is_imported_without_the_solver_and_numpy(name: str) -> None:
    """z3 is an extra, and NumPy's threads count against a limit of processes."""
    absent = ("z3",) if name in _NEED_NUMPY else ("z3", "numpy")
    done = _python(absent, f"import sassxlate.cli.{name}")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("blocks", "--help"), 0, ""),
        (("blocks", str(CUBIN)), 2, "SX0823"),
        (("rules", "IADD3"), 2, "SX0823"),
    ],
)
def test_verify_without_the_solver(arguments: tuple[str, ...], status: int, code: str) -> None:
    """The error names the extra."""
    program = f"sys.argv = ['sassxlate', 'verify', *{arguments!r}]\n"
    done = _python(("z3",), program + "from sassxlate.cli import main\nmain()")
    assert done.returncode == status, done.stderr
    assert code in done.stderr
    assert "SX0821" not in done.stderr
