"""Measures the tasks with the tools that are here, and prints or writes the table.

::

    python -m tools.tasks                  # all tasks, three times each
    python -m tools.tasks --only spill     # those with this word in the question
    python -m tools.tasks --write          # into docs/tasks.md
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tools.tasks import page
from tools.tasks.declared import read
from tools.tasks.measure import Measured, TaskError, bin_folder, build, measure


def main() -> int:
    parser = argparse.ArgumentParser(description="Commands and seconds to the answer, by tool.")
    parser.add_argument("--only", default="", help="a word of the question")
    parser.add_argument("--rounds", type=int, default=3, help="the median of so many")
    parser.add_argument("--write", action="store_true", help="put the table into docs/tasks.md")
    given = parser.parse_args()
    tools, tasks = read()
    tasks = tuple(task for task in tasks if given.only.lower() in task.question.lower())
    if given.write and given.only:
        parser.error("--write is for all tasks")
    results: list[dict[str, Measured]] = []
    with tempfile.TemporaryDirectory(prefix="tasks-", ignore_cleanup_errors=True) as name:
        sample = Path(name, "sample")
        sample.mkdir()
        here = bin_folder(Path(name, "bin"), tools)
        environment = {**os.environ, "PATH": f"{name}/bin:{os.environ['PATH']}"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
        for tool in tools:
            if tool.name not in here:
                print(f"{tool.title}: not here, not run", file=sys.stderr)
        try:
            build(sample, {**environment, "XDG_CACHE_HOME": f"{name}/cache"})
        except TaskError as error:
            print(f"tasks: {error}", file=sys.stderr)
            return 2
        for task, result in zip(
            tasks, measure(tasks, here, sample, environment, given.rounds), strict=True
        ):
            results.append(result)
            for who, measured in result.items():
                if measured.fault:
                    print(f"{task.question} {who}: {measured.fault}", file=sys.stderr)
    text = "\n".join(page.lines(tools, tasks, results))
    if given.write:
        page.write(text)
    else:
        print(text)
    return int(any(m.fault for result in results for m in result.values()))


if __name__ == "__main__":
    sys.exit(main())
