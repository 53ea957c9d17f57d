"""One lane of a kernel's final machine code, through all of its ways at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from sassxlate.cfg.rdna3_flow import step_mode
from sassxlate.disasm.rdna3.codec.decode.instruction import branch_target
from sassxlate.disasm.rdna3.instruction import Inst, S, Sp
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO
from sassxlate.lowering.verify.kernel.contents import Contents
from sassxlate.lowering.verify.rdna3.execute import Placed, Waiting, condition, joined, step
from sassxlate.lowering.verify.rdna3.memory import is_fence
from sassxlate.lowering.verify.rdna3.registers import Registers
from sassxlate.lowering.verify.verdict import Undecided

T = TypeVar("T")
_END = frozenset({"s_endpgm"})


def run(code: Sequence[Placed], regs: Registers[T], memory: Contents[T]) -> None:
    """Follows the kernel from its first instruction.  Raises Undecided."""
    d = regs.d
    waiting: dict[int, list[Waiting[T]]] = {}
    state: Registers[T] = regs
    path: T = d.const(1, 1)
    goes_on = True  # whether a way leads to the next instruction from the one before it
    for placed in code:
        arriving = waiting.pop(placed.pc, [])
        if not goes_on:
            if not arriving:
                continue  # reached by no way
            first = arriving.pop(0)
            state, path = first.regs, first.when
        state, path = joined(arriving, state, path)
        goes_on = True
        memory.path = path
        inst = placed.inst
        mode = state.bits.mode()
        if mode is None:
            raise Undecided("the MODE register is not known")
        state.mode = mode
        if inst.op in _END:
            goes_on = False
        elif inst.op == "s_branch" or inst.op.startswith("s_cbranch_"):
            target = branch_target(inst, placed.pc)
            if target <= placed.pc:
                raise Undecided("a branch back")
            taken = d.const(1, 1) if inst.op == "s_branch" else condition(inst, state)
            way = Waiting(d.and_(path, taken), state.copy())
            waiting.setdefault(target, []).append(way)
            goes_on = inst.op != "s_branch"
            path = d.and_(path, d.not_(taken))
        elif inst.op.startswith("s_load_b") and not _of_bank(inst, state):
            _scalar_load(inst, state, memory)
        elif not is_fence(inst):  # which waits are there is checked elsewhere
            step(inst, state, placed.pc)
        state.bits = step_mode(state.bits, inst)
    if waiting or goes_on:
        raise Undecided("code that goes on after its end")


def _of_bank(inst: Inst, regs: Registers[T]) -> bool:
    base = inst.args[1]
    return isinstance(base, S) and base.index in regs.pointers


def _scalar_load(inst: Inst, regs: Registers[T], memory: Contents[T]) -> None:
    """Words of global memory at one address for all lanes."""
    d, to = regs.d, inst.args[0]
    if not isinstance(to, S):
        raise Undecided(inst.op)
    address = d.add(regs.read64(inst, inst.args[1]), d.const(inst.imm, 64))
    if len(inst.args) > 2 and inst.args[2] != Sp("null"):
        address = d.add(address, d.zext(regs.read32(inst, inst.args[2]), 64))
    words = memory.load_for_all("global", 4 * to.n, address, regs.sgpr(EXEC_LO))
    for i, word in enumerate(words):
        regs.write_scalar(to.index + i, word)


__all__ = ["run"]
