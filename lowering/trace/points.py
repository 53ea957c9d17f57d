"""A translated kernel, one SASS instruction at a time: the RDNA3 code that implements each, the
places of its registers, and the points at which a trace records them.

The points are before the first RDNA3 instruction and after the last one.  There every live
register has its SASS value in its place of the register map: no rule moves work from one SASS
instruction into another's code.  Under a predicate EXEC is narrower than the set of lanes that
reached the instruction; the saved EXEC holds those then, and is the mask of the point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sassxlate.cfg.liveness import live_before, liveness
from sassxlate.cfg.rdna3_flow import ENDS
from sassxlate.disasm.rdna3 import info
from sassxlate.disasm.rdna3.instruction import Inst, Item, Label, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.traits import traits
from sassxlate.lowering.emulate.options import Place, TracePoint
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.select.translated import Translated


@dataclass(frozen=True, slots=True)
class SourceStep:
    """``block`` is its block's first offset, ``rdna`` the offsets of its RDNA3 instructions from
    the entry.  ``places`` are the places of the registers that it reads and writes, if they have
    any; ``live`` are the registers that it writes and that may be read.  No ``before``: no code."""

    ins: Instruction
    block: int
    rdna: tuple[int, ...]
    places: Mapping[RegRef, Place]
    live: frozenset[RegRef]
    before: TracePoint | None = None
    after: TracePoint | None = None

    @property
    def control(self) -> bool:
        """Whether it may transfer control."""
        return traits(self.ins).ends_block


def place_of(regs: RegisterMap, ref: RegRef) -> Place | None:
    """The place of a register's value; None if the translation does not keep it."""
    i = ref.index
    match ref.file:
        case "R":
            if i in regs.r:
                return Place("v", regs.r[i])
            return Place("x", regs.spilled[i]) if i in regs.spilled else None
        case "UR":
            if i in regs.ur:
                return Place("s", regs.ur[i])
            return Place("v", regs.ur_lanes[i]) if i in regs.ur_lanes else None
        case "B":
            return Place("v", regs.barriers[i]) if i in regs.barriers else None
        case _:
            found = (regs.p if ref.file == "P" else regs.up).get(i)
            return None if found is None else Place("s", found.index)


def steps(translated: Translated) -> dict[int, SourceStep]:
    """All instructions of the kernel by their offset."""
    cfg, regs = translated.cfg, translated.selected.regs
    spans = _spans(translated.items, translated.program.offsets, regs)
    live_out = liveness(cfg).live_out
    out: dict[int, SourceStep] = {}
    number = 0
    for block in cfg.blocks:
        live = live_out[block.index]
        lives: list[frozenset[RegRef]] = []
        for ins in reversed(block.instructions):
            lives.append(live)
            live = live_before(ins, live)
        for ins, live_after in zip(block.instructions, reversed(lives), strict=True):
            refs = sorted(ins.reads | ins.writes, key=lambda r: (r.file, r.index))
            places = {ref: p for ref in refs if (p := place_of(regs, ref)) is not None}
            span = spans.get(ins.offset)
            if span is None:
                out[ins.offset] = SourceStep(ins, block.start, (), places, ins.writes & live_after)
                continue
            given = tuple(sorted(set(places.values())))
            first = TracePoint(number, span.offsets[0], False, given, span.mask)
            number += 1
            last = None
            if span.end is not None and not traits(ins).ends_block:
                last = TracePoint(number, span.end[0], span.end[1], given, span.end_mask)
                number += 1
            out[ins.offset] = SourceStep(
                ins, block.start, tuple(span.offsets), places, ins.writes & live_after, first, last
            )
    return out


@dataclass(slots=True)
class _Span:
    """The code of one SASS instruction: the offsets, the lane masks before and after it, and the
    place of the point after it: an offset, and whether the point is after or before that."""

    offsets: list[int]
    mask: int
    end_mask: int = EXEC_LO
    end: tuple[int, bool] | None = None


def _spans(items: Sequence[Item], offsets: Sequence[int], regs: RegisterMap) -> dict[int, _Span]:
    out: dict[int, _Span] = {}
    save = regs.save_exec
    narrowed = False
    for n, (item, offset) in enumerate(zip(items, offsets, strict=True)):
        if isinstance(item, Label):
            narrowed &= item.block is None
            continue
        source = None if item.origin is None else item.origin.offset
        span = None
        if source is not None:
            mask = save.index if narrowed else EXEC_LO
            span = out.setdefault(source, _Span([], mask))
            span.offsets.append(offset)
        if item.args[:1] == (save,):  # saves EXEC before narrowing it
            narrowed = True
        elif item.op == "s_mov_b32" and item.args == (Sp("exec_lo"), save):
            narrowed = False
        if span is not None:
            span.end_mask = save.index if narrowed else EXEC_LO
            span.end = offset, True
            if item.op in ENDS or info(item.op).kind in ("branch", "jump", "end"):
                following = items[n + 1] if n + 1 < len(items) else None
                span.end = (offsets[n + 1], False) if isinstance(following, Inst) else None
    return out


__all__ = ["SourceStep", "place_of", "steps"]
