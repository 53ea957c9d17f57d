"""A kernel's code between blocks, shorter; each step is proved before the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sassxlate.cfg import Cfg
from sassxlate.disasm.rdna3.instruction import Item, Label
from sassxlate.lowering.optimize.masks.deposits import of_branches, of_loops
from sassxlate.lowering.optimize.masks.edges import parts
from sassxlate.lowering.optimize.masks.shorten import Change, Known, shortened
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.verify.masks.operations import Unfollowed
from sassxlate.lowering.verify.masks.proof import Budget, same_lanes, walked
from sassxlate.lowering.verify.masks.rows import Row, rows_of
from sassxlate.lowering.verify.verdict import Proved, Undecided

STEPS: Final = 80_000  # of the prover, in a kernel
_ROUNDS: Final = 4


@dataclass(frozen=True, slots=True)
class Simplified:
    """Code that was proved, and is shorter.  ``steps`` were proved, ``unproved`` were not, and are
    not in it; ``why`` is what the prover said of the last of these."""

    items: tuple[Item, ...]
    steps: int
    unproved: int
    why: str


@dataclass(slots=True)
class _State:
    items: tuple[Item, ...]
    regs: RegisterMap
    cfg: Cfg
    budget: Budget
    steps: int = 0
    unproved: int = 0
    why: str = ""
    known: Known = field(default_factory=Known)

    @property
    def late(self) -> bool:
        return self.budget.left <= 0

    def proved(self, rows: Sequence[Row]) -> bool:
        verdict = same_lanes(rows, self.regs, self.budget)
        if isinstance(verdict, Proved):
            self.steps += 1
            return True
        self.unproved += 1
        self.why = getattr(verdict, "reason", "")
        return False


def simplified(
    items: Sequence[Item], regs: RegisterMap, cfg: Cfg, steps: int = STEPS
) -> Simplified | None:
    """Shorter code between the blocks of a kernel; None if none was found and proved."""
    state = _State(tuple(items), regs, cfg, Budget(steps))
    try:
        _shorten(state)
        _deposit_once(state)
        _shorten(state)
    except Undecided as why:
        state.why = str(why)
    except Unfollowed as what:
        state.why = f"{what} may go anywhere"
    if state.items == tuple(items):
        return None
    return Simplified(state.items, state.steps, state.unproved, state.why)


def _shorten(state: _State) -> None:
    for _ in range(_ROUNDS):
        before = state.items
        rows = rows_of(before)
        changes = shortened(
            rows, walked(rows, state.regs, state.budget), parts(rows, state.cfg), state.known
        )
        _try(state, rows, changes)
        if state.items == before:
            return


def _deposit_once(state: _State) -> None:
    """Additions to lanes that wait, of all lanes instead of some: first before loops."""
    again = True
    while again and not state.late:
        rows = rows_of(state.items)
        walk = walked(rows, state.regs, state.budget)
        again = False
        for change in of_loops(rows, walk, parts(rows, state.cfg), state.regs):
            if not state.late and state.proved(change):
                state.items, again = _items(change, state.items), True
                break
    rows = rows_of(state.items)
    changes = [{n: row} for n, row in of_branches(rows, parts(rows, state.cfg), state.regs)]
    _try(state, rows, changes)


def _try(state: _State, rows: Sequence[Row], changes: Sequence[Change]) -> None:
    """As many of the changes as are proved together: all, or those of each half."""
    taken: list[Row] = list(rows)

    def some(changes: Sequence[Change]) -> None:
        nonlocal taken
        if not changes or state.late:
            return
        made = list(taken)
        for change in changes:
            for n, row in change.items():
                made[n] = row
        if state.proved(made):
            taken = made
        elif len(changes) > 1:
            half = len(changes) // 2
            some(changes[:half])
            some(changes[half:])

    some(changes)
    state.items = _items(taken, state.items)


def _items(rows: Sequence[Row], items: Sequence[Item]) -> tuple[Item, ...]:
    labels = {item.name: item for item in items if isinstance(item, Label)}
    both: list[Item | None] = [labels[r.label] if r.label else r.new for r in rows]
    return tuple(item for item in both if item is not None)


__all__ = ["STEPS", "Simplified", "simplified"]
