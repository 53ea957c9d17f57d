"""Turns the NaN of a float register into NVIDIA's NaN.

One instruction does it: with IEEE mode off, the maximum of a NaN and a number is the number, and of
two NaN the first source (RDNA3 ISA, V_MAX_F32).  The third source of v_max3_f32 gives the same NaN
if the hardware picked the second.
"""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import I, S, V
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.nans.reads import Nan

_SINGLE, _HALVES = I(0x7FFFFFFF), I(0x7FFF7FFF)


def put_right(c: RuleEmitter, ref: RegRef, kind: Nan) -> None:
    """Repairs the NaN of a register in place, for the lanes in EXEC."""
    m = c.k.regs
    if ref.file == "UR" and ref.index in m.ur:
        out = c.vtemp()
        one_nan(c, out, S(m.ur[ref.index]), kind)
        # Under a guard that no lane passes the temporary holds what was there before.
        c.uniform_changed(ref.index, c.to_s(out))
        return
    if ref.index in m.spilled and ref.file == "R":
        c.spilled_changed(ref.index, lambda value: one_nan(c, value, value, kind))
        return
    place = V(m.r[ref.index] if ref.file == "R" else m.ur_lanes[ref.index])
    one_nan(c, place, place, kind)


def put_right_results(c: RuleEmitter, kind: Nan) -> None:
    """Repairs the NaN of an instruction's results."""
    reg = c.reg("Rd")
    for i in range(0 if reg.is_zero else reg.width):
        put_right(c, RegRef(reg.file, reg.index + i), kind)
    c.finish()


def one_nan(c: RuleEmitter, to: V, value: V | S, kind: Nan) -> None:
    """Copies the value to another register, with its NaN repaired."""
    if kind is Nan.SINGLE:
        c.emit("v_max3_f32", to, _SINGLE, value, _SINGLE)
    else:
        c.emit("v_pk_max_f16", to, _HALVES, value)


__all__ = ["one_nan", "put_right", "put_right_results"]
