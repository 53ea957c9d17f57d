"""Checks that a proposed block must pass: legal, within its registers, proved, cheaper.

The verifier checks that a block has the same results as its SASS.  It does not check some
properties, which are checked here: that only the block's own registers and temporaries are written
(masks of waiting lanes live in others), that memory is accessed by the same accesses in the same
order with the same caching, and that the waits and fences which order it are the rules'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from sassxlate.disasm.rdna3 import assemble
from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.errors import EncodeError, SassxlateError
from sassxlate.lowering.optimize.cost import cost
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.region.macro import MACRO, misplaced
from sassxlate.lowering.region.region import Region
from sassxlate.lowering.region.text import region_text
from sassxlate.lowering.region.uniform import with_uniform
from sassxlate.lowering.verify.steps.framing import (
    Groups,
    Limits,
    accesses,
    beyond,
    flat_code,
    flat_items,
    foreign_writes,
    framed_for_verifier,
    refused,
)
from sassxlate.lowering.verify.steps.legality import check_legality

if TYPE_CHECKING:
    from sassxlate.lowering.verify import Verdict
    from sassxlate.lowering.verify.steps.prover import Prover

TIMEOUT_MS = 2_000
VECTORS = 256  # random inputs if the solver has no answer: it would not be Proved anyway

Reason: TypeAlias = Literal[
    "accepted", "none", "raised", "malformed", "encoding", "registers", "accesses", "refuted",
    "unknown", "dearer",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """The gate's judgement of one answer.

    ``reason`` is ``accepted``, or the check that failed, in the order of the checks: ``none``
    (no answer), ``raised`` (the proposer raised an error), ``malformed`` (not code of the region's
    instructions), ``encoding``, ``registers``, ``accesses``, ``refuted`` or
    ``unknown`` (the verifier's verdict, in ``detail``).  ``dearer`` is not cheaper than the rules'
    code, if that is required; then the verifier is not run.  ``proved`` names the readings of the
    proof, None if it was not proved.  ``steps``: where code was judged step by step
    (:mod:`.stepwise`), those that passed, as first and last instruction and judgement; elsewhere
    the rules' code stays.
    """

    reason: Reason
    detail: str = ""
    cost: int | None = None
    proved: tuple[str, ...] | None = None
    code: tuple[tuple[Inst, ...], ...] = ()
    steps: tuple[tuple[int, int, Judgement], ...] = ()

    @property
    def accepted(self) -> bool:
        return self.reason == "accepted"


def limits(regs: RegisterMap, vtemps: int) -> Limits:
    """``vtemps`` VGPRs from the first temporary on, and the map's scalar temporaries."""
    first = regs.vtemp_base
    return Limits(
        frozenset(range(first, min(first + vtemps, regs.target.vgprs))), frozenset(regs.stemps)
    )


def prove(
    block: Region,
    regs: RegisterMap,
    live_out: frozenset[RegRef],
    code: Groups,
    timeout_ms: int = TIMEOUT_MS,
) -> Verdict:
    """The verifier's verdict on an answer, whose v_readfirstlane are marked by what is known here.

    Raises as :func:`framed_for_verifier` does.
    """
    from sassxlate.lowering.verify import verify

    made = framed_for_verifier(block, regs, live_out, code)
    return verify(made, timeout_ms=timeout_ms, vectors=VECTORS)


@dataclass(frozen=True, slots=True)
class Gate:
    """The checks of an answer.  ``vtemps`` are the VGPRs available for temporaries; ``cheaper``:
    whether it must cost less than the rules' code.  ``prover`` proves in steps, and may cache its
    proofs; without one, each answer gets a new one."""

    vtemps: int
    cheaper: bool = True
    timeout_ms: int = TIMEOUT_MS
    prover: Prover | None = None

    def judge(
        self,
        block: Region,
        regs: RegisterMap,
        live_out: frozenset[RegRef],
        code: Groups,
        rules: Sequence[Item],
    ) -> Judgement:
        """Judges an answer (code by SASS instruction), given the rules' code of the block.

        Marks of uniform values are not trusted but computed again.
        """
        if len(code) != len(block.instructions):
            said = f"code of {len(code)} instructions, not {len(block.instructions)}"
            return Judgement("malformed", said)
        wrong = misplaced(code, block.instructions, block.macros, regs)
        if wrong is not None:
            return Judgement("malformed", wrong)
        own = [i for i in flat_code(code) if i.op != MACRO]
        items = flat_items(block, code)
        try:
            bad = refused(own)
            if bad is not None:
                return Judgement("encoding", f"{bad} in a block")
            price = cost(items)
            assemble(items)
        except SassxlateError as error:
            return Judgement("encoding", str(error))
        foreign = foreign_writes(block, regs, own, limits(regs, self.vtemps))
        if foreign:
            return Judgement("registers", f"writes {', '.join(foreign[:4])}", price)
        if accesses(items) != accesses(rules):
            return Judgement("accesses", "other accesses, waits or caching than the rules'", price)
        stray = beyond(block, regs, flat_code(code))
        if stray is not None:
            return Judgement("accesses", stray, price)
        if self.cheaper and price >= cost(rules):
            return Judgement("dearer", cost=price)
        plain = [[replace(i, uniform=False, fence=False) for i in group] for group in code]
        marked = with_uniform(plain, block.instructions, regs, lasting=True)
        return self._proved(block, regs, live_out, marked, price)

    def _proved(
        self,
        block: Region,
        regs: RegisterMap,
        live_out: frozenset[RegRef],
        code: tuple[tuple[Inst, ...], ...],
        price: int,
    ) -> Judgement:
        from sassxlate.lowering.verify import Proved, Refuted

        try:
            verdict = self._verdict(block, regs, live_out, code)
        except SassxlateError as error:
            return Judgement("encoding", str(error), price)
        if isinstance(verdict, Proved):
            try:  # defence in depth: the language does not allow such code anyway
                check_legality(code, region_text(block, regs, live_out))
            except SassxlateError as error:
                return Judgement("registers", str(error), price)
            return Judgement("accepted", cost=price, proved=verdict.modulo, code=code)
        if isinstance(verdict, Refuted):
            return Judgement("refuted", verdict.defect or verdict.where, price)
        return Judgement("unknown", verdict.reason, price)

    def _verdict(
        self,
        block: Region,
        regs: RegisterMap,
        live_out: frozenset[RegRef],
        code: tuple[tuple[Inst, ...], ...],
    ) -> Verdict:
        """Proves in steps, then as a whole; only as a whole if the language cannot express the
        code."""
        from sassxlate.lowering.verify.steps.prover import Prover

        prover = self.prover or Prover(timeout_ms=self.timeout_ms)
        try:
            return prover.region(block, regs, live_out, code)
        except EncodeError:
            return prove(block, regs, live_out, code, self.timeout_ms)


__all__ = ["Gate", "Judgement", "Reason", "limits", "prove"]
