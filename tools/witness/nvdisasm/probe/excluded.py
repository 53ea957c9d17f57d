"""Combinations that legal.json excludes, asked again, one by one.

A combination counts as illegal if none of the words that had it was printed.  Words are drawn, so
a legal one may have been drawn only together with something else that is illegal: a false refusal.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sassxlate.disasm.sass.codec import legality
from sassxlate.disasm.sass.codec.decode import row_of
from tools.witness.nvdisasm import witness as sass_witness
from tools.witness.nvdisasm.sweep import place

from .rows import Questions, Target, invent, pext, targets_of

_WORDS, _LEAST = 8, 4  # words asked about each combination
MOST = 256  # combinations of one group; of more, a sample


@dataclass(frozen=True, slots=True)
class Excluded:
    """A combination that nvdisasm prints in every word asked, with one of them."""

    generation: int
    row: str
    mnemonic: str
    group: legality.Group
    value: int
    word: int
    text: str


def _words(
    target: Target, group: legality.Group, value: int, rest: legality.Legality, rng: random.Random,
) -> Iterator[int]:  # fmt: skip
    """Words with one combination, legal otherwise."""
    found = 0
    for word, _ in invent(target, rng, 16 * _WORDS):
        word = (word & ~group.mask | place(group.mask, value)) & ~rest.reserved
        if word & target.row.match_mask != target.row.match_value:
            continue
        others = (g for g in rest.groups if g != group)
        if any(not g.taken >> pext(word, g.mask) & 1 for g in others):
            continue
        if row_of(word, target.row.generation) is not target.row:
            continue
        yield word
        found += 1
        if found == _WORDS:
            return


def wrongly_excluded(
    generation: int, witness: sass_witness.Witness, mnemonics: Sequence[str] = (), seed: int = 1
) -> list[Excluded]:
    """Excluded combinations of a generation, at most ``MOST`` of each group, that nvdisasm prints
    in each of at least four words that are legal otherwise; of all mnemonics, if none is given."""
    rng, questions = random.Random(f"{seed} {generation}"), Questions(witness, generation)
    asked: list[tuple[Target, legality.Group, int, list[int]]] = []
    for target in targets_of(generation):
        row = target.row.row
        if mnemonics and row.mnemonic not in mnemonics:
            continue
        rest = legality.find(row.opcode, target.row.match_mask, target.row.match_value, generation)
        for group in rest.groups:
            values = [v for v in range(1 << group.mask.bit_count()) if not group.taken >> v & 1]
            for value in values if len(values) <= MOST else rng.sample(values, MOST):
                asked.append((target, group, value, [*_words(target, group, value, rest, rng)]))
    questions.ask(word for *_, many in asked for word in many)
    found: list[Excluded] = []
    for target, group, value, many in asked:
        texts = [questions.known[word] for word in many]
        if len(many) >= _LEAST and all(
            t is not None and not sass_witness.doubtful(t) for t in texts
        ):
            found.append(
                Excluded(
                    generation, target.name, target.row.row.mnemonic, group, value, many[0],
                    texts[0] or "",
                )
            )  # fmt: skip
    return found


__all__ = ["Excluded", "wrongly_excluded"]
