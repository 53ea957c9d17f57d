"""Cheaper code for a region than the rules': changes are tried, and those kept are proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import SassxlateError
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.optimize.draft import Draft
from sassxlate.lowering.optimize.peephole.peephole import shortened
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.optimize.stochastic import STEPS, walk_runs
from sassxlate.lowering.optimize.temporaries import packed
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.text import RegionText, code_words
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.verify import Proved
from sassxlate.lowering.verify.steps.framing import accesses, flat_items
from sassxlate.lowering.verify.steps.legality import check_legality
from sassxlate.lowering.verify.steps.prover import Code, Prover, joints, lives, waited

FAILED: Final = 8  # steps that a failed proof counts as: the solver may use up its time


@dataclass(frozen=True, slots=True)
class Better:
    """Code that was proved and costs less."""

    code: Code
    cost: int
    modulo: tuple[str, ...]


def improved(
    region: CutRegion,
    regs: RegisterMap,
    question: RegionText,
    prover: Prover,
    rules: Code,
    steps: int | None = None,
    *,
    whole: bool = True,
    change: Callable[[Draft], object] = shortened,
) -> Better | None:
    """The cheapest code found; None if none is cheaper than the rules'.

    If a step of it is not proved, the rules' code stays there; nor are proofs tried when ``steps``
    are spent (None: no limit), of which one that succeeds takes one and one that fails
    ``FAILED``.  ``whole``: the steps that stay the rules' are proved as
    well, so that all of the region is; without, they may be what cannot be proved.  ``change`` is
    what edits the draft.
    """
    left = steps
    draft = Draft.of(rules, question)
    change(draft)
    made = with_uniform(draft.code(), region.block.instructions, regs)
    both = set(joints(made, regs)) & set(joints(rules, regs)) - draft.joined
    ends = sorted(n for n in both if n > 0)
    live_after = lives(region.block, region.live_out)
    code = [list(group) for group in rules]
    modulo: set[str] = set()
    same: list[tuple[int, int]] = []

    def price(first: int, part: Code) -> int:
        sass = region.block.instructions[first : first + len(part)]
        return cost(flat_items(replace(region.block, instructions=sass), part))

    first = 0
    for end in ends:
        # As the engine packs them, so that a step is proved once.
        mine, old = packed(made[first:end], regs.vtemp_base), rules[first:end]
        verdict = None
        tried = [*code[:first], *(list(g) for g in mine), *code[end:]]
        cheaper = mine != tuple(map(tuple, old)) and price(first, mine) < price(first, old)
        if cheaper and (left is None or left > 0):
            verdict = _proved(region, regs, live_after, prover, tried, first, end, draft.bound)
            if left is not None:
                left -= 1 if verdict is not None else FAILED
        if verdict is not None:
            code = tried
            modulo.update(verdict.modulo)
        else:
            same.append((first, end))
        first = end
    new, known = flat_items(region.block, code), flat_items(region.block, rules)
    total = cost(new)
    if total >= cost(known) or accesses(new) != accesses(known):
        return None
    try:
        check_legality(code, question)
        code_words(code, question)  # fails for register pairs that the prompt does not have
        for first, end in same if whole else ():
            verdict = _proved(region, regs, live_after, prover, code, first, end, ())
            if verdict is None:
                break
            modulo.update(verdict.modulo)
        else:
            good = waited(region.block, regs, region.live_out, code)
            return Better(code, total, tuple(sorted(modulo))) if good else None
        # The rules' code may not be expressible in these steps.
        at_once = prover.region(region.block, regs, region.live_out, code, ends)
    except SassxlateError:
        return None
    return Better(code, total, at_once.modulo) if isinstance(at_once, Proved) else None


def walked(
    region: CutRegion,
    regs: RegisterMap,
    question: RegionText,
    prover: Prover,
    rules: Code,
    seeds: Sequence[int],
    steps: int = STEPS,
) -> Better | None:
    """The cheapest code that stochastic walks find, and is proved; None if none is cheaper than the
    rules'.  Each seed is two starts: the rules' code, and the search's."""
    best: Better | None = None
    for seed in seeds:
        for searched in (False, True):

            def change(draft: Draft, seed: int = seed, searched: bool = searched) -> None:
                if searched:
                    shortened(draft)
                walk_runs(draft, seed, steps)
                shortened(draft)

            found = improved(region, regs, question, prover, rules, change=change)
            if found is not None and (best is None or found.cost < best.cost):
                best = found
    return best


def _proved(
    region: CutRegion,
    regs: RegisterMap,
    live_after: Sequence[frozenset[RegRef]],
    prover: Prover,
    code: Code,
    first: int,
    end: int,
    bound: Iterable[frozenset[int]],
) -> Proved | None:
    """Whether a step is proved."""
    try:
        verdict = prover.pieces(region.block, regs, live_after, code, first, end, bound)
    except SassxlateError:
        return None
    return verdict if isinstance(verdict, Proved) else None
