"""Moves from and to a register whose number M0 gives, which LLVM writes for vectors with a dynamic
index.

A source past the wave's registers is v0 or s0, and such a destination is not written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.disasm.rdna3.tables.operand_codes import SGPRS
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const

M0: Final = 125
_WORD: Final = 0xFFFFFFFF


def is_at(c: Context, base: int, number: int) -> Val:
    """Whether a register is the one at `base` plus M0."""
    return c.d.eq(c.state.read_s(M0), const(number - base & _WORD, 32))


def _from_vgpr(c: Context, inst: Inst) -> None:
    base, value = c.vgpr(inst, inst.args[1]), c.state.read_v(0)
    for number in range(1, c.vgprs):
        value = c.d.select(is_at(c, base, number), c.state.read_v(number), value)
    c.write32(inst, inst.args[0], value)


def _to_vgpr(c: Context, inst: Inst) -> None:
    base, value = c.vgpr(inst, inst.args[0]), c.read32(inst, inst.args[1])
    for number in range(c.vgprs):
        old = c.state.read_v(number)
        c.state.write_v(number, c.d.select(is_at(c, base, number), value, old))


def _from_sgpr(words: int) -> Callable[[Context, Inst], None]:
    def emit(c: Context, inst: Inst) -> None:
        base = c.scalar_index(inst, inst.args[1])
        out = [c.state.read_s(part) for part in range(words)]
        for number in range(1, SGPRS - words + 1):
            here = is_at(c, base, number)
            out = [
                c.d.select(here, c.state.read_s(number + part), value)
                for part, value in enumerate(out)
            ]
        for part, value in enumerate(out):
            c.write32(inst, inst.args[0], value, part)

    return emit


def _to_sgpr(words: int) -> Callable[[Context, Inst], None]:
    def emit(c: Context, inst: Inst) -> None:
        base = c.scalar_index(inst, inst.args[0])
        values = [c.read32(inst, inst.args[1], part) for part in range(words)]
        old = [c.state.read_s(number) for number in range(SGPRS)]
        for number in range(SGPRS - words + 1):
            here = is_at(c, base, number)
            for part, value in enumerate(values):
                old[number + part] = c.d.select(here, value, old[number + part])
        for number, value in enumerate(old):
            c.state.write_s(number, value)

    return emit


EMITTERS: dict[str, Callable[[Context, Inst], None]] = {
    "v_movrels_b32": _from_vgpr,
    "v_movreld_b32": _to_vgpr,
    "s_movrels_b32": _from_sgpr(1),
    "s_movrels_b64": _from_sgpr(2),
    "s_movreld_b32": _to_sgpr(1),
    "s_movreld_b64": _to_sgpr(2),
}
