"""Single and double precision arithmetic, minimum and maximum, the multi-function unit.

Any NaN result of single precision is 0x7fffffff.  Double precision propagates the last source that
is NaN, quieted, with its sign as in the register, and makes 0xfff8000000000000 if
there is none (measured on an H200).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sassxlate.disasm.sass.instruction import Imm
from sassxlate.disasm.sass.semantics.arithmetic import bfloat
from sassxlate.disasm.sass.semantics.rows import (
    NoSemantics,
    Results,
    Semantics,
    View,
    reading,
    row,
    uniform,
)
from sassxlate.domain.interface import (
    IEEE,
    Approximation,
    Domain,
    Fp,
    Round,
    fabs,
    flush,
    has_payloads,
    is_nan,
    is_zero,
    quiet,
)

T = TypeVar("T")

ROUNDS = {"RM": Round.DOWN, "RP": Round.UP, "RZ": Round.ZERO}
NAN32, NAN64 = 0x7FFFFFFF, 0xFFF8000000000000
_SCALES = {"D2": 0x3F000000, "D4": 0x3E800000, "D8": 0x3E000000,
           "M2": 0x40000000, "M4": 0x40800000, "M8": 0x41000000}  # fmt: skip


def rounding(x: View[T]) -> Round:
    return ROUNDS.get(x.one_of(ROUNDS), Round.NEAREST)


def mode(x: View[T]) -> Fp:
    on = x.has("FTZ", "FMZ")
    return Fp(rounding(x), on, on)


def canonical(d: Domain[T], value: T) -> T:
    """The one NaN of single precision."""
    return d.select(is_nan(d, value), d.const(NAN32, 32), value)


def passed_on(d: Domain[T], value: T, *sources: T) -> T:
    """The NaN of double precision: the last source that is one, without its printed signs."""
    out = d.const(NAN64, 64)
    for source in sources if has_payloads(d) else ():
        out = d.select(is_nan(d, source), quiet(d, source), out)
    return d.select(is_nan(d, value), out, value)


def saturate(d: Domain[T], x: View[T], value: T) -> T:
    """.SAT: to [0, 1]; NaN becomes +0."""
    if not x.has("SAT"):
        return value
    w = d.width(value)
    one = d.const({16: 0x3C00, 32: 0x3F800000}[w], w)
    out = d.select(d.fcmp("ogt", value, d.const(0, w)), value, d.const(0, w))
    return d.select(d.fcmp("ogt", out, one), one, out)


def _finish(d: Domain[T], x: View[T], value: T) -> Results:
    return {"Rd": saturate(d, x, canonical(d, value))}


def fadd(d: Domain[T], x: View[T]) -> Results:
    return _finish(d, x, d.fadd(x.float("Ra"), x.float("Rb"), mode(x)))


def zero_product(d: Domain[T], a: T, b: T) -> T:
    """.FMZ: zero, or a value that is flushed to zero, times anything is +0."""
    return d.or_(is_zero(d, fabs(d, flush(d, a))), is_zero(d, fabs(d, flush(d, b))))


def fmul(d: Domain[T], x: View[T]) -> Results:
    """A scale is a power of two that the exact product is multiplied by."""
    a, b = x.float("Ra"), x.float("Rb")
    scale = x.one_of(_SCALES)
    if scale:
        how, factor = mode(x), d.const(_SCALES[scale], 32)
        p, q, r = (d.fcvt(v, 64, Fp(flush_in=how.flush_in)) for v in (a, b, factor))
        exact = d.fmul(d.fmul(p, q, IEEE), r, IEEE)
        out = canonical(d, d.fcvt(exact, 32, Fp(how.round, False, how.flush_out)))
    else:
        out = canonical(d, d.fmul(a, b, mode(x)))
    if x.has("FMZ"):
        out = d.select(zero_product(d, a, b), d.const(0, 32), out)
    return {"Rd": saturate(d, x, out)}


def _product_sum(d: Domain[T], x: View[T], a: T, b: T, c: T) -> T:
    out = canonical(d, d.ffma(a, b, c, mode(x)))
    if x.has("FMZ"):
        alone = canonical(d, d.fadd(d.const(0, 32), c, mode(x)))
        out = d.select(zero_product(d, a, b), alone, out)
    return out


def ffma(d: Domain[T], x: View[T]) -> Results:
    out = _product_sum(d, x, x.float("Ra"), x.float("Rb"), x.float("Rc"))
    return {"Rd": saturate(d, x, out)}


# --- pairs, and halves in single precision -----------------------------------------------------

# By a selector, the registers that the low and the high result read.  With .NP the high one reads
# the opposite number: {-a, b} is -R.F32x2.HI_LO.NP, {a, -b} R.F32x2.HI_LO.NP.
PAIRS = {"F32x2.HI_LO": (0, 1), "F32x2.LO_HI": (1, 0), "F32": (0, 0)}
OPPOSITE = ".NP"


def _pair(d: Domain[T], x: View[T], role: str) -> tuple[T, T]:
    """The low and the high number that a selector takes of two registers; an immediate is both."""
    select = x.select(role)
    if isinstance(x.operand(role), Imm):
        return x.float(role), x.float(role)
    parts = PAIRS.get(select.removesuffix(OPPOSITE))
    if parts is None:
        raise NoSemantics(f"selector {select}")
    both = x.whole(role, 64)
    low, high = (x.signed(role, d.extract(both, 32 * i, 32)) for i in parts)
    opposite = d.const((1 << 31) if select.endswith(OPPOSITE) else 0, 32)
    return low, d.xor(high, opposite)


def _two(fn: Callable[..., T], *roles: str) -> Callable[[Domain[T], View[T]], Results]:
    def each(d: Domain[T], x: View[T]) -> Results:
        low, high = (fn(d, x, *part) for part in zip(*(_pair(d, x, r) for r in roles), strict=True))
        return {"Rd": d.concat(high, low)}

    return each


def _sum2(d: Domain[T], x: View[T], a: T, b: T) -> T:
    return canonical(d, d.fadd(a, b, mode(x)))


def _product2(d: Domain[T], x: View[T], a: T, b: T) -> T:
    out = canonical(d, d.fmul(a, b, mode(x)))
    return d.select(zero_product(d, a, b), d.const(0, 32), out) if x.has("FMZ") else out


def _half(d: Domain[T], x: View[T], role: str) -> T:
    """A half of a register as binary32, with its signs."""
    select = x.select(role)
    if select not in ("", "H1"):
        raise NoSemantics(f"selector {select}")
    part = d.extract(x.whole(role), 16 if select else 0, 16)
    return x.signed(role, bfloat.single(d, part) if x.has("BF16") else d.fcvt(part, 32, IEEE))


def fhadd(d: Domain[T], x: View[T]) -> Results:
    """Ra is a half."""
    return _finish(d, x, d.fadd(_half(d, x, "Ra"), x.float("Rb"), mode(x)))


def fhfma(d: Domain[T], x: View[T]) -> Results:
    """Ra and Rb are halves."""
    a, b = _half(d, x, "Ra"), _half(d, x, "Rb")
    return _finish(d, x, d.ffma(a, b, x.float("Rc"), mode(x)))


def dadd(d: Domain[T], x: View[T]) -> Results:
    out = d.fadd(x.float("Ra", 64), x.float("Rb", 64), mode(x))
    return {"Rd": passed_on(d, out, x.whole("Ra", 64), x.whole("Rb", 64))}


def dmul(d: Domain[T], x: View[T]) -> Results:
    out = d.fmul(x.float("Ra", 64), x.float("Rb", 64), mode(x))
    return {"Rd": passed_on(d, out, x.whole("Ra", 64), x.whole("Rb", 64))}


def dfma(d: Domain[T], x: View[T]) -> Results:
    a, b, c = (x.float(r, 64) for r in ("Ra", "Rb", "Rc"))
    out = d.ffma(a, b, c, mode(x))
    return {"Rd": passed_on(d, out, *(x.whole(r, 64) for r in ("Ra", "Rc", "Rb")))}


# --- minimum and maximum -----------------------------------------------------------------------


def extreme(d: Domain[T], a: T, b: T, least: T, *, nan: int, strict: bool) -> T:
    """The smaller if ``least`` holds, otherwise the larger; -0 is below +0.

    Of a number and a NaN, the number; of two NaNs, ``nan``; ``strict`` (.NAN): NaN wins.
    """
    w = d.width(a)
    low = d.select(d.fcmp("olt", a, b), a, d.select(d.fcmp("olt", b, a), b, d.or_(a, b)))
    high = d.select(d.fcmp("ogt", a, b), a, d.select(d.fcmp("ogt", b, a), b, d.and_(a, b)))
    out = d.select(least, low, high)
    nan_a, nan_b, quiet = is_nan(d, a), is_nan(d, b), d.const(nan, w)
    if strict:
        return d.select(d.or_(nan_a, nan_b), quiet, out)
    out = d.select(nan_a, b, d.select(nan_b, a, out))
    return d.select(d.and_(nan_a, nan_b), quiet, out)


def _pick(d: Domain[T], x: View[T], a: T, b: T) -> T:
    if x.has("FTZ"):
        a, b = flush(d, a), flush(d, b)
    return extreme(d, a, b, x.pred("Pp"), nan=NAN32, strict=x.has("NAN"))


def fmnmx(d: Domain[T], x: View[T]) -> Results:
    """.IS_A: Pu: Ra was taken and is the result.  .XORSIGN: the sign is that of the
    sources' product, whatever - and || they have."""
    a = x.float("Ra")
    chosen = out = _pick(d, x, a, x.float("Rb"))
    if x.has("XORSIGN"):
        sign = d.and_(d.xor(x.whole("Ra"), x.whole("Rb")), d.const(1 << 31, 32))
        out = d.select(is_nan(d, out), out, d.or_(fabs(d, out), sign))
    both_nan = d.and_(is_nan(d, a), is_nan(d, out))
    taken = d.or_(d.and_(d.eq(chosen, a), d.eq(out, a)), both_nan)
    return {"Rd": out, "Pu": taken}


