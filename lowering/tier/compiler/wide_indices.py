"""Indices of 64 bits, whose words nvcc shifts apart: one shift of both.

An address is the sum of a pointer and a shifted index.  Where the index's words are made apart,
LLVM adds each as a number of its own, and the upper one's low word is zero.
"""

from __future__ import annotations

from typing import Final

from sassxlate.lowering.tier.compiler.ssa import Function, Value, changed

_WORD: Final = 32


def _word(function: Function, name: str) -> tuple[str, int] | None:
    """A word, and how far a 64-bit value is it shifted to the left."""
    value = function.values.get(name)
    count = 0
    if value is not None and value.op == "shl" and value.type == "i64":
        count = int(value.args[1]) if value.args[1].isdigit() else 64
        value = function.values.get(value.args[0])
    if value is None or (value.op, value.type, value.flags) != ("zext", "i32", "i64"):
        return None
    return (value.args[0], count) if count < 2 * _WORD else None


def _once(function: Function, name: str) -> bool:
    return len(function.uses.get(name, ())) == 1


def _sum(value: Value | None) -> bool:
    return (
        value is not None
        and value.type == "i64"
        and (value.op == "add" or (value.op == "or" and "disjoint" in value.flags))
    )


def _function(function: Function) -> list[str]:
    for number, (name, value) in enumerate(list(function.values.items())):
        if not _sum(value):
            continue
        for high, rest in (value.args, value.args[::-1]):
            upper = _word(function, high)
            if upper is None or upper[1] <= _WORD or not _once(function, high):
                continue
            if (found := _lower(function, rest, upper[1] - _WORD)) is None:
                continue
            low, others = found
            _write(function, name, f"%index.{number}", (low, upper[0], upper[1] - _WORD), others)
            break
    return []


def _lower(function: Function, name: str, count: int) -> tuple[str, str] | None:
    """The word in a sum that is shifted so, and what is added to it; nothing if it is alone."""
    lower = _word(function, name)
    if lower is not None and lower[1] == count:
        return lower[0], ""
    value = function.values.get(name)
    if value is None or not _sum(value) or not _once(function, name):
        return None
    for one, other in (value.args, value.args[::-1]):
        lower = _word(function, one)
        if lower is not None and lower[1] == count:
            return lower[0], other
    return None


def _write(
    function: Function, name: str, new: str, shifted: tuple[str, str, int], other: str
) -> None:
    low, high, count = shifted
    at, both = function.values[name].at, "<2 x i32>"
    function.insert(
        at,
        f"{new}.l = insertelement {both} poison, i32 {low}, i64 0",
        f"{new}.w = insertelement {both} {new}.l, i32 {high}, i64 1",
        f"{new}.i = bitcast {both} {new}.w to i64",
    )
    if not other:
        function.replace(at, f"shl i64 {new}.i, {count}")
        return
    function.insert(at, f"{new} = shl i64 {new}.i, {count}")
    function.replace(at, f"add i64 {other}, {new}")


def whole(text: str) -> str:
    """A module as LLVM prints it after its passes, with such indices shifted at once."""
    return changed(text, _function) if " = shl i64 " in text else text


__all__ = ["whole"]
