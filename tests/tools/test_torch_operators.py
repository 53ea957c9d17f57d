"""The operator suite of PyTorch: its declarations, and what becomes of a process's events."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tools.clients.torch_operators import results
from tools.clients.torch_operators.declare import TYPES, Case
from tools.clients.torch_operators.operators import OPERATORS, cases
from tools.clients.torch_operators.supervise import Plan, Runner, rows_of, said_by

START = {"event": "start", "id": "add/f32"}
END = {"event": "end", "id": "add/f32", "verdict": "right", "seconds": 0.1}


def test_declarations_are_well_formed() -> None:
    """Names are unique, dtypes known, inputs kinds with lengths, expressions compile."""
    names = [op.name for op in OPERATORS]
    assert len(names) == len(set(names)) >= 300
    for op in OPERATORS:
        assert op.dtypes
        assert len(set(op.dtypes)) == len(op.dtypes)
        assert set(op.dtypes) <= set(TYPES)
        for spec in op.inputs:
            assert re.fullmatch(r"([npuedswfm]|i\d+)( \d+)+", spec), (op.name, spec)
        code = compile(op.call, op.name, "eval")
        used = {name for name in "abcdefgh" if name in code.co_names}
        assert used <= set("abcdefgh"[: len(op.inputs)]), op.name
        assert op.tolerance.reason


def test_every_operator_comes_once_before_any_comes_twice() -> None:
    first = cases()[: len(OPERATORS)]
    assert [case.op for case in first] == list(OPERATORS)
    assert first[0] == Case(OPERATORS[0], OPERATORS[0].dtypes[0])


def test_an_error_with_a_code_is_a_refusal() -> None:
    summary = (
        "sassxlate: 1 refusal in this run; attach to a report:\nsassxlate:   SX0403: no rule\n"
    )
    said = said_by(
        "noise\n@@ add/f32\nsassxlate: SX0403: no rule\nRuntimeError\n@@ b/f32\nfine\n" + summary
    )
    assert said == {"add/f32": "SX0403: no rule"}
    rows = rows_of([START, {**END, "verdict": "error"}], ["add/f32"], said, "", 0, "")
    assert [row["verdict"] for row in rows] == ["refused"]
    assert results.code(rows[0]) == "SX0403"


def test_what_a_library_says_once_a_process_explains_later_errors() -> None:
    later = {"event": "end", "id": "b/f32", "verdict": "error", "text": "CUBLAS_STATUS"}
    events = [START, {**END, "verdict": "error"}, {"event": "start", "id": "b/f32"}, later]
    rows = rows_of(events, ["add/f32", "b/f32"], {"add/f32": "SX0765: a table"}, "", 0, "")
    assert [(row["verdict"], results.code(row)) for row in rows] == [("refused", "SX0765")] * 2


@pytest.mark.parametrize(
    ("events", "stopped", "expected"),
    [
        ([START, END, {"event": "finished"}], "", ["right"]),
        ([START], "", ["crash"]),
        ([START], "case", ["timed out"]),
        ([START], "deadline", []),
        ([], "", ["crash"]),
        ([START, END], "", ["right"]),
    ],
)
def test_the_case_that_ended_a_process_has_a_row(
    events: list[results.Row], stopped: str, expected: list[str]
) -> None:
    rows = rows_of(events, ["add/f32", "sub/f32"], {}, stopped, -11, "Segmentation fault\n")
    assert [row["verdict"] for row in rows] == expected


def test_rows_survive_an_interruption_and_make_a_table(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    good = {"id": "add/f32", "verdict": "right", "gpu": "bits"}
    bad = {"id": "sub/f16", "verdict": "refused", "said": "SX0403: a | b"}
    out.write_text("\n".join((json.dumps(good), json.dumps(bad), '{"id": "mul/f3')), "utf-8")
    rows = results.load(out)
    text = results.table(rows, ["add/f32", "sub/f16", "mul/f32"])
    assert "1 of 2 right (50.0 %); 1 not run." in text
    assert "| sub/f16 | refused | SX0403 | SX0403: a / b |" in text
    assert results.summary(rows, ["add/f32"])["add/f32"]["gpu"] == "bits"


def test_a_process_that_cannot_start_its_cases_ends_with_rows(tmp_path: Path) -> None:
    """A Python without torch: each case is a crash, and the run ends."""
    out = tmp_path / "out.jsonl"
    plan = Plan((sys.executable, "-S"), "cpu", None, 2, 1, 30.0, float("inf"), None)
    assert Runner(plan, out).run(["add/f32", "sub/f32"])
    assert {row["verdict"] for row in results.load(out).values()} == {"crash"}
