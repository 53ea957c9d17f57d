"""The writer of each block of a kernel, and the fate of each proposal.

`translate --report` shows it; ``as_dict`` is its form in report.json.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from sassxlate.errors import ModelError, Where
from sassxlate.lowering.engine.gate import Reason

# Why the proposer was not asked, or what the gate said last: see gate.Judgement.
Outcome: TypeAlias = Reason | Literal["macro", "guarded", "unsaid", "long", "refused"]


@dataclass(frozen=True, slots=True)
class BlockReport:
    """A region: a block, or a part of one.

    ``block`` is its number in the graph, ``start`` and ``last`` are the offsets of its first and
    last SASS instruction, ``instructions`` is their number.  ``engine`` wrote the code: ``rules``,
    or the proposer's name.  ``outcome`` is ``accepted``, or the reason for the rules' code.  The
    proposer was not asked for a ``macro`` (loops, other lanes, fences, which the language cannot
    express), if a guard crosses the region's edge (``guarded``), if a register has no name
    (``unsaid``), or if the region is too ``long`` for it.  ``refused``: the optimising
    tier, whose region is the whole kernel, does not take it.  Otherwise the outcome is the gate's
    judgement of the best candidate, with ``detail``.  Costs: lowering/optimize/cost.py;
    ``model_cost`` is the best candidate's, a model's or another proposer's.  ``verdict`` is the
    verifier's: ``Proved``, ``Refuted``, ``Unknown``, or empty if it was not asked; ``modulo`` the
    assumptions of a proof.  ``answers`` is the number of candidates.  ``kept``: they were
    remembered from a region of the same canonical form.
    """

    block: int
    start: int
    last: int
    instructions: int
    engine: str
    outcome: Outcome
    detail: str
    rules_cost: int
    model_cost: int | None
    verdict: str
    modulo: tuple[str, ...]
    answers: int
    kept: bool

    @property
    def asked(self) -> bool:
        """Whether the proposer was asked."""
        return self.outcome not in ("macro", "guarded", "unsaid", "long")


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The work of an engine on one kernel.

    ``engine`` is what `--engine` calls it, ``model`` the proposer's name.  ``blocks`` are regions,
    or parts of one where parts of it were taken.  ``questions`` are the regions that the proposer
    was asked for, ``distinct`` the canonical forms among them, ``remembered`` those of them that
    had an answer from before, ``further`` the other forms of their parts; seconds are of asking
    and of judging the answers.  ``edges`` are the instructions by which the code between blocks,
    which moves lanes, is shorter than the rules'.
    """

    engine: str
    model: str
    blocks: tuple[BlockReport, ...]
    questions: int
    distinct: int
    remembered: int
    further: int
    asking_s: float
    judging_s: float
    edges: int = 0

    @property
    def accepted(self) -> int:
        """Regions whose code is the proposer's."""
        return sum(b.outcome == "accepted" for b in self.blocks)

    @property
    def asked(self) -> int:
        return sum(b.asked for b in self.blocks)

    @property
    def saved(self) -> int:
        """Units of cost by which the proposer's code is below the rules', each region once."""
        return sum(
            b.rules_cost - b.model_cost
            for b in self.blocks
            if b.outcome == "accepted" and b.model_cost is not None
        )

    def defects(self, kernel: str) -> list[ModelError]:
        """SX1014 for each different error of the proposer, at the first region that met it.  Code
        that is malformed is one only for a proposer from a file: a model's answers are text."""
        kinds = ("raised", "malformed") if ".py:" in self.engine else ("raised",)
        found: dict[str, list[BlockReport]] = {}
        for block in self.blocks:
            if block.outcome in kinds:
                what = "raised" if block.outcome == "raised" else "returned"
                found.setdefault(f"{self.model} {what} {block.detail}", []).append(block)
        return [
            ModelError(
                "SX1014", f"{text}; {_count(blocks)} the rules' code",
                Where(kernel=kernel, offset=blocks[0].start),
            )
            for text, blocks in found.items()
        ]  # fmt: skip

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of regions by outcome, the most frequent first."""
        counted = Counter[str](b.outcome for b in self.blocks)
        return dict(counted.most_common())

    def as_dict(self) -> dict[str, Any]:
        """The report as a JSON value."""
        counts = {
            "regions": len(self.blocks), "asked": self.asked, "accepted": self.accepted,
            "saved": self.saved, "outcomes": self.outcomes,
        }  # fmt: skip
        return {**asdict(self), **counts}


def _count(blocks: Sequence[BlockReport]) -> str:
    return "1 region keeps" if len(blocks) == 1 else f"{len(blocks)} regions keep"


__all__ = ["BlockReport", "EngineReport", "Outcome"]
