"""Truth values of lanes that a program keeps among bits of other lanes.

The rules write a predicate by `s_and_not1_b32` and `s_or_b32`: what lanes had that are idle now
stays.  In the lanes that are active it is what the comparison gave, which need not go through a
scalar register; and carries stay visible as such (`lowering/llvm/wide.py`).
"""

from __future__ import annotations

from sassxlate.lowering.llvm.ir_text import Val
from sassxlate.lowering.llvm.lanes import LlvmLanes

_ONES = 0xFFFFFFFF
_DEPTH = 4


def among(d: LlvmLanes, value: Val, now: Val, depth: int = _DEPTH) -> Val | None:
    """The truth values that a scalar has in the lanes that are active ``now``, if it is seen what
    they are."""
    op, parts = d.origins.get(value.ref, ("", ()))
    if op == "mask":
        return parts[0]
    if op not in ("and", "or") or not depth:
        return None
    for part, other in (parts, parts[::-1]):
        if _idle(d, other, now) if op == "or" else d.is_part(now, other):
            return among(d, part, now, depth - 1)
    return None


def _idle(d: LlvmLanes, mask: Val, now: Val) -> bool:
    """Whether a mask is seen to have no lane that is active."""
    op, parts = d.origins.get(mask.ref, ("", ()))
    if op != "and":
        return mask.const == 0
    made = (d.origins.get(part.ref, ("", ())) for part in parts)
    return any(op == "xor" and of[1].const == _ONES and d.is_part(now, of[0]) for op, of in made)


__all__ = ["among"]