def fmnmx3(d: Domain[T], x: View[T]) -> Results:
    return {"Rd": _pick(d, x, _pick(d, x, x.float("Ra"), x.float("Rb")), x.float("Rc"))}


# --- the multi-function unit -------------------------------------------------------------------

# Where an approximation may be either neighbour, the unit's result is odd for these arguments (mask
# of bits, their value): nvcc's divisions and roots, which correct it, rely on that.  The odd one is
# the upper one of RCP, the lower one of RSQ.
ODD_RESULT = {"RCP": (0x7FFFFF, 0x7FFFFF), "RSQ": (0xFFFFFF, 0x6E9372)}
RSQ_MANTISSA = 0x04977F
# TANH is its argument up to 2**-8.  EX2 of a value nearer to 0 than 2**-23 is 1: the unit cuts
# that off; halves show this, where binary32's bound allows either.
TANH_ITSELF, EX2_ONE = 0x3B800000, 0x34000000
_MUFU: dict[str, Approximation] = {
    "RCP": "rcp", "RSQ": "rsq", "SQRT": "sqrt", "EX2": "exp2", "LG2": "log2", "SIN": "sin",
    "COS": "cos", "TANH": "tanh",
}  # fmt: skip


_BELOW_HALF = 0x477FFFFF  # the largest binary32 number that is finite as a half


