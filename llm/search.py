"""Cheaper code for a stretch, each change proved."""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.lowering.allocate import RegisterMap

from .prompt import Prompt
from .proof import Code, Prover
from .stretch import Stretch


@dataclass(frozen=True, slots=True)
class Better:
    """Code that was proved and costs less."""

    code: Code
    cost: int
    modulo: tuple[str, ...]


def improved(
    stretch: Stretch, regs: RegisterMap, question: Prompt, prover: Prover
) -> Better | None:
    """The cheapest code that was found; None where none is cheaper than the rules'."""
    return None
