"""Functions of a kernel's module: what is too long to be written at each place that needs it.

A function's name ends in its number, and so does the column of its calls' debug locations
(:mod:`.linked`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sassxlate.lowering.llvm.ir_text import Function, Val
from sassxlate.lowering.tier.lane import LINE, Called, Lane
from sassxlate.lowering.tier.numbers.domain import LaneDomain

ATTRIBUTES = "#1"  # of all functions: :mod:`.module` writes them


def call(
    lane: Lane,
    name: str,
    given: Sequence[Val],
    body: Callable[[Lane, Sequence[Val]], Sequence[Val]],
) -> list[Val]:
    """The results of a function on some words: four words of this lane.  ``body`` writes it when
    it is first called; it must not touch registers.  All lanes that run the call see each other in
    the function."""
    assert lane.ins is not None
    known = lane.called.get(name)
    if known is None:
        number = len(lane.called) + 1
        known = Called(number, f"{name}.{number}", lane.ins.offset // LINE + 1)
        lane.called[name] = known
        _write(lane, known, len(given), body)
    lane.columns[len(lane.fn.lines)] = known.number
    words = ", ".join(f"i32 {word.ref}" for word in given)
    out = lane.fn.emit_new(f"call [4 x i32] @{known.name}({words}) {ATTRIBUTES}")
    return [Val(lane.fn.emit(f"extractvalue [4 x i32] {out}, {n}"), 32, False) for n in range(4)]


def _write(
    lane: Lane,
    called: Called,
    count: int,
    body: Callable[[Lane, Sequence[Val]], Sequence[Val]],
) -> None:
    outer = lane.fn, lane.d
    given = [Val(f"%given.{n}", 32, False) for n in range(count)]
    words = ", ".join(f"i32 {word.ref}" for word in given)
    fn = lane.fn = Function(lane.module, f"define internal [4 x i32] @{called.name}({words})", "")
    lane.d = LaneDomain(fn)
    out = "poison"
    for n, word in enumerate(body(lane, given)):
        out = fn.emit(f"insertvalue [4 x i32] {out}, i32 {word.ref}, {n}")
    fn.do(f"ret [4 x i32] {out}")
    called.function = fn
    lane.fn, lane.d = outer


__all__ = ["ATTRIBUTES", "call"]
