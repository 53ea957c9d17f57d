"""What passes make of small texts (golden/); ``--bless`` writes what they make now."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sassxlate.lowering.pipeline import PASSES
from sassxlate.lowering.rules import TABLE
from tests.lowering.golden_case import FOLDER, made_of, read_case

FILES = sorted([*FOLDER.rglob("*.sass"), *FOLDER.rglob("*.s")])
FAMILIES = (
    "integer", "float", "half", "conversion", "predicates", "memory", "atomics", "warp",
    "convergence", "barriers", "hostcalls", "textures", "matrix", "spills",
)  # fmt: skip
# HOSTCALL stands for a call of a driver's function, whose cases have CALL.
WITHOUT = ["HOSTCALL"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_golden(path: Path, request: pytest.FixtureRequest) -> None:
    case = read_case(path)
    made = made_of(case)
    if request.config.getoption("--bless", default=False):
        case.path.write_text(case.head + made)
        return
    assert made == case.expected
    if "refused" in case.keys:
        assert case.expected.startswith(f"// ==== refused {case.keys['refused']}:")
    else:
        assert not case.expected.startswith("// ==== refused")


def test_every_family_and_pass_has_cases() -> None:
    folders = {p.parent.name for p in FILES}
    assert set(FAMILIES) <= folders
    assert len(FILES) >= 150
    cases = [read_case(p).keys for p in FILES]
    shown = {keys["after"] for keys in cases if "after" in keys}
    alone = {p.parent.name for p in FILES if p.suffix == ".s"}
    same = {"link", "check_lanes", "assemble", "write", "encode"}  # no other code, or no text
    assert {step.name for step in PASSES} - same <= shown | alone


def test_most_rules_have_cases() -> None:
    """A rule without a case is one whose forms are refused or have no code."""
    named = {
        re.sub(r"^@!?U?P\w+ ", "", line).split(".")[0].split()[0]
        for path in FILES
        if path.suffix == ".sass"
        for line in read_case(path).body.splitlines()
        if line and not line.startswith(("//", "."))
    }
    assert sorted(TABLE.keys() - named) == WITHOUT


def test_cases_are_small() -> None:
    for path in FILES:
        case = read_case(path)
        given = [x for x in case.body.splitlines() if x and not x.startswith("//")]
        assert len(given) <= 24, path
        assert len(case.expected.splitlines()) <= 72, path
