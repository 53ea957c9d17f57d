"""Restates questions in familiar forms: those of later architectures in the forms of sm_80 and
sm_90.

From sm_100 on, SASS has frequent forms for which older architectures have others: sums, moves,
comparisons and choices of 64 bits in one instruction, floating point on the scalar unit, constants
that are at other places and are loaded differently than in older kernels.  Only in the question,
each is restated in the older form, which may take several lines; the answer's code for those lines
belongs to the one instruction.  Correctness does not depend on it: the proof is about the code of
the real instructions.

Names that a line needs and the block lacks are lent (:mod:`.lender`).  :mod:`.forms` has the forms,
:mod:`.scalar_float` the scalar unit's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sassxlate.disasm.sass.instruction import Const, Instruction, RegRef
from sassxlate.llm.language.older_forms.forms import FORMS
from sassxlate.llm.language.older_forms.lender import ScratchNames
from sassxlate.llm.language.older_forms.scalar_float import Scalars
from sassxlate.lowering.optimize.regions import LONGEST, CutRegion
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.restated import Restated

SINCE: Final = 100  # the first architecture with such forms


def restated(
    block: Region, regs: RegisterMap, live_out: frozenset[RegRef] = frozenset()
) -> Restated | None:
    """The block in older forms; None if it already has only those."""
    sass, around = block.instructions, block.around
    if not sass or around.arch < SINCE:
        return None
    lender = ScratchNames(regs, around)
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
    return Restated(
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


def has_macros(block: Region) -> bool:
    """Whether a macro is among a region's instructions."""
    return any(ins.offset in block.macros for ins in block.instructions)


def too_long(part: CutRegion, regs: RegisterMap, longest: int = LONGEST) -> bool:
    """Whether the older forms take more lines than any block of older architectures has.  One with
    macros is asked in its own forms."""
    if has_macros(part.block):
        return False
    known = restated(part.block, regs, part.live_out)
    return known is not None and len(known.lines) > longest
