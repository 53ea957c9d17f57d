"""What is known of a lane's bit in a scalar register, and what whole-mask instructions make of it.

* ``NO``, ``YES``: known (a comparison's outcome is either, in its turn); None: either;
* ``ABSENT``: 0, because the lane was not running when the comparison was made: as good as NO where
  it says which lanes have done something, and nothing to choose by;
* ``DROPPED``: what was asked of lanes that should be there, of such a comparison; and what is not
  known at all, because nothing wrote it.
"""

from __future__ import annotations

NO, YES, ABSENT, DROPPED = range(4)


def negated(a: int | None) -> int | None:
    return None if a is None else {NO: YES, YES: NO}.get(a, DROPPED)


def both(a: int | None, b: int | None) -> int | None:
    if NO in (a, b):
        return NO
    if a is None or b is None:
        return None
    if a == b == YES:
        return YES
    if DROPPED in (a, b):
        return DROPPED
    # Of lanes that are here it was asked whether they are in a comparison that left them out.
    return DROPPED if YES in (a, b) else ABSENT


def either(a: int | None, b: int | None) -> int | None:
    if YES in (a, b):
        return YES
    if a is None or b is None:
        return None
    if DROPPED in (a, b):
        return DROPPED
    return ABSENT if a == b == ABSENT else NO


def without(a: int | None, b: int | None) -> int | None:
    if b == ABSENT:  # what has been done is taken out: by those that were not running, nothing
        return a
    return both(a, negated(b))


__all__ = ["ABSENT", "DROPPED", "NO", "YES", "both", "either", "negated", "without"]
