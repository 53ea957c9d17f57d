"""The writer of each block of a kernel, and the fate of each proposal.

`translate --report` shows it; ``as_dict`` is its form in report.json.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from sassxlate.llm.gate.gate import Reason

# Why the model was not asked, or the gate's last reason: see gate.Judgement.
Outcome: TypeAlias = Reason | Literal["macro", "guarded", "unsaid", "long"]


@dataclass(frozen=True, slots=True)
class BlockReport:
    """A region of a block.

    ``block`` is the block's number in the graph, ``start`` and ``last`` the offsets of the first
    and last SASS instruction, ``instructions`` their number.  ``engine`` wrote the code that was
    taken: ``rules``, or the model's name.  ``outcome`` is ``accepted``, or the reason for the
    rules' code: the model was not asked because the region is a ``macro`` (code that the language
    cannot express: loops, other lanes, fences), a guard spans its edges (``guarded``), it is
    ``unsaid`` (a register without a name) or too ``long`` for the model; otherwise the gate's
    reason for the best answer, with ``detail``.  Costs are those of lowering/optimize/cost.py;
    ``model_cost`` is that of the judged answer.  ``verdict`` is the verifier's: ``Proved``,
    ``Refuted``, ``Unknown``, or empty if it was not run; ``modulo`` the readings of a proof.
    ``kept``: the answer was cached for a block of the same canonical form.
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
    """The work of an engine on one kernel.

    ``blocks`` are regions, or parts of one if parts of it were taken.  ``questions`` are the
    regions given to the model, ``distinct`` the canonical forms among them,
    ``remembered`` those with a cached answer, ``further`` the other forms of
    their parts; the seconds are for asking the model and for judging its answers.
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
        """The cost saved by the model's code compared with the rules', each block once."""
        return sum(
            b.rules_cost - b.model_cost
            for b in self.blocks
            if b.outcome == "accepted" and b.model_cost is not None
        )

    def as_dict(self) -> dict[str, Any]:
        """The report as a JSON value."""
        counts = {
            "stretches": len(self.blocks), "asked": self.asked, "accepted": self.accepted,
            "saved": self.saved,
        }  # fmt: skip
        return {**asdict(self), **counts}

    @property
    def line(self) -> str:
        """The report as one line."""
        return (
            f"{self.engine} ({self.model}): {self.accepted} of {len(self.blocks)} blocks by the "
            f"model ({self.questions} stretches asked, {self.distinct} distinct, "
            f"{self.remembered} remembered, {self.further} of parts)"
        )


__all__ = ["BlockReport", "EngineReport", "Outcome"]
