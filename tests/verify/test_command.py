"""`sassxlate verify` on the kept programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.cli import main
from sassxlate.cli.verify import command

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "programs"


def test_saxpy_is_proved() -> None:
    done = CliRunner().invoke(command, [str(PROGRAMS / "saxpy"), "--arch", "sm_90", "-v"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[-1] == "all: 2 proved"
    assert "unknown" not in done.output


def test_json() -> None:
    done = CliRunner().invoke(
        command, [str(PROGRAMS / "collatz"), "--arch", "sm_80", "--json", "--timeout", "3"]
    )
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in done.stdout.splitlines()]
    verdicts = [r["verdict"] for r in records]
    assert verdicts.count("Proved") > len(verdicts) // 2
    assert "Refuted" not in verdicts


def test_no_such_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", str(PROGRAMS / "saxpy"), "-k", "nothing*"])
    assert ended.value.code == 2
    assert "nothing*" in capsys.readouterr().err
