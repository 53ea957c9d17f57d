"""What is known of results that are moved: whole, or in halves."""

from __future__ import annotations

from typing import Final

from sassxlate.lowering.nans.reads import Nan
from sassxlate.lowering.nans.steps import UNKNOWN, State, Step, Value, union
from sassxlate.lowering.nans.values import ANY

_BRAIN: Final = int(Nan.BRAIN)
_KINDS: Final = int(Nan.HALVES | Nan.BRAIN)
_SINGLE: Final = int(Nan.SINGLE)
_FREE32: Final = int(Nan.FREE32)
_FREE16: Final = int(Nan.FREE16)


def one_of(sources: tuple[int | Value, ...], state: State) -> Value:
    """What is known of a word that is one of several."""
    out: Value | None = None
    for source in sources:
        one = state.get(source, UNKNOWN) if isinstance(source, int) else source
        out = one if out is None else out.joined(one)
    return UNKNOWN if out is None else out


def of_parts(step: Step, state: State) -> Value:
    """What is known of a word whose halves are moved."""
    below, above = (one_of(sources, state) for sources in step.copies)
    bits = (below.bits | above.bits) & (_KINDS | _FREE16)
    makers = union(*(v.makers if v.bits & _KINDS else () for v in (below, above)))
    if bits & _BRAIN and not below.bits & _KINDS:
        # The upper half alone may differ, where it is NaN on both sides: so is the whole.
        bits = bits & ~_BRAIN | _SINGLE
    return Value(bits | _FREE32, ANY, makers)


__all__ = ["of_parts", "one_of"]
