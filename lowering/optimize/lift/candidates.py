"""LLVM's code for the lifted runs of regions as a source of cheaper answers, proved or dropped.

It starts from the result of the search, and many regions go into one module; :mod:`.lift` makes
runs and :mod:`.backend` their code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import SassxlateError
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.draft import Draft
from sassxlate.lowering.optimize.lift.backend import compiled_runs, put
from sassxlate.lowering.optimize.peephole.peephole import shortened
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.optimize.search import Better
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.text import RegionText
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.verify import Proved, Verdict
from sassxlate.lowering.verify.steps.framing import accesses
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Code, Prover, ends_of, joints, lives, step_of

QUICK_MS = 50


@dataclass(frozen=True, slots=True)
class Known:
    """A region and proved code for it."""

    region: CutRegion
    regs: RegisterMap
    question: RegionText
    code: Code


def relowered(items: Sequence[Known], prover: Prover) -> Iterator[Better | None]:
    """LLVM's cheaper code for each; None if it is not cheaper."""
    drafts = [Draft.of(item.code, item.question) for item in items]
    for item, draft, found in zip(items, drafts, compiled_runs(drafts), strict=True):
        if not found:
            yield None
            continue
        for run, made in reversed(found):
            put(draft, run, made)
        shortened(draft, 2)
        try:
            yield _taken(item, prover, draft)
        except SassxlateError:
            yield None


def _price(code: Code) -> int:
    return cost([inst for group in code for inst in group])


def _taken(item: Known, prover: Prover, draft: Draft) -> Better | None:
    """The steps of a draft that are proved and cheaper, inserted into the code that it was made
    from."""
    block, live_out, regs = item.region.block, item.region.live_out, item.regs
    made = with_uniform(draft.code(), block.instructions, regs)
    live_after = lives(block, live_out)
    quick = _quick(prover)
    both = set(joints(made, regs)) & set(ends_of(block, regs, live_after, item.code)) - draft.joined
    ends = sorted(n for n in both if n > 0)
    new = [list(group) for group in item.code]
    first = 0
    for end in ends:
        mine, old = made[first:end], tuple(map(tuple, item.code[first:end]))
        if mine != old and _price(mine) < _price(old):
            tried = [*new[:first], *(list(g) for g in mine), *new[end:]]
            if _holds(item, quick, live_after, tried, first, end):
                new = tried
        first = end
    price = _price(new)
    if price >= _price(item.code):
        return None
    if accesses([i for g in new for i in g]) != accesses([i for g in item.code for i in g]):
        return None
    check_legality(new, item.question)
    verdict = prover.region(block, regs, live_out, new, ends)
    return Better(new, price, verdict.modulo) if isinstance(verdict, Proved) else None


def _quick(prover: Prover) -> Prover:
    """A prover that gives up early, and passes its proofs on to the other: LLVM's code is easily
    beyond the solver."""

    def read(key: str) -> Verdict | None:
        found = prover.kept.get(key)
        return found if found is not None else prover.read(key)

    def write(key: str, verdict: Verdict) -> None:
        if isinstance(verdict, Proved):
            prover.kept[key] = verdict
            prover.write(key, verdict)

    return Prover(read, write, QUICK_MS, QUICK_MS)


def _holds(
    item: Known,
    prover: Prover,
    live_after: Sequence[frozenset[RegRef]],
    code: Code,
    first: int,
    end: int,
) -> bool:
    try:
        step = step_of(item.region.block, item.regs, live_after, code, first, end)
        return isinstance(prover.step(step), Proved)
    except SassxlateError:
        return False


__all__ = ["Known", "relowered"]
