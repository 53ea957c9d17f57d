"""A row of the table of semantics.

Kinds of operands, in LLVM's print order.  Registers:

``b32 b64 b16``  raw bits; b16 is the half that op_sel selects
``f32 f64 f16``  the same with neg and abs, and clamp and omod on results
``p16 pf16``     two halves in 32 bits: VOP3P's op_sel, and neg_lo and neg_hi for pf16.  The
                 function is of one half, and is applied to each
``pair``         the same two halves as one 32-bit value
``mix``          v_fma_mix's: binary32, or a half of a register converted to it
``f16lo f16hi``  a result in a fixed half
``raw``          bits of VOP3P without modifiers; ``neg`` (implicit) are its neg bits instead
``m``            a truth value per lane, in a scalar register
Implicit, so absent from the printed operands: ``scc``, ``exec`` (a 32-bit mask), ``vcc`` (a truth
value per lane), ``lane`` (the lane's number), ``imm`` (the 16-bit immediate, sign-extended),
``immz`` (zero-extended) and ``acc:KIND`` (the first destination's old value).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sassxlate.domain.interface import IEEE, Fp

Fn: TypeAlias = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Mode:
    """The parts of the MODE register that arithmetic depends on."""

    f32: Fp = IEEE
    f16_64: Fp = IEEE
    ieee: bool = False
    dx10_clamp: bool = True

    def fp(self, width: int) -> Fp:
        return self.f32 if width == 32 else self.f16_64


@dataclass(frozen=True, slots=True)
class Semantics:
    """``fn(d, *sources)``, or ``fn(d, mode, *sources)`` if ``mode``: one value, or a tuple with
    one for each destination.  ``saturating`` is the function for an integer instruction with
    ``clamp``."""

    op: str
    dst: tuple[str, ...]
    src: tuple[str, ...]
    fn: Fn
    mode: bool = False
    saturating: Fn | None = None
    approximate: bool = False  # within stated bounds only: strict mode perturbs it


def row(op: str, dst: str, src: str, fn: Fn, *, saturating: Fn | None = None) -> Semantics:
    return Semantics(op, tuple(dst.split()), tuple(src.split()), fn, saturating=saturating)


def frow(op: str, dst: str, src: str, fn: Fn, *, approximate: bool = False) -> Semantics:
    """A row whose function takes the MODE."""
    return Semantics(op, tuple(dst.split()), tuple(src.split()), fn, True, None, approximate)


def table(rows: Iterable[Semantics]) -> dict[str, Semantics]:
    out: dict[str, Semantics] = {}
    for r in rows:
        if r.op in out:
            raise ValueError(f"two meanings of {r.op}")
        out[r.op] = r
    return out
