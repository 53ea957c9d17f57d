"""Straight-line RDNA3 over a domain: the effect of a list of decoded instructions on the registers.

For a forward branch over a region that no lane needs, both paths are taken and their ends joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sassxlate.cfg.rdna3_flow import step_mode
from sassxlate.disasm.rdna3 import RRef, info, writes
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.disasm.rdna3.semantics.apply import apply, lookup
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO, VCC_LO
from sassxlate.domain.interface import is_zero
from sassxlate.lowering.verify.rdna3.memory import access, fence, is_fence, rdna_space
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")
_EXEC = RRef("s", EXEC_LO)
_NOTHING = frozenset(
    "s_nop s_waitcnt_vmcnt s_waitcnt_lgkmcnt s_waitcnt_expcnt s_waitcnt_depctr s_delay_alu "
    "s_sleep s_clause s_setprio v_nop s_round_mode s_denorm_mode".split()
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A decoded instruction, its offset and the next one's."""

    inst: Inst
    pc: int
    next: int


@dataclass(slots=True)
class Waiting(Generic[T]):
    """A state that continues at an offset, if ``when`` (one bit) holds."""

    when: T
    regs: Registers[T]


def execute(code: Sequence[Placed], regs: Registers[T]) -> Registers[T]:
    """The registers after the last instruction.  Raises Undecided."""
    d = regs.d
    waiting: dict[int, list[Waiting[T]]] = {}
    path = d.const(1, 1)
    end = code[-1].next if code else 0
    for placed in code:
        regs, path = joined(waiting.pop(placed.pc, []), regs, path)
        inst = placed.inst
        mode = regs.bits.mode()
        if mode is None:
            raise Undecided("the MODE register is not known")
        regs.mode = mode
        if inst.op.startswith("s_cbranch_"):
            target = branch_target(inst, placed.pc)
            if not placed.pc < target <= end:
                raise Undecided(f"{inst.op} leaves the block")
            taken = condition(inst, regs)
            around = [s for s in code if placed.pc < s.pc < target]
            if any(rdna_space(s.inst.op) for s in around):
                raise Undecided("an access that a branch goes around")
            if any(is_fence(s.inst) and _orders(s, regs) for s in around):
                raise Undecided("a fence that a branch goes around")
            there = waiting.setdefault(target, [])
            there.append(Waiting(d.and_(path, taken), regs.copy()))
            path = d.and_(path, d.not_(taken))
        else:
            step(inst, regs, placed.pc)
        regs.bits = step_mode(regs.bits, inst)
    regs, _ = joined(waiting.pop(end, []), regs, path)
    if waiting:
        raise Undecided("a branch to an offset where no instruction starts")
    return regs


def joined(arriving: list[Waiting[T]], regs: Registers[T], path: T) -> tuple[Registers[T], T]:
    d = regs.d
    for other in arriving:
        if other.regs.bits != regs.bits:
            raise Undecided("MODE differs where paths meet")
        merged = regs.copy()
        merged.torn |= other.regs.torn | _torn(regs, other.regs)
        for i in {*regs.v, *other.regs.v}:
            merged.v[i] = d.select(other.when, other.regs.vgpr(i), regs.vgpr(i))
        for i in {*regs.s, *other.regs.s}:
            merged.s[i] = d.select(other.when, other.regs.sgpr(i), regs.sgpr(i))
        for at, value in regs.slots.items():
            merged.slots[at] = d.select(other.when, other.regs.slots[at], value)
        merged.known = dict(regs.known.items() & other.regs.known.items())
        merged.flag = d.select(other.when, other.regs.flag, regs.flag)
        merged.masks = regs.masks | other.regs.masks
        merged.even = regs.even & other.regs.even
        merged.uniform = regs.uniform or other.regs.uniform
        merged.pointers = dict(regs.pointers.items() & other.regs.pointers.items())
        regs, path = merged, d.or_(path, other.when)
    return regs, path


def _orders(step: Placed, regs: Registers[T]) -> bool:
    """Whether a fence or wait does more than wait for the registers read next."""
    return step.pc in regs.done or not step.inst.op.startswith("s_waitcnt")


def _torn(a: Registers[T], b: Registers[T]) -> set[int]:
    """Registers that are masks of lanes on one path, and numbers on the other."""
    return {
        index
        for one, other in ((a, b), (b, a))
        for index in one.masks
        if index in other.s and index not in other.masks | other.even
    }


def condition(inst: Inst, regs: Registers[T]) -> T:
    d, what = regs.d, inst.op.removeprefix("s_cbranch_")
    if what in ("scc0", "scc1"):
        return regs.flag if what == "scc1" else d.not_(regs.flag)
    zero = is_zero(d, regs.sgpr(VCC_LO if what.startswith("vcc") else EXEC_LO))
    return zero if what.endswith("cz") else d.not_(zero)


def _lanes(inst: Inst, regs: Registers[T]) -> None:
    """Raises Undecided if lanes are selected by a number."""
    told = info(inst.op)
    for operand, arg in zip(told.args, inst.args, strict=False):
        if operand.type == "mask" and isinstance(arg, I) and not regs.is_mask(arg):
            raise Undecided(f"{inst.op}: a number as a mask of lanes")
    if told.kind == "salu" and _EXEC in writes(inst) and not regs.keeps_lanes(inst):
        raise Undecided(f"{inst.op}: lanes by a number")


def _of_scalars(inst: Inst) -> bool:
    """Whether no operand of an instruction may differ between lanes."""
    told = info(inst.op)
    if set(told.reads) - {"mode", "exec"} or inst.dpp or inst.y is not None:
        return False
    return len(told.args) == len(inst.args) and all(
        isinstance(arg, (I, S)) and operand.type != "mask"
        for operand, arg in zip(told.args, inst.args, strict=True)
        if "r" in operand.role
    )


def step(inst: Inst, regs: Registers[T], pc: int) -> None:
    _lanes(inst, regs)
    row = lookup(inst.op)
    if inst.omod and (regs.mode.f32.flush_out or regs.mode.f16_64.flush_out):
        raise Undecided(f"{inst.op}: omod while denormals are flushed")
    if row is not None:
        regs.computes = info(inst.op).kind == "valu"
        regs.scalars = regs.computes and _of_scalars(inst)
        apply(regs, inst, row)
        regs.computes = regs.scalars = False
    elif inst.op == "v_readfirstlane_b32":
        value = regs.read32(inst, inst.args[1])
        if isinstance(inst.args[1], V):
            if not inst.uniform:
                raise Undecided("v_readfirstlane of a value that may differ between lanes")
            regs.uniform = True
            told = regs.told.get(inst.args[1].index)
            if told is not None:
                regs.claims.append((regs.active(), told, value))
            if regs.entered:  # a lane excluded by a guard sees the others' value
                value = regs.d.select(regs.active(), value, regs.fresh(32))
        regs.write32(inst, inst.args[0], value)
    elif inst.op.startswith("s_load_b"):
        regs.load_constant(inst)
    elif (space := rdna_space(inst.op)) is not None:
        access(regs, inst, space)
    elif is_fence(inst):
        fence(regs, inst, pc in regs.done)
    elif inst.op not in _NOTHING:
        raise Undecided(inst.op)
