"""Salvages a wrong answer: its code in the steps where it is proved, the rules' elsewhere.

Steps end where no value is live in temporaries and each live register is in its place,
in the answer's code and in the rules'; so code of either may follow code of the other.  That is a
guess, like all of :func:`.proof.ends_of`: the result is judged as any answer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import SassxlateError
from sassxlate.lowering.engine.seam import Code
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.verify.steps.framing import accesses, flat_items
from sassxlate.lowering.verify.steps.prover import Prover, ends_of, lives


def spliced(
    block: Region,
    regs: RegisterMap,
    live_out: frozenset[RegRef],
    code: Code,
    rules: Sequence[Sequence[Item]],
    prover: Prover,
) -> tuple[Code, int, int] | None:
    """The code, the number of steps that are the answer's, and the number of steps; None if the
    former would be none or all.  ``rules`` is the rules' code by SASS instruction."""
    from sassxlate.lowering.verify import Proved

    theirs = tuple(tuple(i for i in group if isinstance(i, Inst)) for group in rules)
    if len(code) != len(theirs) or sum(map(len, theirs)) != sum(map(len, rules)):
        return None
    live_after = lives(block, live_out)
    taken = steps = first = 0
    made = theirs
    try:
        plain = [[replace(i, uniform=False, fence=False) for i in group] for group in code]
        mine = tuple(map(tuple, with_uniform(plain, block.instructions, regs)))
        both = set(ends_of(block, regs, live_after, mine)) & set(
            ends_of(block, regs, live_after, theirs)
        )
        for end in sorted(n for n in both if n > 0):
            steps += 1
            step = replace(block, instructions=block.instructions[first:end])
            if _worth(step, mine[first:end], theirs[first:end]):
                tried = (*made[:first], *mine[first:end], *made[end:])
                verdict = prover.pieces(block, regs, live_after, tried, first, end, ())
                if isinstance(verdict, Proved):
                    made, taken = tried, taken + 1
            first = end
    except SassxlateError:
        return None
    return (made, taken, steps) if 0 < taken < steps else None


def _worth(step: Region, mine: Code, theirs: Code) -> bool:
    """Whether a step costs less and accesses memory as the rules do."""
    try:
        ours, old = (flat_items(step, code) for code in (mine, theirs))
        return ours != old and accesses(ours) == accesses(old) and cost(ours) < cost(old)
    except SassxlateError:
        return False


__all__ = ["spliced"]