def mufu(d: Domain[T], x: View[T]) -> Results:
    """SIN and COS take revolutions; denormals are flushed on both sides, except for TANH.

    Halves are widened, and the result's lower bits cut off; from 65,536 on it is infinite.
    """
    name = x.one_of((*_MUFU, "RCP64H", "RSQ64H"))
    if not name:
        raise NoSemantics("this function of MUFU")
    if name.endswith("64H"):
        return {"Rd": _mufu64(d, x, "rcp" if name == "RCP64H" else "rsq")}
    if x.has("F16x2", "BF16x2"):
        if name != "EX2" or x.select("Rb"):
            raise NoSemantics("this function of two halves")
        both = x.whole("Rb")
        low, high = (
            _mufu16(d, x.signed("Rb", d.extract(both, at, 16)), name, x.has("BF16x2"))
            for at in (0, 16)
        )
        return {"Rd": d.or_(low, d.shl(high, d.const(16, 32)))}
    if x.has("F16", "BF16"):
        half = d.extract(x.whole("Rb"), 16 if x.select("Rb") == "H1" else 0, 16)
        return {"Rd": _mufu16(d, x.signed("Rb", half), name, x.has("BF16"))}
    source = x.float("Rb")
    out = canonical(d, _approximated(d, name, source))
    if name in ODD_RESULT:
        bits, value = ODD_RESULT[name]
        odd = d.eq(d.and_(source, d.const(bits, 32)), d.const(value, 32))
        field = d.extract(out, 23, 8)
        special = d.or_(d.eq(field, d.const(0, 8)), d.eq(field, d.const(255, 8)))
        odd = d.and_(odd, d.not_(special))
        if name == "RSQ":
            high = d.and_(out, d.const(0xFF800000, 32))
            out = d.select(odd, d.or_(high, d.const(RSQ_MANTISSA, 32)), out)
        else:
            out = d.or_(out, d.zext(odd, 32))
    return {"Rd": out}


