"""Quotients and square roots, correctly rounded, denormals kept.

The hardware's steps of a division round a denormal quotient twice.  So the remainder of such a
quotient decides about its last bit, where a lane has one.
"""

from __future__ import annotations

from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.domain.interface import fabs, mantissa_bits, quiet
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.llvm.lanes import float_type
from sassxlate.lowering.tier.lane import Lane
from sassxlate.lowering.tier.refusal import FORM, refused

_ONE = {32: 0x3F800000, 64: 0x3FF << 52}
_NAN = {32: 0x7FFFFFFF, 64: 0xFFF8 << 48}  # what NVIDIA's code gives for an invalid operation
# Powers of two: the remainder is scaled by the first, the quotient by the second, and a divisor
# times the third is half of the remainder's step.
_SCALES = {32: (60, 120, 60 - 150), 64: (174, 1000, 174 - 1075)}


def step(lane: Lane, ins: Instruction) -> None:
    """FDIV, FSQRT, DDIV or DSQRT."""
    width = 64 if ins.mnemonic[0] == "D" else 32
    if lane.d.flushes and width == 32:
        raise refused(FORM, "a quotient or root without .FTZ beside operations with it", ins)
    a = _operand(lane, "Ra", width)
    if ins.mnemonic.endswith("SQRT"):
        out = _root(lane, a)
    else:
        out = _quotient(lane, a, _operand(lane, "Rb", width))
    if width == 32 and not lane.d.any_nan:
        d = lane.d
        out = d.select(d.fcmp("uno", out, out), const(_NAN[32], 32), out)
    lane.give("Rd", [lane.d.extract(out, i, 32) for i in range(0, width, 32)])


