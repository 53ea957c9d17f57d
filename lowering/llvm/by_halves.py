"""64-bit operations on the halves of values that a program keeps apart.

A pair of registers is one vector of 64-bit values only after shuffles, of which the host starts one
a cycle; comparisons and shifts by constants need none if each half has an operation of its own.
"""

from __future__ import annotations

from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.llvm.lanes import LlvmLanes


def compared(d: LlvmLanes, predicate: str, a: Val, b: Val) -> Val | None:
    """eq, ult or slt of 64-bit values; None if neither is put together of halves, or the halves of
    one are not there."""
    if not (_apart(d, a) or _apart(d, b)):
        return None
    left, right = _halves(d, a), _halves(d, b)
    if left is None or right is None:
        return None
    same = d.eq(left[0], right[0])
    if predicate == "eq":
        return d.and_(same, d.eq(left[1], right[1]))
    less = d.ult if predicate == "ult" else d.slt
    return d.or_(less(left[0], right[0]), d.and_(same, d.ult(left[1], right[1])))


def shifted_right(d: LlvmLanes, op: str, a: Val, count: Val) -> Val | None:
    """lshr or ashr by a constant of a 64-bit value that is put together of halves."""
    n = count.const
    if n is None or not 0 < n < 64 or not _apart(d, a):
        return None
    hi, lo = d.origins[a.ref][1]
    shift = d.lshr if op == "lshr" else d.ashr
    if n < 32:
        return d.concat(shift(hi, const(n, 32)), d.pair_shifted(hi, lo, n))
    upper = const(0, 32) if op == "lshr" else d.ashr(hi, const(31, 32))
    return d.concat(upper, shift(hi, const(n - 32, 32)))


def _apart(d: LlvmLanes, a: Val) -> bool:
    return a.vec and d.origins.get(a.ref, ("",))[0] == "concat"


def _halves(d: LlvmLanes, a: Val) -> tuple[Val, Val] | None:
    """The upper and lower half without a shuffle."""
    if a.const is not None:
        return const(a.const >> 32, 32), const(a.const, 32)
    if not a.vec:
        return d.extract(a, 32, 32), d.extract(a, 0, 32)
    op, parts = d.origins.get(a.ref, ("", ()))
    if op == "concat":
        return parts[0], parts[1]
    if op in ("zext", "sext") and parts[0].width == 32:
        upper = const(0, 32) if op == "zext" else d.ashr(parts[0], const(31, 32))
        return upper, parts[0]
    return None


__all__ = ["compared", "shifted_right"]
