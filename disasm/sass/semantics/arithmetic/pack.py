"""Numbers narrowed and packed, several to a register: F2FP, F2IP, I2IP, I2I; and the reverse.

The old parts from Rc go above the new parts.
"""

from __future__ import annotations

from typing import TypeVar

from sassxlate.disasm.sass.semantics.arithmetic import bfloat
from sassxlate.disasm.sass.semantics.arithmetic.float import rounding
from sassxlate.disasm.sass.semantics.rows import NoSemantics, Results, Semantics, View, row, uniform
from sassxlate.domain.interface import IEEE, Domain, Fp, Round, fabs, is_inf, is_nan, smax, smin

T = TypeVar("T")

_NAN16, _NAN32 = 0x7FFF, 0x7FFFFFFF
_BYTE_NAN = 0x7F
_FLOATS = ("F16", "BF16", "TF32", "E5M2", "E4M3", "F32")
_FINITE = {"F16": 0x7BFF, "BF16": 0x7F7F, "E5M2": 0x7B, "E4M3": 0x7E}
_BYTES = ("E5M2", "E4M3")


# --- bytes that are floats ---------------------------------------------------------------------


def to_byte(d: Domain[T], single: T, kind: str) -> T:
    """A binary32 pattern rounded to nearest as E5M2 or E4M3; a NaN becomes 0x7f, and so do values
    that E4M3, which has no infinities, cannot hold.

    Both are upper bits of a half: E4M3's lowest normal number is 2**8 times that of halves.  What
    that scale makes denormal is zero in either.
    """
    cut = 8
    if kind == "E4M3":
        cut, single = 7, d.fmul(single, d.const(0x3B800000, 32), IEEE)  # 2**-8
    down, up = (d.fcvt(single, 16, Fp(how)) for how in (Round.DOWN, Round.UP))
    half = bfloat.odd(d, down, up)
    size = fabs(d, half)
    bit = d.and_(d.lshr(size, d.const(cut, 16)), d.const(1, 16))
    total = d.add(size, d.add(d.const((1 << cut - 1) - 1, 16), bit))
    byte = d.extract(d.lshr(total, d.const(cut, 16)), 0, 8)
    sign = d.shl(d.zext(d.extract(half, 15, 1), 8), d.const(7, 8))
    none = is_nan(d, half)
    if kind == "E4M3":
        none = d.or_(none, d.not_(d.ult(byte, d.const(_BYTE_NAN, 8))))
    return d.select(none, d.const(_BYTE_NAN, 8), d.or_(byte, sign))


def of_byte(d: Domain[T], byte: T, kind: str) -> T:
    """E5M2 or E4M3 as a half, exactly; a NaN becomes 0x7fff."""
    wide = d.zext(byte, 16)
    if kind == "E5M2":
        out = d.shl(wide, d.const(8, 16))
        nan = is_nan(d, out)
    else:
        sign = d.shl(d.and_(wide, d.const(0x80, 16)), d.const(8, 16))
        size = d.and_(wide, d.const(0x7F, 16))
        nan = d.eq(size, d.const(0x7F, 16))
        small = d.or_(sign, d.shl(size, d.const(7, 16)))
        out = d.fmul(small, d.const(0x5C00, 16), IEEE)  # 2**8
    return d.select(nan, d.const(_NAN16, 16), out)


# --- F2FP --------------------------------------------------------------------------------------


def _small(d: Domain[T], x: View[T], value: T, to: str) -> T:
    """A source of 32 bits, or of 16 as a half, in the format ``to``; .SATFINITE replaces a value
    that is too large, infinities included, by the largest finite number of its sign, .RELU a
    negative value by +0; neither replaces a NaN."""
    how, narrow = rounding(x), d.width(value) == 16
    if to in _BYTES:
        if how != Round.NEAREST:
            raise NoSemantics("rounding of a byte")
        out = to_byte(d, d.fcvt(value, 32, IEEE) if narrow else value, to)
    elif narrow:
        raise NoSemantics("types of F2FP")
    elif to == "BF16":
        out = bfloat.of_single(d, value, how)
    else:
        out = d.fcvt(value, 16, Fp(how))
        out = d.select(is_nan(d, value), d.const(_NAN16, 16), out)
    if x.has("SATFINITE"):
        out = _finite(d, value, out, to)
    if x.has("RELU"):  # also where E4M3 cannot hold a negative number
        negative = d.and_(d.extract(value, d.width(value) - 1, 1), d.not_(is_nan(d, value)))
        out = d.select(negative, d.const(0, d.width(out)), out)
    return out


