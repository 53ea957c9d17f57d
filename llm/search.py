"""Cheaper code for a stretch than the rules': changes are tried, and what is kept is proved."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.errors import SassxlateError
from sassxlate.lowering.allocate import RegisterMap
from sassxlate.lowering.verify import Proved

from .check import check
from .cost import cost
from .gate import accesses
from .peephole import shortened
from .prompt import Prompt
from .proof import Code, Prover, joints, lives, step_of
from .rewrite import Draft
from .stretch import Stretch
from .uniform import with_uniform


@dataclass(frozen=True, slots=True)
class Better:
    """Code that was proved and costs less."""

    code: Code
    cost: int
    modulo: tuple[str, ...]


def _price(code: Code) -> int:
    return cost([inst for group in code for inst in group])


def improved(
    stretch: Stretch, regs: RegisterMap, question: Prompt, prover: Prover, rules: Code
) -> Better | None:
    """The cheapest code that was found; None where none is cheaper than the rules'.

    Where a step of it is not proved, the rules' code stays there.
    """
    draft = Draft.of(rules, question)
    shortened(draft)
    made = with_uniform(draft.code(), stretch.block.instructions, regs)
    both = set(joints(made, regs)) & set(joints(rules, regs)) - draft.joined
    ends = sorted(n for n in both if n > 0)
    first = 0
    code = [list(group) for group in rules]
    for end in ends:
        mine, old = made[first:end], rules[first:end]
        if mine != tuple(map(tuple, old)) and _price(mine) < _price(old):
            tried = [*code[:first], *(list(g) for g in mine), *code[end:]]
            if _holds(stretch, regs, prover, tried, first, end):
                code = tried
        first = end
    price = _price(code)
    if price >= _price(rules):
        return None
    items = [inst for group in code for inst in group]
    if accesses(items) != accesses([inst for group in rules for inst in group]):
        return None
    try:
        check(code, question)
        verdict = prover.stretch(stretch.block, regs, stretch.live_out, code, ends)
    except SassxlateError:
        return None
    if not isinstance(verdict, Proved):
        return None
    return Better(code, price, verdict.modulo)


def _holds(
    stretch: Stretch,
    regs: RegisterMap,
    prover: Prover,
    code: Code,
    first: int,
    end: int,
) -> bool:
    """Whether a step is proved."""
    try:
        behind = lives(stretch.block, stretch.live_out)
        verdict = prover.step(step_of(stretch.block, regs, behind, code, first, end))
    except SassxlateError:
        return False
    return isinstance(verdict, Proved)
