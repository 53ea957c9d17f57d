"""Who wrote which block of a kernel, and what became of what was proposed.

`translate --report` shows it; ``as_dict`` is its form in report.json.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from sassxlate.llm.gate.gate import Reason

# Why the model was not asked, or what the gate said last: see gate.Judgement.
Outcome: TypeAlias = Reason | Literal["macro", "guarded", "unsaid", "long"]


@dataclass(frozen=True, slots=True)
class BlockReport:
    """A stretch of a block.

    ``block`` is the graph's number of it, ``start`` and ``last`` the offsets of its first and last
    SASS instruction, ``instructions`` how many there are.  ``engine`` wrote the code that was
    taken: ``rules``, or the model's name.  ``outcome`` is ``accepted``, or why the rules' code
    stands: not asked because it is a ``macro`` (code that the language cannot say: loops, other
    lanes, fences), because a guard ``guarded`` its edges, it is ``unsaid`` (a register without a
    name) or too ``long`` for the model; otherwise the gate's word on the best answer, with
    ``detail``. Costs are lowering/optimize/cost.py's;
    ``model_cost`` is that of the answer spoken of.  ``verdict`` is the verifier's: ``Proved``,
    ``Refuted``, ``Unknown``, or empty if it was not asked; ``modulo`` the readings of a proof.
    ``kept``: the answer was remembered from a block of the same canonical form.
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
        """Whether the model was asked."""
        return self.outcome not in ("macro", "guarded", "unsaid", "long")


@dataclass(frozen=True, slots=True)
class EngineReport:
    """What an engine did with one kernel.

    ``blocks`` are stretches, or parts of one where parts of it were taken.  ``questions`` are the
    stretches that the model was asked for, ``distinct`` the canonical forms among them,
    ``remembered`` those of them that had an answer from before, ``further`` the other forms of
    their parts; seconds are of asking the model and of judging its answers.
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

    @property
    def accepted(self) -> int:
        """Blocks whose code is the model's."""
        return sum(b.outcome == "accepted" for b in self.blocks)

    @property
    def asked(self) -> int:
        return sum(b.asked for b in self.blocks)

    @property
    def saved(self) -> int:
        """Units of cost by which the model's code is below the rules', each block once."""
        return sum(
            b.rules_cost - b.model_cost
            for b in self.blocks
            if b.outcome == "accepted" and b.model_cost is not None
        )

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        counts = {
            "stretches": len(self.blocks), "asked": self.asked, "accepted": self.accepted,
            "saved": self.saved,
        }  # fmt: skip
        return {**asdict(self), **counts}

    @property
    def line(self) -> str:
        """In one line."""
        return (
            f"{self.engine} ({self.model}): {self.accepted} of {len(self.blocks)} blocks by the "
            f"model ({self.questions} stretches asked, {self.distinct} distinct, "
            f"{self.remembered} remembered, {self.further} of parts)"
        )


__all__ = ["BlockReport", "EngineReport", "Outcome"]
