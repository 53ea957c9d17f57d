"""Both sides of a block, run from the same start, and what must agree behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sassxlate.disasm.rdna3.operand import EXEC_LO
from sassxlate.disasm.sass.ir import Instruction, RegRef
from sassxlate.domain import Domain
from sassxlate.lowering.allocate import RegisterMap
from sassxlate.lowering.launch import BankLayout

from .execute import Placed, execute
from .lane import Lane
from .machine import Registers
from .verdict import Undecided

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Block:
    """What is compared: the two sides, where each SASS register lives, what is live behind.

    ``merged`` are the predicates whose bits of waiting lanes must survive.
    """

    sass: Sequence[Instruction]
    rdna: Sequence[Placed]
    regs: RegisterMap
    layout: BankLayout
    merged: frozenset[RegRef]
    live_out: frozenset[RegRef] | None = None  # None: everything


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """A place by its SASS name, with what each side leaves in it."""

    name: str
    sass: T
    rdna: T


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    pairs: tuple[Pair[T], ...]
    uniform: bool  # whether a value was taken as that of all lanes


def run(
    block: Block, d: Domain[T], free: Callable[[str, int], T], *, active: bool
) -> Outcome[T]:
    """Runs both sides.  An active lane must have what SASS computes, an inactive one must keep what
    it had: two runs, for terms without the question in each of them are easier to compare.
    ``free`` makes the value of a name, the same one each time.  Raises Undecided."""
    if block.regs.spilled:
        raise Undecided("registers in scratch")
    lane, machine = Lane(d, block.layout, free), Registers(d, free)
    _place(block.regs, lane, machine)
    before = dict(lane.values)
    mask = machine.mask_of(d.const(int(active), 1))
    machine.write_scalar(EXEC_LO, mask)
    for ins in block.sass:
        lane.run(ins)
    machine = execute(block.rdna, machine)
    pairs = [*_registers(block, lane, before, machine, active)]
    pairs.append(Pair("EXEC", mask, machine.sgpr(EXEC_LO)))
    return Outcome(tuple(pairs), machine.uniform)


def _place(regs: RegisterMap, lane: Lane[T], machine: Registers[T]) -> None:
    for index, v in regs.r.items():
        machine.v[v] = lane.get(RegRef("R", index))
    for index, v in regs.ur_lanes.items():
        machine.v[v] = lane.get(RegRef("UR", index))
    for index, s in regs.ur.items():
        machine.s[s] = lane.get(RegRef("UR", index))
    for index, place in regs.p.items():
        machine.s[place.index] = machine.mask_of(lane.get(RegRef("P", index)))
    for index, place in regs.up.items():
        machine.s[place.index] = machine.mask_of(lane.get(RegRef("UP", index)))
    for (bank, offset), place in regs.consts.items():
        machine.s[place.index] = lane.word(bank, offset)


def _registers(
    block: Block, lane: Lane[T], before: dict[RegRef, T], machine: Registers[T], active: bool
) -> list[Pair[T]]:
    regs = block.regs
    out: list[Pair[T]] = []

    def kept(ref: RegRef, actual: T) -> None:
        """A place where an inactive lane keeps its value."""
        if block.live_out is None or ref in block.live_out:
            want = lane.get(ref) if active else before[ref]
            out.append(Pair(f"{ref.file}{ref.index}", want, actual))

    def seen(ref: RegRef, actual: T) -> None:
        """A place that inactive lanes do not care for."""
        if active and (block.live_out is None or ref in block.live_out):
            out.append(Pair(f"{ref.file}{ref.index}", lane.get(ref), actual))

    for index, v in regs.r.items():
        kept(RegRef("R", index), machine.vgpr(v))
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
        out.append(Pair(name, lane.word(bank, offset), machine.sgpr(place.index)))
    return out
