"""`sassxlate bench programs`: verdicts, comparison with a GPU's output, resuming, the table."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from sassxlate.bench.programs import run as bench
from sassxlate.bench.programs import table
from sassxlate.bench.programs.compare import difference
from sassxlate.bench.programs.find import BenchProgram, Truth, add_run, read_truth
from sassxlate.cli.bench import command
from sassxlate.executors import HERE

pytestmark = pytest.mark.usefixtures("valid_documents")

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("sum 1.00001\nPASS", ["sum 1.00002\nPASS"]),
        ("took 5.1 ms\nx 3", ["took 0.2 ms\nx 3", "took 0.3 ms\nx 3"]),
        ("GPU Device 0: gfx1100\nx", ["GPU Device 0: Hopper\nx"]),
        ("id 17\nx 3", ["id 4\nx 3", "id 5\nx 3"]),
        ("b\na", ["a\nb"]),
        ("RMSE = 0.00005", ["RMSE = 0.00007"]),
        ("nan", ["-nan"]),
        ("setting device 0 with name Emulated card (sassxlate)\nx", ["x"]),
        ("x\nWarning: Resource leak detected by SharedSignalPool, 77 Signals leaked.", ["x"]),
    ],
)
def test_agrees(ours: str, theirs: list[str]) -> None:
    assert difference(ours, theirs) == ""


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("count 3", ["count 4"]),
        ("sum 1.01", ["sum 1.02"]),
        ("FAIL", ["PASS"]),
        ("x\ny", ["x"]),
        ("", ["x"]),
        ("RMSE = 0.5", ["RMSE = 0.00007"]),
        ("a 1 b 2", ["a 1 b 3", "a 1 b 3"]),
    ],
)
def test_differs(ours: str, theirs: list[str]) -> None:
    assert difference(ours, theirs)


def _program(proof: str = "") -> BenchProgram:
    return BenchProgram("suite/one", Path("one"), "sm_80", "ab", ("1",), "domain", proof)


def _run(**changes: object) -> bench.ProgramRun:
    fields: dict[str, object] = {
        "status": 0, "out": "PASS\n", "err": "", "seconds": 1.0, "cpu": 1.0,
        "calls": (), "launches": 1,
    }  # fmt: skip
    return bench.ProgramRun(**{**fields, **changes})  # type: ignore[arg-type]


TRUTH = Truth(0, ("PASS\n",), ("",))


@pytest.mark.parametrize(
    ("changes", "verdict", "first"),
    [
        ({}, "pass", ""),
        ({"launches": 0}, "no kernel", ""),
        ({"out": "FAIL\n"}, "wrong", ""),
        ({"out": "other\n"}, "wrong", ""),
        ({"status": 1}, "wrong", ""),
        ({"status": 139}, "crash", ""),
        ({"stopped": "timeout"}, "timeout", ""),
        ({"status": 1, "calls": (("cuMemAlloc_v2", 2),)}, "wrong", "cuMemAlloc_v2 2"),
        ({"err": "sassxlate: SX0403: k:/*0010*/: TEX: no rule\n"}, "refused", "TEX"),
        (
            {"status": 1, "err": "sassxlate: SX0712: cuGraphCreate is not implemented\n"},
            "unsupported call",
            "cuGraphCreate",
        ),
    ],
)
def test_verdicts(changes: dict[str, object], verdict: str, first: str) -> None:
    outcome = bench.judge(_program(), _run(**changes), TRUTH, "tag")
    assert (outcome.verdict, outcome.first) == (verdict, first)


def test_a_program_that_fails_there_as_well_is_compared() -> None:
    truth = Truth(1, ("FAIL\n",), ("",))
    assert bench.judge(_program(), _run(status=1, out="FAIL\n"), truth, "").verdict == "pass"
    assert bench.judge(_program("DONE"), _run(), None, "").verdict == "wrong"


def test_outputs_are_a_truth(tmp_path: Path) -> None:
    """What differs between two runs is known by them; runs with other arguments are dropped."""
    file = tmp_path / "outputs.json"
    add_run(file, BenchProgram("suite/one", Path("one"), "sm_80", "ab", ("2",)), (1, "", ""))
    for line in ("5 ms", "6 ms"):
        add_run(file, _program(), (0, f"PASS\n{line}\n", ""))
    truth = read_truth(file)
    assert truth == {"suite/one 1": Truth(0, ("PASS\n5 ms\n", "PASS\n6 ms\n"), ("", ""))}


def test_results_of_the_emulated_card_are_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What passed on the emulated device was not run on AMD's library yet, nor on another one."""
    asked: list[bool] = []

    def execute(*_args: object, emulated_card: bool, **_limits: object) -> bench.ProgramRun:
        asked.append(emulated_card)
        return _run()

    monkeypatch.setattr(bench, "execute", execute)
    userland = bench.rocm.Userland("6.4.3", Path("hip"))
    monkeypatch.setattr(bench.rocm, "find", lambda: userland)
    limits = bench.Limits(1, 1)
    for card in (False, True, False, True):
        made = bench.Bench(tmp_path / "results", limits, {}, stale=False, emulated_card=card)
        assert [o.verdict for o in made.run([_program()], HERE)] == ["pass"]
    assert asked == [False, True]
    userland = bench.rocm.Userland("7.2.4", Path("hip"))
    made = bench.Bench(tmp_path / "results", limits, {}, stale=False, emulated_card=True)
    assert [o.verdict for o in made.run([_program()], HERE)] == ["pass"]
    assert asked == [False, True, True]


def test_a_folder(tmp_path: Path) -> None:
    """Runs a program, takes its result from the file the next time, writes a document."""
    folder = tmp_path / "programs" / "saxpy"
    folder.mkdir(parents=True)
    shutil.copy2(ROOT / "fixtures" / "programs" / "saxpy", folder / "saxpy")
    page = tmp_path / "page.md"
    page.write_text(f"before\n{table.BEGIN}\nold\n{table.END}\nafter\n")
    results = tmp_path / "results.jsonl"
    args = ["programs", str(tmp_path / "programs"), "--results", str(results), "--check"]
    args += ["--timeout", "300", "--write", str(page)]
    for _ in range(2):
        done = CliRunner().invoke(command, args, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert "100.0 % of 1 pass" in done.output
    (line,) = results.read_text().splitlines()
    assert json.loads(line)["launches"] > 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| saxpy |" in text
