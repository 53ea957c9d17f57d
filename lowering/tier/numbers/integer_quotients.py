"""Quotients and remainders of integers, which nvcc computes in line (32 bits), or by 32-bit code or
a function (64 bits).

A divisor of 32 bits is LLVM's longest division, of some 130 instructions, too.  Here it is two
divisions with one reciprocal y in binary64, of the dividend's high word, and of the remainder with
the low word.  y is too small by a relative 2**-45 to 2**-44, for each v_rcp_f64 that is right to
2**-23 (AMD says 2**-24): its error e becomes e**2 by Newton's step, which has 1 - 2**-45 for 1.  So
a product with y, of a quotient below 2**32, is below it by less than 2**-12, whatever the
roundings of 2**-53, and its whole part is the quotient or 1 less.
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.lane import Lane

_ONES = const(0xFFFFFFFF, 32)
_LESS_THAN_ONE = "0x3FEFFFFFFFFFFF00"  # 1 - 2**-45
_TWO_TO_32 = "0x41F0000000000000"


def step(lane: Lane, ins: Instruction) -> None:
    """UDIV64, UREM64, SDIV64 or SREM64.

    LLVM leaves open a division by 0, and the signed one of the least number by -1.  The first gives
    what nvcc's code gives: all bits, of the low word alone if the dividend's high word is 0.  The
    second wraps, as there: magnitudes are divided.
    """
    d = lane.d
    a, b = (_operand(lane, role) for role in ("Ra", "Rb"))
    if ins.mnemonic[0] == "U" and lane.word("Rbh").const == 0:
        word = lane.word("Rb")
        by_zero, out = d.eq(word, const(0, 32)), _by_word(lane, ins.mnemonic, a, word)
    else:
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


def _by_word(lane: Lane, name: str, a: Val, b: Val) -> Val:
    """A quotient or remainder of 64 bits by 32; of no meaning if those are 0."""
    d, fn = lane.d, lane.fn
    fn.module.declare("double @llvm.amdgcn.rcp.f64(double)")
    fn.module.declare("double @llvm.fma.f64(double, double, double)")

    def number(word: Val) -> str:
        return fn.emit(f"uitofp i32 {word.ref} to double")

    def fma(*args: str) -> str:
        given = ", ".join(f"double {x}" for x in args)
        return fn.emit(f"call double @llvm.fma.f64({given})")

    def whole(dividend: str) -> Val:
        product = fn.emit(f"fmul double {dividend}, {y}")
        return Val(fn.emit(f"fptoui double {product} to i32"), 32, False)

    divisor = number(b)
    near = fn.emit(f"call double @llvm.amdgcn.rcp.f64(double {divisor})")
    error = fma(fn.emit(f"fneg double {divisor}"), near, _LESS_THAN_ONE)
    y = fma(near, error, near)
    high, low = d.extract(a, 32, 32), d.extract(a, 0, 32)
    q, r = _put_right(lane, whole(number(high)), high, b)
    rest = d.concat(r, low)
    p, s = _put_right(lane, whole(fma(number(r), _TWO_TO_32, number(low))), rest, b)
    return d.concat(q, p) if name[1:4] == "DIV" else s


def _put_right(lane: Lane, q: Val, a: Val, b: Val) -> tuple[Val, Val]:
    """The quotient and remainder of ``a`` by ``b``, of a quotient that may be 1 less."""
    d, w = lane.d, a.width
    b = d.zext(b, w)
    r = d.sub(a, d.mul(d.zext(q, w), b))
    less = d.ult(r, b)
    one = d.sub(q, d.sext(d.not_(less), 32))
    return one, d.select(less, r, d.sub(r, b))


def _operand(lane: Lane, role: str) -> Val:
    """The high word of a source may be in any register, and has a role of its own."""
    return lane.d.concat(lane.word(role + "h"), lane.word(role))


def _times_sign(lane: Lane, a: Val, sign: Val) -> Val:
    """-a if all bits of ``sign`` are set, a if none is."""
    return lane.d.sub(lane.d.xor(a, sign), sign)


__all__ = ["step", "step32"]
