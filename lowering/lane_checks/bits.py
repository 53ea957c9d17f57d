"""What is known about a lane's bit in a scalar register, and the whole-mask operations on it.

* ``NO``, ``YES``: known (each outcome of a comparison is tried in turn); None: either;
* ``ABSENT``: 0, because the lane was not running when the comparison was made: the same as NO in a
  mask of lanes that have done something, but no basis for a decision;
* ``DROPPED``: such a comparison was used to decide about lanes that should be present; also an
  entirely unknown bit, because nothing wrote it.
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
    # Lanes that are here are tested against a comparison that left them out.
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
    if b == ABSENT:  # removes the lanes that are done; an absent lane has done nothing
        return a
    return both(a, negated(b))


__all__ = ["ABSENT", "DROPPED", "NO", "YES", "both", "either", "negated", "without"]
