"""Macros of regions in their kernel: whose code a region stands for, and puts back in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sassxlate.disasm.rdna3.instruction import Inst, Item
from sassxlate.lowering.optimize.regions import CutRegion, TooLong, cut_regions
from sassxlate.lowering.region.macro import MACRO, opened, same_code
from sassxlate.lowering.region.region import RegionSite
from sassxlate.lowering.select.stages import Selected
from sassxlate.lowering.verify.steps.framing import flat_items


def regions(
    piece: RegionSite, selected: Selected, longest: int, *, too_long: TooLong, macros: bool
) -> Iterator[CutRegion]:
    """A piece's regions in order.  One with macros (if ``macros``) only where all its code is what
    the kernel has there: the proof is of that code."""
    regs, at = selected.regs, 0
    for part in cut_regions(
        piece.block, regs, piece.live_out, longest, too_long=too_long, macros=macros
    ):
        first = piece.starts[at]
        at += len(part.block.instructions)
        if as_it_stands(part, selected, first, piece.starts[at]):
            yield part
        else:
            block = replace(part.block, macros={})
            yield from cut_regions(block, regs, part.live_out, longest, too_long=too_long)


def as_it_stands(part: CutRegion, selected: Selected, first: int | None, end: int | None) -> bool:
    """Whether a region has no macros, or the kernel's items ``first`` to ``end`` are its code."""
    if not part.block.macros:
        return True
    if first is None or end is None:
        return True  # nothing is put there
    return same_code(flat_items(part.block, part.code), selected.items[first:end])


def macros_in_place(part: CutRegion, selected: Selected, first: int) -> list[tuple[Item, ...]]:
    """For each instruction of a region whose code begins at item ``first``: the kernel's items of
    its macro, or nothing."""
    sass, macros = part.block.instructions, part.block.macros
    out: list[tuple[Item, ...]] = []
    at = first
    for ins, group, whole in zip(sass, part.code, opened(part.code, sass, macros), strict=True):
        macro = macros.get(ins.offset)
        if macro is None:
            out.append(())
        else:
            begin = at + group.index(macro.inst)
            out.append(selected.items[begin : begin + len(macro.items)])
        at += len(whole)
    return out


def with_macros(
    code: Sequence[Sequence[Inst]], own: Sequence[tuple[Item, ...]]
) -> tuple[tuple[Item, ...], ...]:
    """Code with the items of each instruction's macro."""
    out: list[tuple[Item, ...]] = []
    for group, macro in zip(code, own, strict=True):
        made: list[Item] = []
        for inst in group:
            made += macro if inst.op == MACRO else (inst,)
        out.append(tuple(made))
    return tuple(out)


__all__ = ["as_it_stands", "macros_in_place", "regions", "with_macros"]
