"""`sassxlate verify` on the kept programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.cli import main
from sassxlate.cli.verify.blocks import command

PROGRAMS = Path(__file__).resolve().parents[3] / "fixtures" / "programs"


def test_saxpy_is_proved() -> None:
    done = CliRunner().invoke(command, [str(PROGRAMS / "saxpy"), "--arch", "sm_90", "-v"])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[-1] == "all: 2 proved"
    assert "unknown" not in done.output


def test_json() -> None:
    done = CliRunner().invoke(
        command,
        [str(PROGRAMS / "collatz"), "--arch", "sm_80", "--format", "json", "--timeout", "3"],
    )
    assert done.exit_code == 0, done.output
    records = [json.loads(line) for line in done.stdout.splitlines()]
    verdicts = [r["verdict"] for r in records]
    assert verdicts.count("Proved") > len(verdicts) // 2
    assert "Refuted" not in verdicts


def test_no_such_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "blocks", str(PROGRAMS / "saxpy"), "-k", "nothing*"])
    assert ended.value.code == 2
    assert "nothing*" in capsys.readouterr().err


def test_translate(tmp_path: Path) -> None:
    from sassxlate.cli.translate import command as translate

    arguments = [str(PROGRAMS / "saxpy"), "--arch", "sm_90", "--verify", "-o", str(tmp_path)]
    done = CliRunner().invoke(translate, arguments)
    assert done.exit_code == 0, done.output
    assert "blocks: 2 proved" in done.output
    (entry,) = json.loads((tmp_path / "report.json").read_text())["kernels"]
    assert entry["verdicts"] == {"proved": 2}


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept verdicts are used, damaged ones are not; --no-cache proves again."""
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path))
    arguments = [str(PROGRAMS / "saxpy"), "--arch", "sm_90", "--format", "json", "-j1"]

    def cached(*more: str) -> list[bool]:
        done = CliRunner().invoke(command, [*arguments, *more])
        assert done.exit_code == 0, done.output
        records = [json.loads(line) for line in done.stdout.splitlines()]
        assert {r["verdict"] for r in records} == {"Proved"}
        return [r["cached"] for r in records]

    assert cached() == [False, False]
    assert cached() == [True, True]
    assert cached("--no-cache") == [False, False]
    assert cached("--timeout", "9") == [False, False], "other settings"
    for path in tmp_path.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert cached() == [False, False]


def test_processes() -> None:
    """Any number of processes gives the same answers."""
    arguments = [str(PROGRAMS / "collatz"), "--no-cache", "-v"]
    one, two = (CliRunner().invoke(command, [*arguments, j]).stdout for j in ("-j1", "-j2"))
    assert one == two
