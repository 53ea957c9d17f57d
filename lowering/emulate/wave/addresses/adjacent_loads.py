"""Loads of a block that one access can do: neighbouring dwords of lanes that are far apart.

An unrolled loop in which each lane reads a run of its own has many.  A host's gather takes a lane's
64 bits in the time of 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow
from sassxlate.disasm.rdna3.instruction import Arg
from sassxlate.disasm.rdna3.reads_writes import RRef, effects, registers
from sassxlate.disasm.rdna3.tables.opcodes import OPS
from sassxlate.disasm.rdna3.tables.operand_codes import EXEC_LO

_EXEC = RRef("s", EXEC_LO)
_LOAD = "global_load_b32"
# What a later load may not be done before: what writes memory, or orders accesses.
_ORDERS = ("_store", "_atomic", "s_barrier", "_inv", "s_sendmsg", "s_sleep", "s_trap")


@dataclass(frozen=True, slots=True)
class Mate:
    """The load at ``pc`` is of the dword after the earlier one's, or before it."""

    pc: int
    above: bool


@dataclass(slots=True)
class _Open:
    step: DecodedStep
    address: tuple[Arg, ...]
    needs: frozenset[RRef]


def _ends_all(step: DecodedStep) -> bool:
    inst = step.inst
    return inst.glc or any(word in inst.op for word in _ORDERS)


def _in_block(steps: list[DecodedStep], strides: Mapping[int, int], out: dict[int, Mate]) -> None:
    waiting: list[_Open] = []
    for step in steps:
        inst = step.inst
        if _ends_all(step):
            waiting.clear()
        elif inst.op == _LOAD and strides.get(step.pc) not in (None, 0, 4):
            address = inst.args[1:]
            mate = next(
                (
                    other
                    for other in waiting
                    if other.address == address and abs(other.step.inst.imm - inst.imm) == 4
                ),
                None,
            )
            if mate is not None:
                out[mate.step.pc] = Mate(step.pc, inst.imm > mate.step.inst.imm)
                waiting.remove(mate)
            else:
                needs = frozenset(ref for arg in address for ref in registers(arg))
                waiting.append(_Open(step, address, needs | {_EXEC}))
        if inst.op not in OPS:  # a meaning without an encoding: it may write any register
            waiting = []
            continue
        written = effects(inst).writes
        waiting = [other for other in waiting if not other.needs & written]


def mates(flow: Flow, strides: Mapping[int, int]) -> dict[int, Mate]:
    """By the offset of a load its mate, a later one of the same block with the same address
    registers and EXEC, with nothing between them that writes memory or orders accesses.
    ``strides`` as `lane_strides` finds them: loads of lanes side by side have no use for it."""
    out: dict[int, Mate] = {}
    for block in flow.blocks.values():
        _in_block(block.steps, strides, out)
    return out


__all__ = ["Mate", "mates"]
