"""The table of tasks: its declarations, how commands are counted, and that the page shows them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sassxlate import toolchain
from tools.tasks import page
from tools.tasks.declared import OURS, Task, Way, programs, read
from tools.tasks.measure import Measured, TaskError, bin_folder, build, measure, one

TOOLS, TASKS = read()


@pytest.mark.parametrize(
    ("commands", "count"),
    [
        ("ls a", 1),
        ("ls a | grep b", 2),
        ("x -o y && z y | awk '/a|b/ { print; next }'", 3),
        ("diff <(a x) <(b y)", 3),
        ("a; b || c", 3),
        ("""echo "a | b" | c""", 2),
    ],
)
def test_programs_are_counted(commands: str, count: int) -> None:
    assert programs(commands) == count


def test_declarations() -> None:
    assert len(TASKS) == 26
    assert len({task.question for task in TASKS}) == 26
    names = {OURS, *(tool.name for tool in TOOLS)}
    for task in TASKS:
        assert OURS in task.ways
        assert set(task.ways) <= names, task.question
        for way in task.ways.values():
            # A way is commands, steps by hand with their description, or a reason for none.
            assert bool(way.commands) + bool(way.by_hand and way.how) + bool(way.none) == 1
            re.compile(way.expects)


def test_standing() -> None:
    def task(ours: Way, *others: Way) -> Task:
        return Task("?", {OURS: ours, **{str(n): way for n, way in enumerate(others)}})

    assert page.standing(task(Way("a"))) == "fewest"
    assert page.standing(task(Way("a"), Way("a|b"), Way(none="no"))) == "fewest"
    assert page.standing(task(Way("a"), Way("b"))) == "as few"
    assert page.standing(task(Way("a|b"), Way("b"))) == "more"
    assert page.standing(task(Way("a|b"), Way(by_hand=1, how="look"))) == "more"
    assert page.standing(task(Way(none="no"), Way("b"))) == "none"


def test_page_shows_the_declared_tasks() -> None:
    """`python -m tools.tasks --write` was run after the last change of the tasks."""
    text = page.PAGE.read_text(encoding="utf-8")
    table = text.split(page.BEGIN)[1].split(page.END)[0]
    shown = re.sub(r", \d+\.\d\d s(?: \(\d+\.\d\d\))?", "", table).splitlines()
    nothing: list[dict[str, Measured]] = [{} for _ in TASKS]
    unmeasured = [line.replace(", not run", "") for line in page.lines(TOOLS, TASKS, nothing)]
    assert [line.replace(", not run", "") for line in shown if line] == list(
        filter(None, unmeasured)
    )
    assert "(wrong)" not in table


def test_an_answer_is_looked_at(tmp_path: Path) -> None:
    """A command whose answer is not the expected one is a fault, and times are medians."""
    sample = tmp_path / "sample"
    sample.mkdir()
    (sample / "file").write_text("two words\n")
    environment = dict(os.environ)
    assert not one(Way("cat file", "two"), sample, environment).fault
    assert "three" in one(Way("cat file", "three"), sample, environment).fault
    assert "status 1" in one(Way("false", "two"), sample, environment).fault
    task = Task("?", {"a": Way("cat file", "two"), "b": Way("cat file", "three"), "c": Way("x")})
    (result,) = measure([task], {"a", "b"}, sample, environment, 3)
    assert set(result) == {"a", "b"}
    assert result["a"].seconds is not None
    assert result["b"].fault
    assert result["a"].processor is not None
    assert one(Way("cat file", "two", service=True), sample, environment).processor is None
    busy = Way("i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; echo two", "two")
    assert (one(busy, sample, environment).processor or 0) > 0.01
    assert "(wrong)" in "\n".join(page.lines(TOOLS, [_with(OURS, task)], [{OURS: result["b"]}]))


def _with(name: str, task: Task) -> Task:
    return Task(task.question, {name: task.ways["b"]})


@pytest.mark.sweep
def test_all_answers(tmp_path: Path) -> None:
    """Every tool that is here gives every answer that is expected of it."""
    if toolchain.nvcc() is None:
        pytest.skip("there is no nvcc")
    here = bin_folder(tmp_path / "bin", TOOLS)
    sample = tmp_path / "sample"
    sample.mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    try:
        build(sample, {**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    except TaskError as error:
        pytest.fail(str(error))
    faults = {
        (task.question, name): measured.fault
        for task, result in zip(TASKS, measure(TASKS, here, sample, environment, 1), strict=True)
        for name, measured in result.items()
        if measured.fault
    }
    assert not faults
