"""Registers that an instruction accesses without an operand slot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sassxlate.disasm.sass.instruction import Imm, Operand, PredFile, RegRef


def _masked(operands: Mapping[str, Operand], file: PredFile) -> set[RegRef]:
    """The predicates that the immediate ``mask`` names."""
    mask = operands["mask"]
    if not isinstance(mask, Imm):
        return {RegRef(file, i) for i in range(7)}
    return {RegRef(file, i) for i in range(7) if mask.value >> i & 1}


def _p2r(operands: Mapping[str, Operand], reads: set[RegRef], writes: set[RegRef]) -> None:
    reads |= _masked(operands, "P")


def _r2p(operands: Mapping[str, Operand], reads: set[RegRef], writes: set[RegRef]) -> None:
    writes |= _masked(operands, "P")


def _up2ur(operands: Mapping[str, Operand], reads: set[RegRef], writes: set[RegRef]) -> None:
    reads |= _masked(operands, "UP")


def _ur2up(operands: Mapping[str, Operand], reads: set[RegRef], writes: set[RegRef]) -> None:
    writes |= _masked(operands, "UP")


# By the name that a row gives as its ``effect``.
IMPLICIT: Final[Mapping[str, Callable[[Mapping[str, Operand], set[RegRef], set[RegRef]], None]]] = {
    "p2r": _p2r,
    "r2p": _r2p,
    "up2ur": _up2ur,
    "ur2up": _ur2up,
}


__all__ = ["IMPLICIT"]