def _approximated(d: Domain[T], name: str, source: T) -> T:
    if name == "TANH":
        itself = d.fcmp("ole", fabs(d, source), d.const(TANH_ITSELF, 32))
        return d.select(itself, source, d.approx("tanh", source))
    return flush(d, d.approx(_MUFU[name], flush(d, source)))


def _mufu16(d: Domain[T], half: T, name: str, bf16: bool) -> T:
    wide = bfloat.single(d, half) if bf16 else d.fcvt(half, 32, IEEE)
    if name == "EX2":
        near = d.fcmp("ogt", d.const(EX2_ONE, 32), fabs(d, wide))
        wide = d.select(near, d.const(0, 32), wide)
    single = _approximated(d, name, wide)
    if bf16:
        out = d.extract(single, 16, 16)
    else:
        sign = d.and_(d.extract(single, 16, 16), d.const(0x8000, 16))
        huge = d.ult(d.const(_BELOW_HALF, 32), fabs(d, single))
        out = d.fcvt(single, 16, Fp(Round.ZERO))
        out = d.select(huge, d.or_(sign, d.const(0x7C00, 16)), out)
    return d.zext(d.select(is_nan(d, single), d.const(0x7FFF, 16), out), 32)


def _mufu64(d: Domain[T], x: View[T], fn: Approximation) -> T:
    """The high word of a function of a double whose high word is the source, its low word 0."""
    if isinstance(x.operand("Rb"), Imm):  # an immediate is the high word
        high = d.extract(x.float("Rb", 64), 32, 32)
    else:
        high = x.float("Rb")
    source = flush(d, d.concat(high, d.const(0, 32)))
    out = d.approx(fn, source)
    return d.extract(flush(d, passed_on(d, out, source)), 32, 32)


def fchk(d: Domain[T], x: View[T]) -> Results:
    """Whether a division needs the slow path: the biased exponents alone decide (all 65,536 pairs
    were measured on an H200)."""
    ea, eb = (d.zext(d.extract(x.whole(r), 23, 8), 32) for r in ("Ra", "Rb"))

    def outside(value: T, low: int, high: int) -> T:
        return d.or_(d.slt(value, d.const(low, 32)), d.slt(d.const(high, 32), value))

    far = outside(d.sub(ea, eb), -124, 126)
    return {"Pu": d.or_(far, d.or_(outside(ea, 25, 254), outside(eb, 2, 251)))}


_ROUND = "RM RP RZ"


def rows() -> list[Semantics]:
    return [
        *uniform([
            *reading(
                "f32",
                row("FADD", fadd, f"FTZ SAT {_ROUND}"),
                row("FMUL", fmul, f"FTZ FMZ SAT {_ROUND} {' '.join(_SCALES)}"),
                row("FFMA", ffma, f"FTZ FMZ SAT {_ROUND}"),
                row("FMNMX", fmnmx, "FTZ NAN XORSIGN IS_A"),
            ),
            row("FHADD", fhadd, f"BF16 SAT {_ROUND}"),
            row("FHFMA", fhfma, f"BF16 SAT {_ROUND}"),
        ]),
        *reading(
            "f32",
            row("FADD2", _two(_sum2, "Ra", "Rb"), f"FTZ {_ROUND}"),
            row("FMUL2", _two(_product2, "Ra", "Rb"), f"FTZ FMZ {_ROUND}"),
            row("FFMA2", _two(_product_sum, "Ra", "Rb", "Rc"), f"FTZ FMZ {_ROUND}"),
        ),
        *reading("f64", row("DADD", dadd, _ROUND), row("DMUL", dmul, _ROUND),
                 row("DFMA", dfma, _ROUND)),
        *reading(
            "f32",
            row("FMNMX3", fmnmx3, "FTZ NAN"),
            row("MUFU", mufu, f"{' '.join(_MUFU)} RCP64H RSQ64H F16 BF16 F16x2 BF16x2",
                approximate=True),
            row("FCHK", fchk, "DIVIDE"),
        ),
    ]  # fmt: skip
