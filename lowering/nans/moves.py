"""What is known of results that are moved: whole, or in halves."""

from __future__ import annotations

from typing import Final

from sassxlate.lowering.nans.flow import doubles_of
from sassxlate.lowering.nans.reads import BITS, WIDE, Nan
from sassxlate.lowering.nans.steps import UNKNOWN, State, Step, Value, union
from sassxlate.lowering.nans.values import ANY

_BRAIN: Final = int(Nan.BRAIN)
_KINDS: Final = int(Nan.HALVES | Nan.BRAIN)
_SINGLE: Final = int(Nan.SINGLE)
_FREE32: Final = int(Nan.FREE32)
_FREE16: Final = int(Nan.FREE16)
_WIDE: Final = int(WIDE)
_ALONE: Final = int(Nan.ALONE)
_BITS: Final = int(BITS)


def one_of(sources: tuple[int | Value, ...], state: State) -> Value:
    """What is known of a word that is one of several."""
    out: Value | None = None
    for source in sources:
        one = state.get(source, UNKNOWN) if isinstance(source, int) else source
        out = one if out is None else out.joined(one)
    return UNKNOWN if out is None else out


def of_doubles(sources: tuple[int | Value, ...], state: State, doubles: frozenset[int]) -> Value:
    """What is known of a shuffled word, of those of doubles alone."""
    known = one_of(sources, state)
    if not known.bits & _WIDE:
        return UNKNOWN
    return Value(known.bits & (_WIDE | _ALONE) | _BITS, ANY, doubles_of(known.makers, doubles))


def of_parts(step: Step, state: State) -> Value:
    """What is known of a word whose halves are moved."""
    below, above = (one_of(sources, state) for sources in step.copies)
    bits = (below.bits | above.bits) & (_KINDS | _FREE16)
    makers = union(*(v.makers if v.bits & _KINDS else () for v in (below, above)))
    if bits & _BRAIN and not below.bits & _KINDS:
        # The upper half alone may differ, where it is NaN on both sides: so is the whole.
        bits = bits & ~_BRAIN | _SINGLE
    return Value(bits | _FREE32, ANY, makers)


__all__ = ["of_doubles", "of_parts", "one_of"]
