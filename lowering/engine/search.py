"""The search as a proposer: needs the solver, and no model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sassxlate.errors import EncodeError
from sassxlate.lowering.engine.memo import Memo, Words, key_of
from sassxlate.lowering.engine.seam import Code, Proposals, Question
from sassxlate.lowering.optimize.regions import CutRegion
from sassxlate.lowering.optimize.search import improved
from sassxlate.lowering.region.text import code_words, read_code
from sassxlate.lowering.verify.steps.prover import Prover

NAME: Final = "search"
LONGEST: Final = 24  # SASS instructions of a region
STEPS: Final = (
    48  # proofs tried for a region: six that fail; in measured programs one fails at most
)


@dataclass(slots=True)
class SearchProposer:
    """Changes over the rules' code.  What is found is remembered by the region's canonical form,
    also that nothing was.  ``steps``: the proofs that are tried for a region, see
    :func:`.improved`; where none are left, the rules' code stays.  A number, not a time, so that
    the same code comes out on a loaded machine."""

    prover: Prover = field(default_factory=Prover)
    memo: Memo = field(default_factory=Memo)
    steps: int = STEPS

    @property
    def name(self) -> str:
        return NAME

    def propose(self, question: Question) -> Proposals:
        """The cheapest code that was found, or none."""
        key = key_of(NAME, question.text.text, 1, len(question.temporaries))
        found = self.memo.find(key)
        if found is None:
            self.memo.keep(key, self._searched(question))
            return Proposals(_read(self.memo.kept[key], question))
        try:
            return Proposals(_read(found, question), remembered=True)
        except EncodeError:  # it has pairs of registers that lie apart here
            return Proposals(_read(self._searched(question), question))

    def _searched(self, question: Question) -> list[Words]:
        region = CutRegion(question.region, question.live_out, question.rules)
        better = improved(
            region, question.regs, question.text, self.prover, question.rules, self.steps,
            whole=False,
        )  # fmt: skip
        if better is None:
            return []
        return [tuple(word for line in code_words(better.code, question.text) for word in line)]


def _read(answers: list[Words], question: Question) -> tuple[Code, ...]:
    return tuple(read_code(words, question.text) for words in answers)


__all__ = ["LONGEST", "NAME", "STEPS", "SearchProposer"]
