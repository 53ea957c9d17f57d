"""The tasks of ``tasks.toml``, and how commands are counted."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("tasks.toml")
OURS = "sassxlate"
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_STARTS = re.compile(r"\|\||&&|\||;|<\(")


@dataclass(frozen=True, slots=True)
class OtherTool:
    """A tool that ours is compared with; ``programs`` must be on PATH for it to be run, ``none``
    says why it has no answer where a task has none of it."""

    name: str
    title: str
    programs: tuple[str, ...]
    none: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Way:
    """How a tool answers: bash commands, or steps by hand that ``how`` describes.  Without
    either it has no answer, and ``none`` may say why.  ``service``: another process, which the
    commands do not wait for, does some of the work."""

    commands: str = ""
    expects: str = ""
    by_hand: int = 0
    how: str = ""
    note: str = ""
    none: str = ""
    service: bool = False

    @property
    def steps(self) -> int | None:
        """How many programs are started, or steps made by hand; None without an answer."""
        return programs(self.commands) if self.commands else self.by_hand or None


@dataclass(frozen=True, slots=True)
class Task:
    """A question, and each tool's way to its answer."""

    question: str
    ways: Mapping[str, Way]


def programs(commands: str) -> int:
    """How many programs a line of bash starts: each part of a pipe, a list or a substitution."""
    return 1 + len(_STARTS.findall(_QUOTED.sub("", commands)))


def read(file: Path = FILE) -> tuple[tuple[OtherTool, ...], tuple[Task, ...]]:
    """The tools and the tasks."""
    value = tomllib.loads(file.read_text(encoding="utf-8"))
    tools = tuple(
        OtherTool(name, t["title"], tuple(t["programs"]), t["none"], t.get("source", ""))
        for name, t in value["tool"].items()
    )
    return tools, tuple(_task(task) for task in value["task"])


def _task(value: Mapping[str, Any]) -> Task:
    ways: dict[str, Way] = {}
    for name, way in value.items():
        if isinstance(way, dict):
            fields: dict[str, Any] = {"expects": value["expects"], **way}
            fields["by_hand"] = fields.pop("steps", 0)
            ways[name] = Way(**fields)
    return Task(value["question"], ways)
