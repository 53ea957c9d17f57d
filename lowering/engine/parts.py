"""Splits a region whose answer is not proved, to ask for its parts.

A part is a region like any other: between two parts no value is live in a temporary, VCC or SCC,
and each is proved from any state to the next, so proved parts make a proved region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from sassxlate.cfg.liveness import live_before
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import LoweringError
from sassxlate.lowering.optimize.regions import CutRegion, rules_code, said_as
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.macro import sealed

LONG = 8  # regions this long are split into three parts: the number of answers is limited


def no_guard(part: CutRegion) -> Callable[[int], bool]:
    """Whether a region may be split before an instruction, judging by the SASS: not if
    guards are on both sides, because the rules' code spans both."""
    sass = part.block.instructions

    def may(n: int) -> bool:
        before, after = sass[n - 1].guard, sass[n].guard
        return before.is_true or after.is_true

    return may


def parts(
    part: CutRegion, regs: RegisterMap, may: Callable[[int], bool] | None = None
) -> tuple[CutRegion, ...]:
    """Parts with their questions: three for a long region, two for a short one, split into parts of
    similar length; none if it cannot be split.  ``may`` tells whether code may be split before an
    instruction (see :func:`no_guard`)."""
    count = len(part.block.instructions)
    may = may or no_guard(part)
    places = [n for n in range(1, count) if may(n)]
    for into in (3, 2) if count >= LONG else (2,):
        cuts = {min(places, key=lambda n: abs(n - count * k / into), default=0)
                for k in range(1, into)}  # fmt: skip
        found = _cut(part, regs, sorted(cuts - {0}))
        if found:
            return found
    # A split without words here may have words elsewhere.
    for n in sorted(places, key=lambda n: abs(n - count / 2)):
        found = _cut(part, regs, [n])
        if found:
            return found
    return ()


def _cut(part: CutRegion, regs: RegisterMap, cuts: list[int]) -> tuple[CutRegion, ...]:
    """The parts between the cuts; none if there are no cuts, or a part has no words."""
    out: list[CutRegion] = []
    for first, end in pairwise([0, *cuts, len(part.block.instructions)]):
        made = _part(part, regs, first, end) if cuts else None
        if made is None:
            return ()
        out.append(made)
    return tuple(out)


def _part(part: CutRegion, regs: RegisterMap, first: int, end: int) -> CutRegion | None:
    """Instructions ``first`` to ``end``; None if they have no words."""
    sass = part.block.instructions
    live: frozenset[RegRef] = part.live_out
    for ins in reversed(sass[end:]):
        live = live_before(ins, live)
    block = replace(part.block, instructions=sass[first:end])
    # The end of a guarded run precedes the code after it.
    near = sass[max(0, first - 1) : end + 1]
    try:
        plain = all(ins.guard.is_true for ins in near)
        code = part.code[first:end] if plain else rules_code(block, regs)
        code = sealed(code, block.instructions, block.macros, regs)
    except LoweringError:
        return None
    return said_as(CutRegion(block, live, code), regs)


__all__ = ["no_guard", "parts"]
