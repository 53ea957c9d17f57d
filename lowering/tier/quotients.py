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
_NUDGE = {32: 0x27A00000, 64: 0x3954 << 48}  # 1.25 * 2**(-2 * p), p bits in a mantissa
_ENDS = 0x260  # LLVM's classes of zeros and +infinity, which are their own roots
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
    """LLVM's of binary32, which tries the numbers next to its result; our own of binary64."""
    d = lane.d
    if a.width == 32:
        return d.float_call("sqrt", a)
    out = _root64(lane, a)
    invalid = d.select(d.fcmp("uno", a, a), quiet(d, a), const(_NAN[64], 64))
    return d.select(d.fcmp("uno", out, out), invalid, out)


def _root64(lane: Lane, a: Val) -> Val:
    """The steps that LLVM writes (Goldschmidt's), with a correctly rounded h = 1 / (2 * s) for the
    last one: v_rsq is known within 2**29 last places only, and h within 2**-45 after one step.

    Let a lie between 1/4 and 1, and s be next to its root.  With the exact h, s + rest * h is too
    large by 2**-109 / s, and the rounding of h may change it by 2**-107 * s.  The root is no middle
    m of two numbers, but m + k * 2**-109 / m with k = 7 (mod 8).  So the step rounds correctly but
    for k = -1: 1 - 2**-53 and 1/4 + 2**-54.  The last bit of h takes these to the right side of m:
    it is set if the rest is negative, and cleared if not.  (That this serves all k up to 3000, from
    both numbers next to m, was computed with fractions.)
    """
    d = lane.d
    half = const(0x3FE << 52, 64)

    def fma(x: Val, y: Val, z: Val) -> Val:
        return d.float_call("fma", x, y, z)

    small = d.fcmp("olt", a, const(1023 - 767 << 52, 64))
    up = d.select(small, const(256, 32), const(0, 32))
    x = _power(lane, a, up)
    near = _call(lane, "double", "amdgcn.rsq.f64", f"double {d.as_float(x, False)}")
    y = d.from_float(near, 64, False)
    s, h = d.float_op("fmul", x, y), d.float_op("fmul", y, half)
    error = fma(_negative(lane, h), s, half)
    h, s = fma(h, error, h), fma(s, error, s)
    s = fma(fma(_negative(lane, s), s, x), h, s)
    h = fma(d.float_op("fadd", h, h), fma(_negative(lane, h), s, half), h)
    rest = fma(_negative(lane, s), s, x)
    low = d.and_(d.extract(h, 0, 32), const(0xFFFFFFFE, 32))
    sign = d.lshr(d.extract(rest, 32, 32), const(31, 32))
    h = d.concat(d.extract(h, 32, 32), d.or_(low, sign))
    s = fma(rest, h, s)
    down = d.select(small, const(-128, 32), const(0, 32))
    ends = _call(lane, "i1", "is.fpclass.f64", f"double {d.as_float(x, False)}", f"i32 {_ENDS}")
    return d.select(Val(ends, 1, False), x, _power(lane, s, down))


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
    first = d.float_op("fmul", num, rcp := _reciprocal(lane, near, minus))
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


def _reciprocal(lane: Lane, near: Val, minus: Val) -> Val:
    """1 / den, correctly rounded, of v_rcp's result and -den: then one step by the remainder rounds
    any quotient correctly (Markstein, IA-64 and Elementary Functions, 2000).

    Let den have p bits and lie between 1 and 2, and ``near`` be one of the numbers on both sides of
    1 / den.  v_rcp gives such a number for binary32.  For binary64 it is known within 2**29 last
    places only, so a step with the error's square comes first, which leaves 2**-69.

    1 / den = near + near * error / (1 - error), and the step takes near * error: it is too low by
    near * error**2 at most.  1 / den is no middle m of two numbers, but m + k * 2**(-2 * p) / den
    with a whole k.  If k is small ``near`` is next to m, so |error| is den * 2**(-p - 1) but for
    k * 2**(-2 * p), and what is missing is less than 2**(-2 * p) / den.  So the step rounds
    correctly, but for the error 2**-p, where it comes to m itself and goes to the even number
    (den = 2 - 2**(1 - p), all ones; k = 1).  The addend moves an error below 2**-p by its last
    place, 2**(-2 * p), and this one by 2**(1 - 2 * p): up by less than what is missing and the
    distance to m together, and past m.
    """
    d, w = lane.d, minus.width
    one = const(_ONE[w], w)

    def fma(x: Val, y: Val, z: Val) -> Val:
        return d.float_call("fma", x, y, z)

    error = fma(minus, near, one)
    if w == 64:
        near = fma(near, fma(error, error, error), near)
        error = fma(minus, near, one)
    return fma(near, d.float_op("fadd", error, const(_NUDGE[w], w)), near)


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
    return _power(lane, a, const(power, 32))


def _power(lane: Lane, a: Val, power: Val) -> Val:
    """A double times 2**power."""
    args = (f"double {lane.d.as_float(a, False)}", f"i32 {power.ref}")
    return lane.d.from_float(_call(lane, "double", "ldexp.f64.i32", *args), 64, False)


__all__ = ["step"]
