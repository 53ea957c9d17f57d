"""Quotients and remainders of 64-bit integers, which nvcc computes by 32-bit code or a function."""

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
    d, fn = lane.d, lane.fn
    a, b = (_operand(lane, role) for role in ("Ra", "Rb"))
    by_zero = d.eq(b, const(0, 64))
    divisor = d.or_(b, d.zext(by_zero, 64))  # where it is 0, any other will do
    signs = [const(0, 64), const(0, 64)]
    if ins.mnemonic[0] == "S":
        signs = [d.ashr(x, const(63, 64)) for x in (a, divisor)]
    x, y = (_times_sign(lane, n, sign) for n, sign in zip((a, divisor), signs, strict=True))
    rest = ins.mnemonic.endswith("REM64")
    made = Val(fn.emit(f"{'urem' if rest else 'udiv'} i64 {x.ref}, {y.ref}"), 64, False)
    out = _times_sign(lane, made, signs[0] if rest else d.xor(*signs))
    small = d.eq(d.extract(a, 32, 32), const(0, 32))
    none = d.select(small, const(0, 32), _ONES)
    lane.give("Rd", [d.select(by_zero, _ONES, d.extract(out, 0, 32))])
    lane.give("Rdh", [d.select(by_zero, none, d.extract(out, 32, 32))])


def _operand(lane: Lane, role: str) -> Val:
    """The high word of a source may be in any register, and has a role of its own."""
    return lane.d.concat(lane.word(role + "h"), lane.word(role))


def _times_sign(lane: Lane, a: Val, sign: Val) -> Val:
    """-a if all bits of ``sign`` are set, a if none is."""
    return lane.d.sub(lane.d.xor(a, sign), sign)


__all__ = ["step"]
