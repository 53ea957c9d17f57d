"""Both sides of a block, run from the same start, and what must agree behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from sassxlate.disasm.rdna3.ir import S
from sassxlate.disasm.rdna3.operand import EXEC_LO
from sassxlate.disasm.sass.ir import Instruction, RegRef
from sassxlate.domain import Domain
from sassxlate.lowering.allocate import GROUP_ID, KERNARG, RegisterMap
from sassxlate.lowering.launch import BankLayout

from .execute import Placed, execute
from .lane import Lane
from .machine import Registers
from .memory import Memory
from .verdict import Undecided

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Block:
    """What is compared: instructions and the code of each, where each SASS register lives, what is
    live behind.  An engine that does not say which code is whose gives it all to the last.

    ``merged`` are the predicates whose bits of waiting lanes must survive; ``tables`` says at which
    offsets of the kernarg segment the addresses of constant banks stand.
    """

    sass: Sequence[Instruction]
    rdna: Sequence[Sequence[Placed]]
    regs: RegisterMap
    layout: BankLayout
    merged: frozenset[RegRef]
    tables: Mapping[int, int] = field(default_factory=dict[int, int])
    live_out: frozenset[RegRef] | None = None  # None: everything


Cut: TypeAlias = Callable[[T, T], "T | None"]


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
    block: Block,
    d: Domain[T],
    free: Callable[[str, int], T],
    *,
    active: bool,
    cut: Cut[T] | None = None,
) -> Outcome[T]:
    """Runs both sides.  An active lane must have what SASS computes, an inactive one must keep what
    it had: two runs, for terms without the question in each of them are easier to compare.
    ``free`` makes the value of a name, the same one each time.  ``cut`` is told what each
    instruction wrote on both sides, and may give a value for both to go on with.  Raises Undecided.
    """
    if block.regs.spilled:
        raise Undecided("registers in scratch")
    lane, machine = Lane(d, block.layout, free, active), Registers(d, free)
    _place(block.regs, lane, machine)
    before = dict(lane.values)
    fixed = _fixed(block.regs, machine)
    machine.word, machine.tables = lane.word, block.tables
    mask = machine.mask_of(d.const(int(active), 1))
    machine.write_scalar(EXEC_LO, mask)
    for ins, code in zip(block.sass, block.rdna, strict=True):
        lane.run(ins)
        machine = execute(code, machine)
        if cut is not None and active:
            _cut(ins, block.regs, lane, machine, cut)
    pairs = [*_registers(block, lane, before, machine, active)]
    pairs += _accesses(d, lane.memory, machine.memory)
    pairs.append(Pair("EXEC", mask, machine.sgpr(EXEC_LO)))
    now = _fixed(block.regs, machine)
    pairs += [Pair(name, value, now[name]) for name, value in fixed.items()]
    return Outcome(tuple(pairs), machine.uniform)


def _cut(
    ins: Instruction, regs: RegisterMap, lane: Lane[T], machine: Registers[T], cut: Cut[T]
) -> None:
    for ref in ins.writes:
        if ref.file == "R" and ref.index in regs.r:
            table, at = machine.v, regs.r[ref.index]
        elif ref.file == "UR" and ref.index in regs.ur:
            table, at = machine.s, regs.ur[ref.index]
        elif ref.file == "UR" and ref.index in regs.ur_lanes:
            table, at = machine.v, regs.ur_lanes[ref.index]
        else:
            continue
        same = cut(lane.get(ref), table[at])
        if same is not None:
            lane.values[ref] = table[at] = same


def _accesses(d: Domain[T], sass: Memory[T], rdna: Memory[T]) -> list[Pair[T]]:
    """The same accesses in the same order, each where the lane does it."""
    out: list[Pair[T]] = []
    if len(sass.accesses) != len(rdna.accesses):
        raise Undecided(f"{len(sass.accesses)} accesses and {len(rdna.accesses)}")
    for n, (a, b) in enumerate(zip(sass.accesses, rdna.accesses, strict=True)):
        if (a.space, a.store, a.size) != (b.space, b.store, b.size):
            raise Undecided(f"access {n} is {a.space} of {a.size} and {b.space} of {b.size} bytes")
        zero = d.const(0, d.width(a.address))
        out.append(Pair(f"condition of access {n}", a.when, b.when))
        out.append(Pair(f"address of access {n}", d.select(a.when, a.address, zero),
                        d.select(b.when, b.address, zero)))  # fmt: skip
        if a.data is not None and b.data is not None:
            none = d.const(0, d.width(a.data))
            out.append(Pair(f"data of access {n}", d.select(a.when, a.data, none),
                            d.select(b.when, b.data, none)))  # fmt: skip
    return out


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
    machine.v[regs.tid.index] = machine.free("tid", 32)
    for (bank, offset), place in regs.consts.items():
        machine.s[place.index] = lane.word(bank, offset)


def _fixed(regs: RegisterMap, machine: Registers[T]) -> dict[str, T]:
    """What no block's body may change: where a kernel finds its arguments, its threads and blocks,
    the lanes that live, and the lanes that wait for other blocks."""
    places = [*GROUP_ID, regs.live, *(s for s in regs.ready.values() if isinstance(s, S))]
    places += [S(KERNARG.index + i) for i in range(KERNARG.n)]
    out = {f"s{place.index}": machine.sgpr(place.index) for place in places}
    return {**out, "thread": machine.vgpr(regs.tid.index)}


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