def _finite(d: Domain[T], value: T, out: T, to: str) -> T:
    w = d.width(out)
    largest = d.const(_FINITE[to], w)
    size = d.and_(out, d.const((1 << w - 1) - 1, w))
    top = d.extract(value, d.width(value) - 1, 1)
    sign = d.shl(d.zext(top, w), d.const(w - 1, w))
    huge = d.and_(d.ult(largest, size), d.not_(is_nan(d, value)))
    return d.select(huge, d.or_(largest, sign), out)


def _relu(d: Domain[T], x: View[T], out: T) -> T:
    """NaN results have no sign."""
    if not x.has("RELU"):
        return out
    return smax(d, out, d.const(0, d.width(out)))


def _tf32(d: Domain[T], x: View[T]) -> T:
    """Rounded to ten bits of mantissa; the rest are zeros."""
    value = x.float("Rb")
    low = d.extract(value, 0, 13)
    if rounding(x) == Round.NEAREST:
        bit = d.zext(d.extract(value, 13, 1), 32)
        value_up = d.add(value, d.add(d.const(0xFFF, 32), bit))
    elif rounding(x) == Round.ZERO:
        value_up = value
    else:
        raise NoSemantics("rounding to TF32")
    out = d.and_(value_up, d.const(0xFFFFE000, 32))
    infinite = d.and_(is_inf(d, value), d.eq(low, d.const(0, 13)))
    out = d.select(infinite, value, out)
    out = d.select(is_nan(d, value), d.const(_NAN32 & 0xFFFFE000, 32), out)
    return _relu(d, x, out)


def _half_of(d: Domain[T], x: View[T], role: str) -> T:
    value = x.whole(role)
    if any(x.flag(role, f) for f in ("neg", "abs", "inv")):
        raise NoSemantics(f"sign of {role}")
    select = x.select(role)
    if select not in ("", "H1"):
        raise NoSemantics(f"selector {select}")
    return d.extract(value, 16 if select == "H1" else 0, 16)


def f2fp(d: Domain[T], x: View[T]) -> Results:
    """PACK_AB: Ra's is the higher of two parts.  MERGE_C: a half of Rc goes above."""
    kinds = [m for m in x.ins.modifiers if m in _FLOATS]
    if x.ins.arch < 89:  # sources are binary32; that and F16 are not printed
        kinds = [*(kinds or ["F16"]), "F32"]
    if len(kinds) != 2:
        raise NoSemantics("types of F2FP")
    to, source = kinds
    form = next(m for m in x.ins.modifiers if m in _FORMS)
    if form == "PACK_B" and (to, source) == ("TF32", "F32") and not x.has("SATFINITE"):
        return {"Rd": _tf32(d, x)}
    if form == "UNPACK_B" and to == "F16" and source in _BYTES and not x.has("SATFINITE"):
        pair = _half_of(d, x, "Rb")
        lo, hi = (_relu(d, x, of_byte(d, d.extract(pair, at, 8), source)) for at in (0, 8))
        return {"Rd": d.concat(hi, lo)}
    if form == "UNPACK_B_MERGE_C" and to in _BYTES and source in ("F16", "BF16"):
        pair = x.bits("Rb")
        halves = [d.extract(pair, at, 16) for at in (0, 16)]
        if source == "BF16":
            halves = [bfloat.single(d, half) for half in halves]
        lo, hi = (_small(d, x, half, to) for half in halves)
    elif source == "F32" and to in ("F16", "BF16") and form in ("PACK_AB", "MERGE_C"):
        out = _small(d, x, x.float("Rb"), to)
        if form == "MERGE_C":
            return {"Rd": d.concat(_half_of(d, x, "Rc"), out)}
        return {"Rd": d.concat(_small(d, x, x.float("Ra"), to), out)}
    elif source == "F32" and to in _BYTES and form == "PACK_AB_MERGE_C":
        lo, hi = (_small(d, x, x.float(role), to) for role in ("Rb", "Ra"))
    else:
        raise NoSemantics("this form of F2FP")
    return {"Rd": d.concat(_half_of(d, x, "Rc"), d.concat(hi, lo))}


