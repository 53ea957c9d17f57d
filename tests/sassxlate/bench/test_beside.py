"""`bench beside`: programs by two installations in turn."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.bench import beside
from sassxlate.bench.beside import Side, Taken
from sassxlate.bench.programs.find import BenchProgram
from sassxlate.cli import cli
from sassxlate.errors import UsageError

pytestmark = pytest.mark.usefixtures("valid_documents")

PROGRAMS = Path(__file__).resolve().parents[3] / "fixtures" / "programs"
_FAKE = """#!{python} -SE
import os, sys, time
from pathlib import Path
cache = Path(os.environ["SASSXLATE_CACHE_DIR"], "host", "tag")
cache.mkdir(parents=True, exist_ok=True)
made = len(list(cache.iterdir()))
if made < 3:
    (cache / f"{{made}}.sxh").touch()
assert sys.argv[1:5] == ["run", "--device", "emulator", "--"], sys.argv
with open({log!r}, "a") as file:
    print({name!r}, made, *sys.argv[6:], file=file)
while time.process_time() < {seconds} * (made == 3):
    pass
sys.exit({status})
"""


def _fake(folder: Path, name: str, seconds: float, status: int = 0) -> Path:
    """A command that makes code in its first three runs, which take no time."""
    path = folder / name
    log = str(folder / "log")
    path.write_text(
        _FAKE.format(python=sys.executable, log=log, name=name, seconds=seconds, status=status)
    )
    path.chmod(0o700)
    return path


def _sides(folder: Path, *commands: Path) -> tuple[Side, Side]:
    for command in commands:
        (folder / f"at-{command.name}").mkdir()
    ours, other = (Side(c.name, (str(c),), folder / f"at-{c.name}") for c in commands)
    return ours, other


def _no_rest(_: Side) -> None:
    pass


_PROGRAM = BenchProgram("p", PROGRAMS / "saxpy", "sm_80", "0", ("7",))


def test_runs_are_warm_and_in_turn(tmp_path: Path) -> None:
    sides = _sides(tmp_path, _fake(tmp_path, "slow", 0.2), _fake(tmp_path, "fast", 0.0))
    found = beside.compare(_PROGRAM, sides, 2, 20, beside.run, _no_rest)
    log = (tmp_path / "log").read_text().splitlines()
    warming = [f"{name} {min(n, 3)} 7" for name in ("slow", "fast") for n in range(4)]
    assert log[:8] == warming
    assert log[8:] == ["fast 3 7", "slow 3 7", "slow 3 7", "fast 3 7"]
    assert not found.failed
    assert found.cpu[0] > 0.19 > found.cpu[1] > 0
    assert found.wall[0] > 0.19


def test_a_program_that_fails_is_not_rated(tmp_path: Path) -> None:
    sides = _sides(tmp_path, _fake(tmp_path, "good", 0.0), _fake(tmp_path, "bad", 0.0, 3))
    failed = beside.compare(_PROGRAM, sides, 1, 20, beside.run, _no_rest)
    assert failed.failed == "bad: exit status 3"
    late = beside.run(Side("s", ("sh", "-c", "sleep 60"), tmp_path), _PROGRAM, 0.2)
    assert (late.status, late.wall < 20) == (124, True)
    rated = beside.figures([failed, beside.Compared("q", (1.0, 2.0), (3.0, 3.0))])
    assert [(f.name, f.values, f.met) for f in rated] == [
        ("q: ours / the other (CPU)", (0.5,), True),
        ("q: ours / the other (wall)", (1.0,), None),
        ("geometric mean of the 1 (CPU)", (0.5,), None),
        ("geometric mean of the 1 (wall)", (1.0,), None),
    ]
    with pytest.raises(UsageError, match="SX0817"):
        beside.figures([failed])


def test_the_least_counts() -> None:
    took = iter([1.0, 1.0, 9.0, 9.0, 2.0, 3.0, 2.5, 2.0])

    def run(side: Side, _program: BenchProgram, _limit_s: float) -> Taken:
        return Taken(next(took), 1.0)

    sides = Side("a", (), Path("/nowhere")), Side("b", (), Path("/nowhere"))
    found = beside.compare(_PROGRAM, sides, 2, 1, run, _no_rest)
    assert found.cpu == (2.5, 2.0)  # b a a b
    slow = dataclasses.replace(found, cpu=(2.07, 2.0))
    assert [beside.figures([one])[0].met for one in (found, slow)] == [False, False]
    assert beside.figures([dataclasses.replace(found, cpu=(2.05, 2.0))])[0].met is True


def test_the_service_is_waited_for(tmp_path: Path) -> None:
    """Whatever has the side's cache counts, and nothing else."""
    side = Side("s", (), tmp_path)
    text = "import time\nwhile time.process_time() < 0.3: pass\nprint('rest', flush=True)\ninput()"
    service = subprocess.Popen(
        [sys.executable, "-c", text], env=side.environment(), stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        beside.wait_for_rest(side)
        assert service.stdout
        assert service.stdin
        used = beside.ticks(side)
        assert used >= 28
        assert beside.ticks(Side("t", (), tmp_path / "t")) == 0
    finally:
        service.kill()
        service.communicate()


def test_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a command"):
        list(beside.compare_all([_PROGRAM], tmp_path / "none", 1, 1))
    other = _fake(tmp_path, "other", 0.0, 3)
    asked = ["bench", "beside", str(other), str(PROGRAMS), "--only", "none"]
    done = CliRunner().invoke(cli, asked)
    assert (done.exit_code, "no program has such a name" in done.output) == (2, True)


def test_two_installations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both run what the folder has; a program that takes too much more is a missed target."""

    def warm(side: Side, program: BenchProgram, _limit_s: float) -> Taken:
        assert program.name == "saxpy"
        return Taken(0.5 if side.import_root else 0.25, 0.5)

    monkeypatch.setattr(beside, "run", warm)
    monkeypatch.setattr(beside, "wait_for_rest", _no_rest)
    other = _fake(tmp_path, "other", 0.0)
    asked = ["bench", "beside", str(other), str(PROGRAMS), "--only", "^saxpy$", "--repeat", "1"]
    done = CliRunner().invoke(cli, [*asked, "--check", "--format", "json"])
    assert done.exit_code == 1, done.output
    cpu, wall, *means = json.loads(done.stdout)["figures"]
    assert (cpu["name"], cpu["median"], cpu["met"]) == ("saxpy: ours / the other (CPU)", 2, False)
    assert (wall["median"], wall["met"], [m["median"] for m in means]) == (1, None, [2, 1])
