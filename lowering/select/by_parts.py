"""The code of a kernel that is wanted alone: made, checked and encoded a part at a time.

No pass after selection looks further than a label, but for the branches' distances.  So the
instructions of a part go when their bytes are made, and of a kernel of 10,000 SASS instructions
with twenty of RDNA3 each there are never more than some thousands.  The bytes are those of the
passes one after the other (:mod:`sassxlate.lowering.pipeline`), whose values views, engines and
proofs read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sassxlate.disasm.containers.values import Kernel
from sassxlate.disasm.rdna3 import Encoded, Encoder
from sassxlate.lowering.abi.kernarg import LaunchInfo
from sassxlate.lowering.builder.kernel_builder import KernelBuilder, Spans
from sassxlate.lowering.codeobject.source_marks import Marks
from sassxlate.lowering.lane_checks.checked import Checked
from sassxlate.lowering.passes.coalesce_copies import coalesce_spans
from sassxlate.lowering.passes.hazards import Hazards
from sassxlate.lowering.passes.waitcnt import Waits
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.select.allocation import first_allocation, fitted
from sassxlate.lowering.select.instruction import check_lanes
from sassxlate.lowering.select.kernel import builder, emit_kernel, selected
from sassxlate.lowering.select.stages import Allocated, Planned, Selected
from sassxlate.lowering.select.translated import TranslationStats

PART: Final = 1 << 10  # items, about


class _Code:
    """The code of a kernel so far."""

    def __init__(self, kernel: str, regs: RegisterMap) -> None:
        self.kernel = kernel
        self.regs = regs
        self.encoder = Encoder()
        self.marks = Marks()
        self._checked = Checked(regs)
        self._waits = Waits(regs.target)
        self._hazards = Hazards(regs.target)

    def take(self, k: KernelBuilder) -> None:
        """The next part, which the builder loses.  Raises as the passes after selection."""
        spans = k.spans
        parts = zip(spans.firsts, spans.ends, strict=True)
        items, shorter = coalesce_spans(tuple(k.items), parts, self.regs)
        check_lanes(self.kernel, items, spans.moved(shorter), self.regs, self._checked)
        k.items.clear()
        k.spans = Spans()
        if self.regs.vtemp_base + k.vtemps_used > self.regs.target.vgprs:
            return  # it is selected again: see allocation.fitted
        made = self._hazards.through(self._waits.through(items))
        self.marks.add(made)
        self.encoder.add(made)


@dataclass(frozen=True, slots=True)
class Made:
    """The code of a kernel whose instructions are gone, before its branches' distances are put in,
    and what else its code object is made of.  ``report`` lacks what is known of finished code."""

    kernel: Kernel
    regs: RegisterMap
    launch: LaunchInfo
    vgprs: int
    uses_private: bool
    report: TranslationStats
    encoded: Encoded
    marks: Marks


class _Writer:
    """Selects a kernel, perhaps several times, and has the code of the last.  A class, since
    compiled code that a function makes in a function is a cycle, and would stay."""

    code: _Code

    def __init__(self, planned: Planned) -> None:
        self.made = fitted(self.write(first_allocation(planned)), self.write)

    def write(self, allocated: Allocated) -> Selected:
        """The kernel by a register map; its code is here, and not in what is returned."""
        self.code = _Code(allocated.planned.analysed.kernel.name, allocated.regs)
        state = builder(allocated)
        state.part, state.take = PART, self.code.take
        emit_kernel(state, allocated.planned.plan)
        self.code.take(state)
        return selected(allocated, state, ())


def write_code(planned: Planned) -> Made:
    """Registers, selection, and the passes after it up to the bytes.  Raises as they do."""
    writer = _Writer(planned)
    made, code = writer.made, writer.code
    cfg = made.plan.cfg
    report = TranslationStats(
        kernel=made.kernel.name,
        sass_instructions=sum(len(b.instructions) for b in cfg.blocks),
        rdna_instructions=0,
        blocks=len(cfg.blocks),
        waiting_points=len(made.plan.points),
        vgprs=made.vgprs,
        spilled=len(made.regs.spilled),
        code_bytes=0,
        rules=made.rules_used,
        seconds=(),
        comes_apart=made.plan.comes_apart,
        left_out=made.kernel.left_out,
    )
    return Made(
        made.kernel,
        made.regs,
        made.launch,
        made.vgprs,
        made.uses_private,
        report,
        code.encoder.encoded(),
        code.marks,
    )


__all__ = ["PART", "Made", "write_code"]
