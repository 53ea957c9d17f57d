"""Comparisons of a wave's value with numbers, where conjunctions with lanes' conditions need them.

LLVM compares a scalar register by s_cmp, makes a mask of the answer by s_cselect_b32, and joins it
with the lanes' condition.  A comparison of a vector register is a mask at once.  So the value is
moved into one where several such comparisons follow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from sassxlate.lowering.tier.compiler.ssa import Function, Value, changed

_LEAST: Final = 3  # comparisons for which a move pays
_MOVED: Final = 'call i32 asm "", "=v,0"(i32 {})'
# What differs from lane to lane for LLVM.
_LANES: Final = frozenset(
    f"call @llvm.amdgcn.{name}" for name in (
        "mbcnt.lo", "mbcnt.hi", "workitem.id.x", "workitem.id.y", "workitem.id.z", "ds.bpermute",
    )
)  # fmt: skip
_FOLLOWED: Final = frozenset(
    ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "fadd", "fsub", "fmul",
     "select", "bitcast", "zext", "sext", "trunc", "inttoptr", "getelementptr", "load",
     "call @llvm.canonicalize.f32")
)  # fmt: skip


class _Differing:
    """Which values surely differ from lane to lane, as LLVM sees it."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        self.known: dict[str, bool] = {}

    def of(self, name: str) -> bool:
        todo = [name]
        while todo:
            one = todo[-1]
            value = self.values.get(one)
            if one in self.known or value is None or value.op in _LANES:
                self.known.setdefault(one, value is not None and value.op in _LANES)
                todo.pop()
                continue
            followed = value.op in _FOLLOWED or value.op.startswith(("icmp ", "fcmp "))
            args = [arg for arg in value.args if arg.startswith("%")] if followed else []
            if new := [arg for arg in args if arg not in self.known and arg not in todo]:
                todo += new
                continue
            self.known[one] = any(self.known.get(arg, False) for arg in args)
            todo.pop()
        return self.known[name]


def _function(function: Function) -> list[str]:
    values, starts = function.values, function.starts()
    differing = _Differing(values)
    found: dict[tuple[str, int], list[tuple[str, Value]]] = defaultdict(list)
    for name, value in values.items():
        if not value.op.startswith("icmp ") or value.type != "i32":
            continue
        given, number = value.args
        if not given.startswith("%") or number.startswith("%") or differing.of(given):
            continue
        if uses := function.uses.get(name, ()):
            ands = [values.get(function.result(at)) for at in uses]
            if all(
                a is not None and a.op == "and" and a.type == "i1"
                and any(differing.of(arg) for arg in a.args if arg != name) for a in ands
            ):  # fmt: skip
                found[given, bisect_right(starts, value.at)].append((name, value))
    for count, ((given, _), some) in enumerate(found.items()):
        if len(some) < _LEAST:
            continue
        moved = f"%tested.{count}"
        function.insert(min(value.at for _, value in some), f"{moved} = {_MOVED.format(given)}")
        for _, value in some:
            function.replace(value.at, f"{value.op} i32 {moved}, {value.args[1]}")
    return []


def by_lanes(text: str) -> str:
    """A module as LLVM prints it after its passes, with such comparisons made by lanes."""
    return changed(text, _function) if text.count(" = and i1 ") >= _LEAST else text


__all__ = ["by_lanes"]
