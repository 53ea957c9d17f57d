"""A function of a module's text, as LLVM prints it, by its values."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

NAME: Final = r'%(?:"[^"]*"|[-\w.$]+)'
_USE: Final = re.compile(rf"(?<![-\w.$@%]){NAME}(?![-\w.$])")
_DEBUG: Final = re.compile(r", !dbg !\d+")
_RESULT: Final = re.compile(rf"  ({NAME}) = (?:tail )?([a-z]+) (.*)")
_FLAGS: Final = r"((?:(?:nuw|nsw|exact|disjoint|nneg|samesign) )*)"
_TWO: Final = re.compile(rf"{_FLAGS}(i\d+|float|double|half) ([^ ,<]+), ([^ ,<]+)$")
_COMPARED: Final = re.compile(
    r"(?:samesign )?([a-z]+) (i\d+|float|double|half) ([^ ,<]+), ([^ ,<]+)$"
)
_CHOSEN: Final = re.compile(r"i1 ([^ ,]+), (i\d+|float|double|half) ([^ ,]+), \2 ([^ ,]+)$")
_CAST: Final = re.compile(rf"{_FLAGS}(\S+) ([^ ,<]+) to (.+)$")
_CALLED: Final = re.compile(r"(\S+) (@[\w.]+)\((.*)\)(?: #\d+)?$")
_FUNCTION: Final = re.compile(r"@[\w.]+\(")
LABEL: Final = re.compile(r'("[^"]*"|[-\w.$]+):')
# By how lines go on after the result's name.
_QUIET: Final = re.compile(
    rf"  {NAME} = (?!(?:tail )?call |cmpxchg |atomicrmw |load (?:volatile|atomic) )"
)
_QUIET_CALL: Final = re.compile(
    rf"  {NAME} = (?:tail )?call \S+ @llvm\."
    r"(?:amdgcn\.(?:softwqm|rcp|sad|ds\.bpermute|mbcnt)|canonicalize|maximumnum|minimumnum"
    r"|[su](?:min|max)|is\.fpclass|fma|fabs)\b"
)
_MANY: Final = ("load", "getelementptr")  # of which the operands are those with names
_CASTS: Final = ("bitcast", "zext", "sext", "trunc", "inttoptr", "ptrtoint")


@dataclass(frozen=True, slots=True)
class Value:
    """An instruction with a result.

    ``op`` is LLVM's, with a comparison's predicate or a called function after a space; ``type`` is
    that of the operands (of a choice: of its arms; of a call: of its result).  ``args`` are the
    operands, empty if this module does not read them; ``flags`` what else the text says of it.
    """

    at: int
    op: str
    type: str = ""
    args: tuple[str, ...] = ()
    flags: str = ""


def _value(at: int, op: str, rest: str) -> Value:
    if op in ("icmp", "fcmp"):
        if found := _COMPARED.match(rest):
            return Value(at, f"{op} {found[1]}", found[2], (found[3], found[4]))
    elif op == "select":
        if found := _CHOSEN.match(rest):
            return Value(at, op, found[2], (found[1], found[3], found[4]))
    elif op in _CASTS:
        if found := _CAST.match(rest):
            return Value(at, op, found[2], (found[3],), found[4])
    elif op == "call":
        if found := _CALLED.match(rest):
            args = tuple(arg.rsplit(" ", 1)[-1] for arg in found[3].split(", ") if arg)
            return Value(at, f"call {found[2]}", found[1], args)
    elif op in _MANY:
        return Value(at, op, args=tuple(_USE.findall(rest)))
    elif found := _TWO.match(rest):
        return Value(at, op, found[2], (found[3], found[4]), found[1])
    return Value(at, op)


def _read(line: str) -> re.Match[str] | None:
    return _RESULT.match(_DEBUG.sub("", line.partition(" ;")[0]))


@dataclass(slots=True)
class Function:
    """The lines of a function's body, which may be changed.  ``uses`` are the lines that use a
    value, as they were at first; ``before`` are new lines, by the line that they precede."""

    lines: list[str]
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    uses: Mapping[str, Sequence[int]] = field(default_factory=dict[str, list[int]])
    before: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def __post_init__(self) -> None:
        uses: dict[str, list[int]] = defaultdict(list)
        for at, line in enumerate(self.lines):
            if found := _read(line):
                self.values[found[1]] = _value(at, found[2], found[3])
            names = _USE.findall(line.partition(" ;")[0])
            for name in dict.fromkeys(names[1:] if found else names):
                uses[name].append(at)
        self.uses = uses

    def note(self, at: int) -> str:
        """The debug location of a line."""
        found = _DEBUG.search(self.lines[at])
        return found[0] if found else ""

    def starts(self) -> list[int]:
        """The first line of each block that has a label."""
        return [at for at, line in enumerate(self.lines) if LABEL.match(line)]

    def result(self, at: int) -> str:
        """The name of a line's result; empty if it has none."""
        found = _RESULT.match(self.lines[at])
        return found[1] if found else ""

    def replace(self, at: int, what: str) -> None:
        """Has a line's result computed by another instruction, from values that it knew before."""
        name = self.result(at)
        self.lines[at] = f"  {name} = {what}{self.note(at)}"
        found = _read(self.lines[at])
        assert found is not None
        self.values[name] = _value(at, found[2], found[3])

    def insert(self, at: int, *new: str) -> None:
        """Puts instructions before a line, with its debug location."""
        note = self.note(at)
        self.before.setdefault(at, []).extend(f"  {line}{note}" for line in new)

    def text(self) -> list[str]:
        out: list[str] = []
        for at, line in enumerate(self.lines):
            out += [*self.before.get(at, ()), line]
        return out


def keeps_memory(line: str) -> bool:
    """Whether an instruction surely changes no memory, and has no order among accesses to it."""
    return bool(_QUIET.match(line) or _QUIET_CALL.match(line)) or not line.strip()


def changed(text: str, change: Callable[[Function], Iterable[str]]) -> str:
    """A module with each function as ``change`` leaves it, which gives the declarations that it
    needs.  Values and blocks without names get some."""
    lines = text.split("\n")
    declared: dict[str, None] = {}
    for start in [at for at, line in enumerate(lines) if line.startswith("define ")][::-1]:
        end = lines.index("}", start)
        head, *body = _named(lines[start:end])
        function = Function(body)
        declared |= dict.fromkeys(change(function))
        lines[start:end] = [head, *function.text()]
    there = {found[0] for line in lines if line.startswith("declare ")
             and (found := _FUNCTION.search(line))}  # fmt: skip
    new = [line for line in declared if (found := _FUNCTION.search(line)) and found[0] not in there]
    return "\n".join([*lines, *new, ""])


def _named(lines: Sequence[str]) -> list[str]:
    """The same with names instead of numbers, which must follow the lines' order."""
    value = re.compile(r"%(\d+)(?![-\w.$])")
    label = re.compile(r"(\d+):")
    return [label.sub(r"value.\1:", value.sub(r"%value.\1", line), count=1)
            if label.match(line) else value.sub(r"%value.\1", line) for line in lines]  # fmt: skip


__all__ = ["LABEL", "NAME", "Function", "Value", "changed", "keeps_memory"]
