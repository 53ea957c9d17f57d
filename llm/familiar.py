"""Questions in words that a model knows: forms of later architectures as those of sm_80 and sm_90.

From sm_100 on SASS has frequent forms that older architectures write otherwise: sums, moves,
comparisons and choices of 64 bits in one instruction, floating point on the scalar unit, constants
that lie and are loaded elsewhere than in older kernels.
For the question alone each is said as what older code has in its place, which may be several lines;
the answer's code of those lines belongs to the one instruction.  Nothing rests on it: what is
proved is the code of the real instructions.

What a line names and the block has not is lent (:mod:`.familiar_lent`).  :mod:`.familiar_forms` has
the forms, :mod:`.familiar_scalar` the scalar unit's, :mod:`.familiar_answers` what an answer's code
is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sassxlate.disasm.rdna3.ir import S, V
from sassxlate.disasm.sass.ir import Const, Instruction, RegRef
from sassxlate.lowering.allocate import RegisterMap
from sassxlate.lowering.engine import SassBlock

from .familiar_forms import FORMS
from .familiar_lent import Lender
from .familiar_scalar import Copies, Scalars

SINCE: Final = 100  # the first architecture with such forms


@dataclass(frozen=True, slots=True)
class Familiar:
    """A block's instructions as lines of older forms: ``lines[at:at + parts[n]]`` are those of the
    n-th, ``at`` the sum of the parts before.

    ``block`` has places in the kernarg segment as they are said; ``regs`` has places for what is
    lent: ``lent`` are the SGPRs, ``words`` the offsets in bank 0 of those that hold constants,
    ``masks`` those that hold predicates, ``vectors`` the VGPRs.  A line whose result the block has
    in a uniform register is followed by the copy in ``copies``; ``moves`` are lines that copy such
    a register, which an answer may leave out."""

    block: SassBlock
    lines: tuple[Instruction, ...]
    parts: tuple[int, ...]
    regs: RegisterMap
    lent: frozenset[int] = frozenset()
    words: Mapping[int, int] = field(default_factory=dict[int, int])
    masks: frozenset[int] = frozenset()
    vectors: tuple[int, ...] = ()
    copies: Copies = field(default_factory=dict[int, "tuple[S | V, V]"])
    moves: Copies = field(default_factory=dict[int, "tuple[S | V, V]"])


def familiar(
    block: SassBlock, regs: RegisterMap, live_out: frozenset[RegRef] = frozenset()
) -> Familiar | None:
    """The block in older forms; None where it is that already."""
    sass, around = block.instructions, block.around
    if not sass or around.arch < SINCE:
        return None
    lender = Lender(regs, around)
    scalars = Scalars(lender)
    lines: list[Instruction] = []
    parts: list[int] = []
    for ins in sass:
        said = scalars.said(ins, len(lines))
        if said is None:
            form = FORMS.get(ins.mnemonic)
            made = form(ins, lender) if form is not None else None
            said = [scalars.read(line) for line in made or [ins]]
            scalars.forget(ins)
        lender.step(ins)
        lines += said
        parts.append(len(said))
    other = any(isinstance(o, Const) and o.bank for i in sass for o in i.operands.values())
    if tuple(lines) == tuple(sass) and not other:
        return None
    return Familiar(
        replace(block, around=lender.around()),
        tuple(lines),
        tuple(parts),
        lender.known(),
        lender.lent,
        dict(lender.words),
        lender.masks,
        tuple(lender.vectors.values()),
        scalars.copies(lines, live_out),
        scalars.moves,
    )


__all__ = ["SINCE", "Familiar", "familiar"]