def _operand(lane: Lane, role: str, width: int) -> Val:
    """A number; the high word of a double in registers has a role of its own."""
    assert lane.ins is not None
    high = lane.ins.get(role + "h")
    words = [lane.word(role), lane.word(role + "h")] if high else lane.words(role, width // 32)
    return words[0] if width == 32 else lane.d.concat(words[1], words[0])


def _call(lane: Lane, given: str, name: str, *args: str) -> str:
    """An intrinsic; arguments are written with their types."""
    types = ", ".join(a.rsplit(" ", 1)[0] for a in args)
    lane.module.declare(f"{given} @llvm.{name}({types})")
    return lane.fn.emit(f"call {given} @llvm.{name}({', '.join(args)})")


def _root(lane: Lane, a: Val) -> Val:
    """LLVM's, which is correctly rounded without !fpmath."""
    d = lane.d
    out = d.float_call("sqrt", a)
    if a.width == 32:
        return out
    invalid = d.select(d.fcmp("uno", a, a), quiet(d, a), const(_NAN[64], 64))
    return d.select(d.fcmp("uno", out, out), invalid, out)


def _quotient(lane: Lane, a: Val, b: Val) -> Val:
    """The hardware's division, as LLVM expands one; v_div_fixup has NVIDIA's NaN of a double."""
    d, w = lane.d, a.width
    kind = float_type(w, False)

    def scaled(which: str) -> tuple[Val, str]:
        num, den = (f"{kind} {d.as_float(v, False)}" for v in (a, b))
        name = f"amdgcn.div.scale.f{w}"
        lane.module.declare(f"{{{kind}, i1}} @llvm.{name}({kind}, {kind}, i1 immarg)")
        pair = lane.fn.emit(f"call {{{kind}, i1}} @llvm.{name}({num}, {den}, i1 {which})")
        value = lane.fn.emit(f"extractvalue {{{kind}, i1}} {pair}, 0")
        flag = lane.fn.emit(f"extractvalue {{{kind}, i1}} {pair}, 1")
        return d.from_float(value, w, False), flag

    def fma(x: Val, y: Val, z: Val) -> Val:
        return d.float_call("fma", x, y, z)

    (den, _), (num, flag) = scaled("false"), scaled("true")
    minus = _negative(lane, den)
    near = d.from_float(
        _call(lane, kind, f"amdgcn.rcp.f{w}", f"{kind} {d.as_float(den, False)}"), w, False
    )
    one = const(_ONE[w], w)
    rcp = fma(near, fma(minus, near, one), near)
    if w == 64:
        rcp = fma(rcp, fma(minus, rcp, one), rcp)
    rcp = d.or_(rcp, _all_ones(lane, den))
    first = d.float_op("fmul", num, rcp)
    if w == 32:
        first = fma(fma(minus, first, num), rcp, first)
    rest = fma(minus, first, num)
    args = [f"{kind} {d.as_float(v, False)}" for v in (rest, rcp, first)]
    joined = _call(lane, kind, f"amdgcn.div.fmas.f{w}", *args, f"i1 {flag}")
    sides = [f"{kind} {d.as_float(v, False)}" for v in (b, a)]
    fixed = _call(lane, kind, f"amdgcn.div.fixup.f{w}", f"{kind} {joined}", *sides)
    return _exact(lane, a, b, d.from_float(fixed, w, False))


def _negative(lane: Lane, a: Val) -> Val:
    d = lane.d
    ref = lane.fn.emit(f"fneg {float_type(a.width, False)} {d.as_float(a, False)}")
    return d.from_float(ref, a.width, False)


def _all_ones(lane: Lane, a: Val) -> Val:
    """1 if all bits of the mantissa are set, otherwise 0.

    The steps above round a reciprocal correctly if they begin within its last place, but for such a
    divisor (Markstein, IA-64 and Elementary Functions, 2000): 1 / (2 - u) is so little above the
    middle of two numbers that they stay at the lower one, the even one, if they begin there, and
    the quotient with them.  v_rcp is known within a last place only.
    """
    d, size = lane.d, mantissa_bits(a.width)
    mantissa = d.and_(a, const((1 << size) - 1, a.width))
    return d.lshr(d.add(mantissa, const(1, a.width)), const(size, a.width))


def _exact(lane: Lane, a: Val, b: Val, q: Val) -> Val:
    """The quotient, where it is denormal or next to that, by its remainder.

    ``q`` is one of the two multiples of the least denormal number around a / b.  So the remainder
    a - q * b is a number, once all are scaled (b is normal here, and a at most 4): it is compared
    with half of the step, in bits, and a tie goes to the even multiple.
    """
    d, fn, w = lane.d, lane.fn, a.width
    up, up_q, half_step = _SCALES[w]
    size = fabs(d, q)
    low = d.fcmp("ole", size, const(1 << mantissa_bits(w), w))
    rare = d.and_(low, d.fcmp("une", a, const(0, w)))
    before, exact, after = fn.fresh("quotient"), fn.fresh("remainder"), fn.fresh("divided")
    lane.branch(before)
    fn.label(before, keep=True)
    known = fn.emit(f"freeze i1 {rare.ref}")  # as in `LaneDomain`
    fn.do(f"br i1 {known}, label %{exact}, label %{after}")
    with fn.arm(exact):
        divisor = fabs(d, b)
        product = (_times(lane, size, up_q), _times(lane, divisor, up - up_q))
        minus = _negative(lane, product[0])
        rest = d.float_call("fma", minus, product[1], _times(lane, fabs(d, a), up))
        odd = d.and_(d.extract(q, 0, 32), const(1, 32))
        excess = fabs(d, d.add(rest, d.zext(odd, w)))
        wrong = d.fcmp("ogt", excess, _times(lane, divisor, half_step))  # not for 1 / inf
        out = _nudged(lane, q, size, rest, wrong)
        lane.branch(after)
    fn.label(after, keep=True)
    ref = fn.emit_new(f"phi i{w} [ {q.ref}, %{before} ], [ {out.ref}, %{exact} ]")
    return Val(ref, w, False)


def _nudged(lane: Lane, q: Val, size: Val, rest: Val, wrong: Val) -> Val:
    """The quotient of the given size, or its neighbour on the side of the remainder."""
    d, w = lane.d, q.width
    if w == 32:
        step_ = d.select(d.fcmp("ogt", rest, const(0, w)), const(1, 32), const(-1, 32))
        return d.add(q, d.select(wrong, step_, const(0, 32)))
    # The least denormal number, with the remainder's sign: the sum is exact.
    sign = d.and_(d.extract(rest, 32, 32), const(1 << 31, 32))
    least = d.concat(sign, d.select(wrong, const(1, 32), const(0, 32)))
    return d.float_call("copysign", d.float_op("fadd", size, least), q)


def _times(lane: Lane, a: Val, power: int) -> Val:
    """a * 2**power."""
    d, w = lane.d, a.width
    if w == 32:
        return d.float_op("fmul", a, const(127 + power << 23, 32))
    args = (f"double {d.as_float(a, False)}", f"i32 {power}")
    return d.from_float(_call(lane, "double", "ldexp.f64.i32", *args), w, False)


__all__ = ["step"]
