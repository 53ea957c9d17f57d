"""The two parts of a stretch whose answer is not proved, to be asked apart.

A part is a stretch like any other: between the two nothing lives in a temporary, VCC or SCC, and
each is proved from any state to the next, so that proved parts are a proved stretch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.sass.ir import RegRef
from sassxlate.errors import LoweringError
from sassxlate.lowering.allocate import RegisterMap

from .stretch import Stretch, rules_code, said_as


def no_guard(part: Stretch) -> Callable[[int], bool]:
    """Whether a stretch may be cut in front of an instruction, as far as SASS says it: not where
    one guard is on both sides."""
    sass = part.block.instructions

    def may(n: int) -> bool:
        before, behind = sass[n - 1].guard, sass[n].guard
        return before.is_true or before != behind

    return may


def halves(
    part: Stretch, regs: RegisterMap, may: Callable[[int], bool] | None = None
) -> tuple[Stretch, Stretch] | None:
    """Two parts with their questions, cut as near to the middle as can be; None where it cannot be
    cut.  ``may`` says whether code may be cut in front of an instruction (see :func:`no_guard`)."""
    sass = part.block.instructions
    may = may or no_guard(part)
    middle = len(sass) / 2
    for n in sorted(range(1, len(sass)), key=lambda n: abs(n - middle)):
        if not may(n):
            continue
        first, second = _part(part, regs, 0, n), _part(part, regs, n, len(sass))
        if first is not None and second is not None:
            return first, second
    return None


def _part(part: Stretch, regs: RegisterMap, first: int, end: int) -> Stretch | None:
    """Instructions ``first`` to ``end``; None where they have no words."""
    sass = part.block.instructions
    live: frozenset[RegRef] = part.live_out
    for ins in reversed(sass[end:]):
        live = live_before(ins, live)
    block = replace(part.block, instructions=sass[first:end])
    # The end of a guarded run stands in front of what follows it.
    near = sass[max(0, first - 1) : end + 1]
    try:
        plain = all(ins.guard.is_true for ins in near)
        code = part.code[first:end] if plain else rules_code(block, regs)
    except LoweringError:
        return None
    return said_as(Stretch(block, live, code), regs)


__all__ = ["halves", "no_guard"]
