"""`bench engines`: a program with the rules' code and with the optimising tier's, in turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.bench import engines
from sassxlate.bench.figures import Figure
from sassxlate.cli import cli
from sassxlate.errors import ShimError, UsageError
from sassxlate.runtime_shim import paths

pytestmark = pytest.mark.usefixtures("valid_documents")

PROGRAMS = Path(__file__).resolve().parents[3] / "fixtures" / "programs"


def test_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        paths.library_dir()
    except ShimError as error:
        pytest.skip(str(error))
    (tmp_path / "run").mkdir(mode=0o700)
    monkeypatch.setenv("SASSXLATE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("SASSXLATE_SERVICE_IDLE", "10")
    asked = ["bench", "engines", str(PROGRAMS), "--only", "saxpy", "--repeat", "2"]
    done = CliRunner().invoke(cli, [*asked, "--format", "json"])
    assert done.exit_code == 0, done.output
    program, mean, *_ = json.loads(done.stdout)["figures"]
    assert program["name"] == "saxpy: rules / llvm (CPU)"
    assert (program["repeats"], program["median"] > 0) == (2, True)
    assert mean["name"] == "geometric mean of the 1"
    assert mean["median"] == pytest.approx(program["median"])
    # The second engine's code is there, apart from the rules'.
    (folder,) = (tmp_path / "cache").glob("engine-*")
    assert list(folder.rglob("*.hybrid"))


def test_what_is_rated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with too little work is shown, and not in the mean of those that compute."""
    for name in ("idle", "much", "little"):
        (tmp_path / name).write_text("#!/bin/true")
        (tmp_path / name).chmod(0o700)
    times = {"idle": (0.0, 0.0), "much": (0.03, 0.02), "little": (0.0004, 0.0008)}

    def seconds(program: Path, engine: str, *_: object) -> float:
        return times[program.name][engine == "llvm"]

    monkeypatch.setattr(engines, "_seconds", seconds)
    found = engines.measure(tmp_path, ("rules", "llvm"), 3)

    def shown(figure: Figure) -> tuple[float, float | None]:
        return round(figure.median, 3), figure.target

    assert [shown(f) for f in found] == [(0.5, None), (1.5, 1.0), (0.866, None), (1.5, 1.15)]
    monkeypatch.setattr(engines, "COMPUTES_S", 1.0)
    assert [f.target for f in engines.measure(tmp_path, ("rules", "llvm"), 3)] == [None] * 3
    with pytest.raises(UsageError, match="no executable"):
        engines.measure(tmp_path, ("rules", "llvm"), 1, "idle")
