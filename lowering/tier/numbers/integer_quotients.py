"""Quotients and remainders of integers, which nvcc computes in line (32 bits), or by 32-bit code or
a function (64 bits)."""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Lane

_ONES = const(0xFFFFFFFF, 32)


def step(lane: Lane, ins: Instruction) -> None:
    """UDIV64, UREM64, SDIV64 or SREM64.

    LLVM leaves open a division by 0, and the signed one of the least number by -1.  The first gives
    what nvcc's code gives: all bits, of the low word alone if the dividend's high word is 0.  The
    second wraps, as there: magnitudes are divided.
    """
    d = lane.d
    a, b = (_operand(lane, role) for role in ("Ra", "Rb"))
    by_zero, out = _divided(lane, ins.mnemonic, a, b)
    small = d.eq(d.extract(a, 32, 32), const(0, 32))
    none = d.select(small, const(0, 32), _ONES)
    lane.give("Rd", [d.select(by_zero, _ONES, d.extract(out, 0, 32))])
    lane.give("Rdh", [d.select(by_zero, none, d.extract(out, 32, 32))])


def step32(lane: Lane, ins: Instruction) -> None:
    """UDIV32, UREM32, SDIV32 or SREM32; all bits if the divisor is 0."""
    by_zero, out = _divided(lane, ins.mnemonic, lane.word("Ra"), lane.word("Rb"))
    lane.give("Rd", [lane.d.select(by_zero, _ONES, out)])


def _divided(lane: Lane, name: str, a: Val, b: Val) -> tuple[Val, Val]:
    """Whether the divisor is 0, and the quotient or remainder, of no meaning if so."""
    d, fn, w = lane.d, lane.fn, a.width
    by_zero = d.eq(b, const(0, w))
    signs = [const(0, w), const(0, w)]
    if name[0] == "S":
        signs = [d.ashr(x, const(w - 1, w)) for x in (a, b)]
    x, y = (_times_sign(lane, n, sign) for n, sign in zip((a, b), signs, strict=True))
    if w == 64:  # where it is 0, any other will do
        some = d.or_(y, d.zext(by_zero, w)).ref
    else:
        lane.module.declare("i32 @llvm.umax.i32(i32, i32)")
        some = fn.emit(f"call i32 @llvm.umax.i32(i32 {y.ref}, i32 1)")
    rest = name[1:4] == "REM"
    made = Val(fn.emit(f"{'urem' if rest else 'udiv'} i{w} {x.ref}, {some}"), w, False)
    return by_zero, _times_sign(lane, made, signs[0] if rest else d.xor(*signs))


def _operand(lane: Lane, role: str) -> Val:
    """The high word of a source may be in any register, and has a role of its own."""
    return lane.d.concat(lane.word(role + "h"), lane.word(role))


def _times_sign(lane: Lane, a: Val, sign: Val) -> Val:
    """-a if all bits of ``sign`` are set, a if none is."""
    return lane.d.sub(lane.d.xor(a, sign), sign)


__all__ = ["step", "step32"]
