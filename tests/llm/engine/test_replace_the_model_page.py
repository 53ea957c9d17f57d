"""The proposer of docs/how-to/replace-the-model.md is what the page says that it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "how-to" / "replace-the-model.md"


def test_the_proposer_of_the_page(tmp_path: Path) -> None:
    """It runs, and what it left out wrongly is refuted; what it may leave out is taken."""
    pytest.importorskip("z3", reason="z3-solver is not installed")
    text = PAGE.read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    program = tmp_path / "leave_one_out.py"
    program.write_text(code)
    cubin = ROOT / "fixtures" / "kernels" / "sm_90" / "permute_bytes.cubin"
    done = subprocess.run(
        [sys.executable, str(program), str(cubin)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    shown = [line.split() for line in done.stdout.splitlines()]
    assert {line[1] for line in shown} == {"leave-one-out-1", "rules"}
    assert all(line[3] == "Proved" for line in shown if line[1] == "leave-one-out-1")
    kept = {line[0] for line in shown if line[1] == "leave-one-out-1"}
    page = [line.split() for line in text.splitlines() if "accepted   Proved" in line]
    assert kept == {line[0] for line in page}
