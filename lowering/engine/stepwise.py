"""Judges code of a region step by step: each step that is proved and cheaper is taken by itself.

Steps end where the rules' code and the proposed code have no pending state: no guard is open, no
temporary is still to be read, each live register is in its place.  A step is then a region like any
other, proved from any state to the next, so code of either may follow code of the other; the rest
keeps the rules' code, which needs no proof here.  That the state is shared is a guess, as in
:func:`.prover.ends_of`: the proof of a step has all registers that are live after it.

So a whole block is one question, whatever it holds: what one step cannot have costs the others
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.errors import SassxlateError
from sassxlate.lowering.engine.gate import Gate, Judgement
from sassxlate.lowering.engine.seam import Code
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.optimize.temporaries import packed
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.verify.steps.framing import flat_items
from sassxlate.lowering.verify.steps.prover import ends_of, lives


@dataclass(frozen=True, slots=True)
class Stepwise:
    """What passed, as one judgement.  ``complete``: every other step is the rules' own, or is no
    cheaper."""

    got: Judgement
    complete: bool


def by_steps(
    part: CutRegion,
    regs: RegisterMap,
    code: Code,
    starts: Sequence[int | None],
    items: Sequence[Item],
    gate: Gate,
) -> Stepwise | None:
    """Judges each step that differs from the rules'; None if there are not several steps, or none
    passes.  ``starts`` is where the rules' code of each instruction begins in ``items``."""
    theirs = tuple(tuple(i for i in group if isinstance(i, Inst)) for group in part.code)
    if len(code) != len(theirs) or sum(map(len, theirs)) != sum(map(len, part.code)):
        return None
    block = part.block
    live_after = lives(block, part.live_out)
    try:
        plain = [[replace(i, uniform=False, fence=False) for i in group] for group in code]
        mine = tuple(map(tuple, with_uniform(plain, block.instructions, regs)))
        common = set(ends_of(block, regs, live_after, mine))
        common &= set(ends_of(block, regs, live_after, theirs))
    except SassxlateError:
        return None
    ends = sorted(n for n in common if n > 0 and starts[n] is not None)
    if len(ends) < 2 or ends[-1] != len(code) or starts[0] is None:
        return None
    taken: list[tuple[int, int, Judgement]] = []
    complete, saved, changed, first = True, 0, 0, 0
    for end in ends:
        if not _same(mine[first:end], theirs[first:end]):
            begin, stop = starts[first], starts[end]
            rules = items[begin:stop]
            sub = replace(block, instructions=block.instructions[first:end])
            changed += 1
            new = packed(code[first:end], regs.vtemp_base)
            got = gate.judge(sub, regs, live_after[end - 1], new, rules)
            if got.accepted:
                taken.append((first, end, got))
                saved += cost(rules) - (got.cost or 0)
            complete &= got.accepted or got.reason == "dearer"
        first = end
    if not taken:
        return None
    price = cost(flat_items(block, part.code)) - saved
    detail = "" if complete else f"{len(taken)} of {changed} steps"
    modulo = tuple(sorted({name for _, _, got in taken for name in got.proved or ()}))
    passed = Judgement("accepted", detail, price, modulo, steps=tuple(taken))
    return Stepwise(passed, complete)


def _same(mine: Code, theirs: Code) -> bool:
    """Whether a step has the rules' code; marks do not count."""
    return all(
        len(a) == len(b)
        and all(replace(x, uniform=False) == replace(y, uniform=False, fence=x.fence)
                for x, y in zip(a, b, strict=True))
        for a, b in zip(mine, theirs, strict=True)
    )  # fmt: skip


__all__ = ["Stepwise", "by_steps"]
