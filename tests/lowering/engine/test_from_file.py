"""``--engine FILE.py:NAME``: what may be named, what is an error, and what it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.errors import ModelError
from sassxlate.llm.engine import choose
from sassxlate.lowering.engine.engine import Engine
from sassxlate.lowering.engine.from_file import load
from sassxlate.lowering.engine.report import EngineReport
from sassxlate.lowering.pipeline import translate_kernel
from tests.lowering import emulated

KERNEL = "carry_chains"
FILE = """
from sassxlate.lowering.engine.seam import Proposals

class Some:
    name = "some-1"
    def propose(self, question):
        return Proposals()

class Nameless:
    def propose(self, question):
        return Proposals()

class Unmade(Some):
    def __init__(self, model):
        self.model = model

class Exits(Some):
    def __init__(self):
        raise SystemExit(0)

class Empty(Some):
    name = ""

class Asked(Some):
    def propose(self):
        return Proposals()

class Ahead(Some):
    def ahead(self, questions, told):
        raise KeyError("table")

def function(question):
    return Proposals()

def raises(question):
    return 1 // 0

def nothing(question):
    return None

def code(question):
    return Proposals(((("v_mov_b32 v0, v1",),) * len(question.rules),))

def reason(question):
    return Proposals(why="tired")

def seconds(question):
    return Proposals(seconds="1")

def two(question, other):
    return Proposals()

one = Some()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(FILE)
    return path


@pytest.mark.parametrize(
    ("name", "shown"), [("Some", "some-1"), ("one", "some-1"), ("function", "own.py:function")]
)
def test_what_may_be_named(file: Path, name: str, shown: str) -> None:
    loaded = load(f"{file}:{name}")
    assert (loaded.proposer.name, loaded.name) == (shown, f"own.py:{name}")
    engine = choose.engine(f"{file}:{name}")
    assert engine is not None
    assert engine.identity == f"own.py:{name} {shown} file {loaded.digest}"


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("Other", "SX1011", "it has no Other, but Some, Nameless, "),
        ("Nameless", "SX1013", "own.py:Nameless needs a name"),
        ("Empty", "SX1013", "own.py:Empty needs a name"),
        ("Asked", "SX1013", "own.py:Asked.propose cannot be called with one question: "),
        ("two", "SX1013", "own.py:two cannot be called with one question: "),
        ("Proposals", "SX1013", "own.py:Proposals has no method propose"),
        ("FILE", "SX1011", "it has no FILE"),
        ("Unmade", "SX1012", "Unmade() raised TypeError"),
        ("Exits", "SX1012", "Exits() raised SystemExit: 0 (own.py:19)"),
        ("", "SX1011", "write FILE.py:NAME"),
        ("a.b", "SX1011", "write FILE.py:NAME"),
    ],
)
def test_what_may_not(file: Path, name: str, code: str, text: str) -> None:
    with pytest.raises(ModelError) as raised:
        choose.engine(f"{file}:{name}")
    assert raised.value.code == code
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("source", "code", "text"),
    [
        (None, "SX1011", "cannot be read: No such file or directory"),
        ("def propose(", "SX1012", "loading it raised SyntaxError: '(' was never closed"),
        ("\0", "SX1012", "loading it raised SyntaxError"),
        ("import no_such_module\n", "SX1012", "ModuleNotFoundError: No module named 'no_such_mod"),
        ("\n\nraise SystemExit\n", "SX1012", "loading it raised SystemExit:  (own.py:3)"),
    ],
)
def test_files_that_cannot_be_loaded(
    tmp_path: Path, source: str | None, code: str, text: str
) -> None:
    path = tmp_path / "own.py"
    if source is not None:
        path.write_text(source)
    with pytest.raises(ModelError) as raised:
        load(f"{path}:Some")
    assert raised.value.code == code
    assert text in str(raised.value)
    assert raised.value.where.file == str(path)


def test_a_changed_file_is_another_engine(file: Path) -> None:
    first, same = choose.engine(f"{file}:Some"), choose.engine(f"{file}:Some")
    file.write_text(FILE + "# changed\n")
    changed = choose.engine(f"{file}:Some")
    assert first is not None
    assert same is not None
    assert changed is not None
    assert first.identity == same.identity != changed.identity


def asked(spec: str) -> EngineReport:
    engine = choose.engine(spec)
    assert isinstance(engine, Engine)
    selected = translate_kernel(emulated.load(KERNEL, 90), KERNEL).selected
    made, report = engine.rewrite(selected, KERNEL)
    assert made == selected
    return report


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("raises", "raised ZeroDivisionError: integer division or modulo by zero (own.py:36)"),
        ("nothing", "raised TypeError: propose() returned NoneType, not Proposals"),
        ("reason", "raised ValueError: why is 'tired', not one of none, long, unsaid, raised"),
        ("seconds", "raised TypeError: seconds are str, not a number"),
        ("code", "returned str in the place of an instruction"),
    ],
)
def test_errors_of_a_proposer_are_shown_once(file: Path, name: str, detail: str) -> None:
    report = asked(f"{file}:{name}")
    [error] = report.defects(KERNEL)
    assert error.code == "SX1014"
    assert error.where.kernel == KERNEL
    wrong = report.outcomes.get("raised", 0) + report.outcomes.get("malformed", 0)
    assert wrong >= report.questions > 1
    assert error.message == f"own.py:{name} {detail}; {wrong} regions keep the rules' code"


def test_without_proposals_there_is_no_error(file: Path) -> None:
    assert asked(f"{file}:Some").defects(KERNEL) == []


def test_an_error_before_the_questions(file: Path) -> None:
    with pytest.raises(ModelError, match=r"SX1014: ahead\(\) of some-1 raised KeyError: 'table'"):
        asked(f"{file}:Ahead")


@pytest.mark.parametrize(("model", "samples"), [("folder", 1), (None, 2)])
def test_it_takes_no_model(file: Path, model: str | None, samples: int) -> None:
    with pytest.raises(ModelError, match="SX1008"):
        choose.engine(f"{file}:Some", model, samples)


def test_the_environment_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(choose.ENGINE, "own.py:Some")
    assert choose.usual(None) == "own.py:Some"
    monkeypatch.setenv(choose.ENGINE, "own:Some")
    with pytest.raises(ModelError, match="SX1008"):
        choose.usual(None)
