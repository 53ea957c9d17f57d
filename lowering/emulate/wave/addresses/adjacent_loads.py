"""Loads of a block that one access can do: neighbouring dwords of lanes that are far apart.

An unrolled loop in which each lane reads a run of its own has many.  A host's gather takes a lane's
64 bits in the time of 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """The load at ``pc`` is of the dword after the earlier one's, or before it.

    Pairs by the same addresses and EXEC, from the load at ``first`` on, are all within ``dwords``
    dwords, which begin ``low`` bytes from the earlier load's.
    """

    pc: int
    above: bool
    first: int = 0
    low: int = 0
    dwords: int = 2


@dataclass(slots=True)
class _Open:
    step: DecodedStep
    address: tuple[Arg, ...]
    needs: frozenset[RRef]


@dataclass(slots=True)
class _Span:
    """Pairs by the same addresses, while no instruction writes those, or EXEC."""

    address: tuple[Arg, ...]
    needs: frozenset[RRef]
    pairs: list[tuple[DecodedStep, DecodedStep]]

    def mates(self) -> Iterator[tuple[int, Mate]]:
        """By the offset of each earlier load its mate."""
        first = min(earlier.pc for earlier, _ in self.pairs)
        places = [step.inst.imm for pair in self.pairs for step in pair]
        low, dwords = min(places), (max(places) - min(places)) // 4 + 1
        for earlier, later in self.pairs:
            imm = earlier.inst.imm
            yield earlier.pc, Mate(later.pc, later.inst.imm > imm, first, low - imm, dwords)


def _ends_all(step: DecodedStep) -> bool:
    inst = step.inst
    return inst.glc or any(word in inst.op for word in _ORDERS)


def _in_block(steps: list[DecodedStep], strides: Mapping[int, int], out: dict[int, Mate]) -> None:
    waiting: list[_Open] = []
    spans: list[_Span] = []
    done: list[_Span] = []
    for step in steps:
        inst = step.inst
        if _ends_all(step):
            waiting, spans = [], []
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
                span = next((s for s in spans if s.address == address), None)
                if span is None:
                    span = _Span(address, mate.needs, [])
                    spans.append(span)
                    done.append(span)
                span.pairs.append((mate.step, step))
                waiting.remove(mate)
            else:
                needs = frozenset(ref for arg in address for ref in registers(arg))
                waiting.append(_Open(step, address, needs | {_EXEC}))
        if inst.op not in OPS:  # a meaning without an encoding: it may write any register
            waiting, spans = [], []
            continue
        written = effects(inst).writes
        waiting = [other for other in waiting if not other.needs & written]
        spans = [span for span in spans if not span.needs & written]
    for span in done:
        out.update(span.mates())


def mates(flow: Flow, strides: Mapping[int, int]) -> dict[int, Mate]:
    """By the offset of a load its mate, a later one of the same block with the same address
    registers and EXEC, with nothing between them that writes memory or orders accesses.
    ``strides`` as `lane_strides` finds them: loads of lanes side by side have no use for it."""
    out: dict[int, Mate] = {}
    for block in flow.blocks.values():
        _in_block(block.steps, strides, out)
    return out


__all__ = ["Mate", "mates"]
