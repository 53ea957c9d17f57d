"""The places of both sides' registers at a block's start, and what must agree after the block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from sassxlate.disasm.rdna3.instruction import S
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.nans.reads import BITS
from sassxlate.lowering.regalloc.register_map import RegisterMap
from sassxlate.lowering.verify.block.block import BlockPair, Obligation
from sassxlate.lowering.verify.nans import LOOSE, alike, as_sass, pure, tight
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.sass.lane import SassLane

T = TypeVar("T")


def placed(regs: RegisterMap, lane: SassLane[T], machine: Registers[T]) -> None:
    for index, v in regs.r.items():
        machine.v[v] = lane.get(RegRef("R", index))
    for index, at in regs.spilled.items():
        machine.slots[at] = lane.get(RegRef("R", index))
    for index, v in regs.ur_lanes.items():
        machine.v[v] = lane.get(RegRef("UR", index))
    for index, s in regs.ur.items():
        machine.s[s] = lane.get(RegRef("UR", index))
    for index, place in regs.p.items():
        machine.put_mask(place.index, machine.mask_of(lane.get(RegRef("P", index))))
    for index, place in regs.up.items():
        machine.put_mask(place.index, machine.mask_of(lane.get(RegRef("UP", index))))
    for index, v in regs.barriers.items():
        machine.v[v] = lane.get(RegRef("B", index))
    machine.barriers = frozenset(regs.barriers.values())
    slots = [regs.live, regs.save_exec, *regs.regions, *regs.ready.values()]
    machine.masks |= {s.index for s in slots if isinstance(s, S)}
    machine.v[regs.tid.index] = machine.free("tid", 32)
    for (bank, offset), place in regs.consts.items():
        machine.s[place.index] = lane.word(bank, offset)


def fixed(regs: RegisterMap, machine: Registers[T]) -> dict[str, T]:
    """What no block's body may change: the kernel's arguments, its thread and block numbers, the
    mask of live lanes, and the masks of lanes that wait for other blocks."""
    kernarg = regs.target.kernarg
    ready = (slot for slot in regs.ready.values() if isinstance(slot, S))
    places = [*regs.target.group_id, regs.live, *ready]
    places += [S(kernarg.index + i) for i in range(kernarg.n)]
    out = {f"s{place.index}": machine.sgpr(place.index) for place in places}
    return {**out, "thread": machine.vgpr(regs.tid.index)}


def registers(
    block: BlockPair,
    lane: SassLane[T],
    before: dict[RegRef, T],
    machine: Registers[T],
    active: bool,
) -> list[Obligation[T]]:
    regs = block.regs
    out: list[Obligation[T]] = []

    def kept(ref: RegRef, actual: T) -> None:
        """A place whose value an inactive lane keeps: it may wait where the value is needed."""
        if not active:
            out.append(Obligation(f"{ref.file}{ref.index}", before[ref], actual))
        elif block.live_out is None or ref.file == "B" or ref in block.live_out:
            out.extend(_leaves(block, ref, lane, actual))

    def seen(ref: RegRef, actual: T) -> None:
        """A place that inactive lanes do not need."""
        if active and (block.live_out is None or ref in block.live_out):
            out.extend(_leaves(block, ref, lane, actual))

    for index, v in regs.r.items():
        kept(RegRef("R", index), machine.vgpr(v))
    for index, at in regs.spilled.items():
        kept(RegRef("R", index), machine.slots[at])
    for index, v in regs.barriers.items():
        kept(RegRef("B", index), machine.vgpr(v))
    for index, v in regs.ur_lanes.items():
        kept(RegRef("UR", index), machine.vgpr(v))
    for index, s in regs.ur.items():
        seen(RegRef("UR", index), machine.sgpr(s))
    for index, place in regs.p.items():
        ref = RegRef("P", index)
        (kept if ref in block.merged else seen)(ref, machine.mask(place.index))
    for index, place in regs.up.items():
        ref = RegRef("UP", index)
        (kept if ref in block.merged else seen)(ref, machine.mask(place.index))
    for (bank, offset), place in regs.consts.items():
        name = f"c[{bank:#x}][{offset:#x}]"
        out.append(Obligation(name, lane.word(bank, offset), machine.sgpr(place.index)))
    return out


_EXACT = frozenset({BITS})


def _leaves(block: BlockPair, ref: RegRef, lane: SassLane[T], actual: T) -> Iterator[Obligation[T]]:
    """The obligation on a register after a block: SASS's value, except the NaN of a loose
    register."""
    d, name, mine = lane.d, f"{ref.file}{ref.index}", lane.get(ref)
    kinds = block.loose_out.get(ref, _EXACT) if ref.file in ("R", "UR") else _EXACT
    for kind in sorted(kinds):
        if not kind & LOOSE:
            yield Obligation(name, mine, actual)
            yield Obligation(f"NaN of {name}", tight(d, mine, kind), mine)
        elif pure(kind):
            yield Obligation(name, mine, as_sass(d, actual, kind, lambda w: d.const(1, w)))
        else:
            yield Obligation(name, d.const(1, 1), alike(d, mine, actual, kind), (mine, actual))


__all__ = ["fixed", "placed", "registers"]