# --- integers ----------------------------------------------------------------------------------

_INTS = ("S2", "U2", "S4", "U4", "S8", "U8", "S16", "U16")
_ABOVE = {"": 0, "H1": 16, "24": 0, "28": 0}


def _limits(name: str) -> tuple[int, int]:
    bits = int(name[1:])
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if name[0] == "S" else (0, (1 << bits) - 1)


def _clamped(d: Domain[T], value: T, name: str) -> T:
    low, top = _limits(name)
    return smax(d, smin(d, value, d.const(top, 32)), d.const(low, 32))


def _merged(d: Domain[T], x: View[T], a: T, b: T) -> Results:
    """Two parts of 2 to 16 bits below Rc; of bytes, Rc's lower half or, with .H1, its upper one."""
    bits = d.width(a)
    pair = d.concat(a, b)
    if bits == 16:
        return {"Rd": pair}
    at = _ABOVE.get(x.select("Rc"))
    if at is None or any(x.flag("Rc", f) for f in ("neg", "abs", "inv")):
        raise NoSemantics("this kind of Rc")
    return {"Rd": d.concat(d.extract(x.whole("Rc"), at, 32 - 2 * bits), pair)}


def i2ip(d: Domain[T], x: View[T]) -> Results:
    """Signed words, cut off, or with .SAT saturated, or with .SATRELU from zero on."""
    name = x.one_of(_INTS)
    parts: list[T] = []
    for role in ("Ra", "Rb"):
        value = x.bits(role)
        if x.has("SATRELU"):
            value = smax(d, value, d.const(0, 32))
        if x.has("SAT", "SATRELU"):
            value = _clamped(d, value, name)
        parts.append(d.extract(value, 0, int(name[1:])))
    return _merged(d, x, *parts)


def f2ip(d: Domain[T], x: View[T]) -> Results:
    """Binary32 numbers as bytes, saturated; NaN gives 0 with .NTZ, otherwise 0x80."""
    name = x.one_of(_INTS)
    if x.has("RELU") and name[0] == "U":
        raise NoSemantics("RELU of an unsigned number")
    parts: list[T] = []
    for role in ("Ra", "Rb"):
        value = x.float(role)
        whole = d.frint(value, Round.ZERO if x.has("TRUNC") else Round.NEAREST)
        number = d.extract(_clamped(d, d.ftoi(whole, 32, signed=True), name), 0, 8)
        if not x.has("NTZ"):
            number = d.select(is_nan(d, value), d.const(0x80, 8), number)
        parts.append(_relu(d, x, number))
    return _merged(d, x, *parts)


def i2i(d: Domain[T], x: View[T]) -> Results:
    """A signed word, saturated to a narrower type."""
    name = next(m for m in x.ins.modifiers if m in _INTS)
    return {"Rd": _clamped(d, x.bits("Rb"), name)}


_FORMS = ("PACK_AB", "MERGE_C", "PACK_B", "UNPACK_B", "UNPACK_B_MERGE_C", "PACK_AB_MERGE_C")


def rows() -> list[Semantics]:
    ints = " ".join(_INTS)
    return uniform([
        row("F2FP", f2fp, f"{' '.join(_FORMS)} {' '.join(_FLOATS)} RZ RELU SATFINITE",
            number="f32"),
        row("F2IP", f2ip, "U8 S8 F32 TRUNC NTZ RELU", number="f32"),
        row("I2IP", i2ip, f"{ints} S32 SAT SATRELU"),
        row("I2I", i2i, f"{ints} S32 SAT"),
    ])  # fmt: skip
