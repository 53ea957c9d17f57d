"""Asks a model for the parts of a block whose likeliest answer is not proved.

As an engine does (:mod:`sassxlate.llm.engine.engine`), an unproved block is asked for in parts, an
unproved part in its own parts; a part that cannot be split gets further answers.  No instruction is
in more answers than the requested samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sassxlate.errors import EncodeError
from sassxlate.llm.evaluation.corpus import EvaluationBlock, block_of
from sassxlate.llm.evaluation.results import Answer
from sassxlate.llm.language.prompt import question_words
from sassxlate.lowering.engine.parts import parts
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.region.text import Words

# Functions: one asks for several answers to each block, one judges numbered answers to blocks.
Ask = Callable[[Sequence[EvaluationBlock], int], list[list[Words]]]
Cases = Sequence[tuple[EvaluationBlock, tuple[tuple[int, Words], ...]]]
Judge = Callable[[Cases], list[tuple[Answer, ...]]]


@dataclass(slots=True)
class _Node:
    """A block or a part of one: its likeliest answer, then its parts.  ``tried``: the number of
    answers that contain its instructions."""

    block: EvaluationBlock
    best: Answer
    tried: int = 1
    parts: tuple[_Node, ...] = ()
    drawn: list[Answer] = field(default_factory=list[Answer])


def parts_of(block: EvaluationBlock) -> tuple[EvaluationBlock, ...]:
    """The parts of a block, as blocks; none if it cannot be split."""
    here = block.question
    found = parts(CutRegion(here.block, here.live_out, block.rules), here.regs)
    try:
        return tuple(
            block_of(question_words(p.block, here.regs, p.live_out, p.asked), p.code, block.arch)
            for p in found
        )
    except EncodeError:
        return ()


def in_parts(
    blocks: Sequence[tuple[EvaluationBlock, Answer]], samples: int, ask: Ask, judge: Judge
) -> list[tuple[Answer | None, int]]:
    """For each block and its unproved first answer: the proved answers to its parts, or further
    samples, joined (None if a part is left), and the largest number of answers that contain an
    instruction."""
    roots = [_Node(block, first) for block, first in blocks]
    ends: list[_Node] = []
    level = [r for r in roots if not r.best.proved]
    while level:
        new: list[_Node] = []
        for node in level:
            cut = parts_of(node.block) if node.tried < samples else ()
            if not cut:
                ends.append(node)
                continue
            node.parts = tuple(_Node(part, node.best, node.tried + 1) for part in cut)
            new += node.parts
        for node, answers in zip(new, _judged(new, ask, judge, 1), strict=True):
            node.best = answers[0] if answers else Answer("long", "long")
        level = [node for node in new if not node.best.proved]
    for left in sorted({samples - node.tried for node in ends} - {0}):
        mine = [node for node in ends if samples - node.tried == left]
        for node, answers in zip(mine, _judged(mine, ask, judge, left + 1), strict=True):
            node.drawn = [a for a in answers if a.proved]
            node.tried = samples
    return [(_settled(root), max(n.tried for n in _all(root))) for root in roots]


def _judged(
    nodes: Sequence[_Node], ask: Ask, judge: Judge, count: int
) -> Iterator[tuple[Answer, ...]]:
    """The answers to nodes, the likeliest first; each question is asked once."""
    different = {node.block.question.text: node.block for node in nodes}
    answers = dict(zip(different, ask(list(different.values()), count), strict=True))
    cases: list[tuple[EvaluationBlock, tuple[tuple[int, Words], ...]]] = []
    for node in nodes:
        new: dict[Words, int] = {}
        for n, words in enumerate(answers[node.block.question.text]):
            if n or count == 1:  # of several answers, the first has been judged
                new.setdefault(words, n)
        cases.append((node.block, tuple((n, w) for w, n in new.items())))
    yield from judge(cases)


def _all(node: _Node) -> Iterator[_Node]:
    yield node
    for part in node.parts:
        yield from _all(part)


def _settled(node: _Node) -> Answer | None:
    """The proved answer for a node; None if some part is not proved."""
    if node.best.proved:
        return node.best
    if node.drawn:
        return min(node.drawn, key=lambda a: (a.cost or 0, a.drawn))
    every = [_settled(part) for part in node.parts]
    found = [part for part in every if part is not None]
    return together(found) if every and len(found) == len(every) else None


def together(found: Iterable[Answer]) -> Answer:
    """Proved answers to the parts of a block as one answer to the block."""
    every = list(found)
    readings = {r for a in every for r in a.modulo.split("; ") if r}
    return Answer(
        "Proved",
        "accepted",
        cost=sum(a.cost or 0 for a in every),
        temps=max(a.temps for a in every),
        modulo="; ".join(sorted(readings)),
        drawn=max(a.drawn for a in every),
        text=" ".join(a.text for a in every),
        parts=sum(a.parts for a in every),
    )


__all__ = ["Cases", "in_parts", "parts_of", "together"]
