"""The table of ``docs/tasks.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tools.tasks.declared import OURS, OtherTool, Task
from tools.tasks.measure import Measured

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"
BEGIN, END = "<!-- tasks: begin -->", "<!-- tasks: end -->"
Results = Sequence[Mapping[str, Measured]]


def standing(task: Task) -> str:
    """``fewest``, ``as few``, ``more`` or ``none``: our commands beside the least of the others.

    Steps by hand count as commands.
    """
    ours = task.ways[OURS].steps
    others = [n for name, way in task.ways.items() if name != OURS and (n := way.steps)]
    if ours is None:
        return "none"
    least = min(others, default=ours + 1)
    return "fewest" if ours < least else "as few" if ours == least else "more"


def lines(tools: Sequence[OtherTool], tasks: Sequence[Task], results: Results) -> Iterator[str]:
    """The table in Markdown, and the commands below it."""
    counts = [standing(task) for task in tasks]
    yield (
        f"Of {len(tasks)} tasks sassxlate needs fewer commands than every other tool in "
        f"{counts.count('fewest')}, as few as the best in {counts.count('as few')}, and more, or "
        f"has no answer, in {counts.count('more') + counts.count('none')}."
    )
    yield ""
    yield "| | task | sassxlate | " + " | ".join(t.title for t in tools) + " |"
    yield "|---|---|" + "---|" * (1 + len(tools))
    names = [OURS, *(t.name for t in tools)]
    for number, (task, result) in enumerate(zip(tasks, results, strict=True), 1):
        cells = [_cell(task, name, result) for name in names]
        yield f"| {number} | {task.question} | {' | '.join(cells)} |"
    yield ""
    for number, task in enumerate(tasks, 1):
        yield f"{number}. {task.question}"
        for name, title in zip(names, ["sassxlate", *(t.title for t in tools)], strict=True):
            if name in task.ways:
                yield from _way(task, name, title)


def _cell(task: Task, name: str, result: Mapping[str, Measured]) -> str:
    steps = task.ways[name].steps if name in task.ways else None
    if steps is None:
        return "-"
    if name not in result:
        return f"{steps}, not run"
    seconds = result[name].seconds
    fault = " (wrong)" if result[name].fault else ""
    if seconds is None:
        return f"{steps}{fault}"
    used = result[name].processor
    processor = f" ({used:.2f})" if used is not None else ""
    return f"{steps}, {seconds:.2f} s{processor}{fault}"


def _way(task: Task, name: str, title: str) -> Iterator[str]:
    way = task.ways[name]
    note = f" ({way.note})" if way.note else ""
    if way.commands:
        yield f"   * {title}: `{way.commands}`{note}"
    else:
        yield f"   * {title}: {way.how or way.none}{note}"


def write(text: str, page: Path = PAGE) -> None:
    """Replaces what is between the marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
