"""64-bit values whose halves a program computes apart: what they are as one operation.

RDNA3 adds 64 bits in two steps with a carry, and extends a sign by a shift.  The halves of such a
value are put together from what each was made of, not from 32 pairs of dwords, and addresses stay
sums that `emulate/wave/access/linear.py` can see.  All of it is algebra on values: what is not
recognised is only slower.
"""

from __future__ import annotations

from collections.abc import Iterator

from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.llvm.lanes import LlvmLanes

_DEPTH = 4  # sums of sums
_ZERO = const(0, 32)


def whole(d: LlvmLanes, hi: Val, lo: Val, depth: int = _DEPTH) -> Val | None:
    """The 64-bit vector hi:lo, computed in the current block; None if it is not seen to be one."""
    known = d.extracted_from(hi, lo)
    if known is not None:
        return known
    if not lo.vec or not depth:
        return None
    known = d.arrived and d.arrived(hi, lo)
    if known is not None:
        d.origins[known.ref] = "concat", (hi, lo)
        return known
    if hi.const == 0:
        return d.zext(lo, 64)
    op, parts = d.origins.get(hi.ref, ("", ()))
    if op == "ashr" and parts[0] == lo and parts[1].const == 31:
        return d.sext(lo, 64)
    if op in ("add", "sub") and hi.vec:
        return _with_carry(d, op, parts, lo, depth)
    return None


def _with_carry(d: LlvmLanes, op: str, parts: tuple[Val, ...], lo: Val, depth: int) -> Val | None:
    """Of a sum or difference whose upper half has the carry or borrow of ``lo``."""
    rest, carried = parts
    kind, (carry, *_) = d.origins.get(carried.ref, ("", (carried,)))
    made, low = d.origins.get(lo.ref, ("", ()))
    if kind != "zext" or made != op:
        return None
    # As add_co and sub_co of the semantics write them.
    if d.origins.get(carry.ref) != ("ult", (lo, low[0]) if op == "add" else low):
        return None
    for upper in _split(d, op, rest):
        a = _pair(d, upper[0], low[0], depth - 1)
        b = None if a is None else _pair(d, upper[1], low[1], depth - 1)
        if a is not None and b is not None:
            return d.add(a, b) if op == "add" else d.sub(a, b)
    return None


def _split(d: LlvmLanes, op: str, rest: Val) -> Iterator[tuple[Val, Val]]:
    """What the upper half without its carry may be the sum, or difference, of."""
    made, parts = d.origins.get(rest.ref, ("", ()))
    if made == op:
        yield parts[0], parts[1]
        if op == "add":
            yield parts[1], parts[0]
    yield rest, _ZERO
    if op == "add":
        yield _ZERO, rest


def _pair(d: LlvmLanes, hi: Val, lo: Val, depth: int) -> Val | None:
    if not hi.vec and not lo.vec:
        return d.concat(hi, lo)
    return whole(d, hi, lo, depth)


def low_half(d: LlvmLanes, a: Val, depth: int = _DEPTH) -> Val | None:
    """The lower 32 bits of a 64-bit value, computed in 32 bits; None if it is not seen how."""
    if not a.vec:
        return d.extract(a, 0, 32)
    op, parts = d.origins.get(a.ref, ("", ()))
    if op in ("zext", "sext"):
        (narrow,) = parts
        if narrow.width > 32:
            return None
        return d.sext(narrow, 32) if op == "sext" else d.zext(narrow, 32)
    if op == "concat":
        return parts[1]
    if op not in ("add", "sub", "mul", "shl") or not depth:
        return None
    if op == "shl" and (parts[1].const is None or parts[1].const >= 32):
        return None
    x, y = (low_half(d, part, depth - 1) for part in parts)
    if x is None or y is None:
        return None
    return {"add": d.add, "sub": d.sub, "mul": d.mul, "shl": d.shl}[op](x, y)


__all__ = ["low_half", "whole"]
