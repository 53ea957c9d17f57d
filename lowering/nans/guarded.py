"""What is known of registers where a guard holds.

``@P0 MOV R4, R8`` and then ``@P0 LDG R4, [R4.64]``: the second reads what the first wrote, never
the number that was in R4 before.  In the states of :mod:`.flow` that is one of the values of R4.
"""

from __future__ import annotations

from typing import TypeAlias

from sassxlate.disasm.sass.instruction import Pred, RegRef
from sassxlate.lowering.nans.steps import State, Step, Value

_Guard: TypeAlias = tuple[str, int, bool]


def _key(guard: Pred) -> _Guard:
    return guard.file, guard.index, guard.inv


class Guarded:
    """The values that the instructions of a block have written under each guard since its predicate
    was set: those that the next instruction under the same guard finds."""

    def __init__(self) -> None:
        self._known: dict[_Guard, State] = {}

    def state(self, step: Step, state: State) -> State:
        """What an instruction finds, of what is known where any lane may come from anywhere."""
        if step.plain or not self._known:
            return state
        known = self._known.get(_key(step.ins.guard))
        return {**state, **known} if known else state

    def written(self, step: Step, values: dict[int, Value]) -> None:
        """An instruction wrote these, and predicates."""
        if step.plain and not self._known:
            return
        mine = None if step.plain else _key(step.ins.guard)
        for guard, known in self._known.items():
            file, index, inv = guard
            if mine is None or mine not in (guard, (file, index, not inv)):
                for register in step.writes:
                    known.pop(register, None)
        if mine is not None:
            self._known.setdefault(mine, {}).update(values)
        for ref in step.ins.writes:
            self._set(ref)

    def _set(self, ref: RegRef) -> None:
        for inv in (False, True):
            self._known.pop((ref.file, ref.index, inv), None)


__all__ = ["Guarded"]
