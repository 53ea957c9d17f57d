"""HMMA: sums of products as NVIDIA's tensor cores compute them, bit for bit.

Each form is a function of its own in the kernel's module, which all instructions of this form call:
it has some 2,000 instructions.

The arithmetic is that of :func:`sassxlate.disasm.sass.semantics.warp.matrix.times`, and each lane
computes its four results, as with the rules (`lowering/rules/warp/matrix_float.py`):

1. Of each element the mantissa, as a number with its sign, and the exponent are in one word, which
   the lanes exchange: the number in the upper bits, the exponent in the lowest twelve.
2. The largest sum of two exponents is found; products are exact in binary32.  A product's sum
   of exponents, less the largest one, scales it so that a conversion to an integer cuts off the
   bits that are lost.
3. The integers are added, and the sum is rounded once.

Infinities and NaN of A and B are repaired after that, in a block that other waves do not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from sassxlate.disasm.sass.instruction import Instruction, Pred, Reg, RegRef
from sassxlate.disasm.sass.semantics.warp.matrix_formats import (
    BF16,
    CORES,
    F16,
    F32,
    TF32,
    Core,
    Format,
)
from sassxlate.lowering.llvm.ir_text import Val, const
from sassxlate.lowering.tier.functions import call
from sassxlate.lowering.tier.lane import Lane
from sassxlate.lowering.tier.matrices.moves import columns, of_lane, of_quad
from sassxlate.lowering.tier.others import ballot
from sassxlate.lowering.tier.refusal import FORM, refused

_FLAG = 2048  # of exponents of numbers that are not zero, so that their sums are the largest
_FIELD = 0xFFF
_NAMES = {F16: "f16", BF16: "bf16", TF32: "tf32", F32: "f32"}


@dataclass(frozen=True, slots=True)
class _Form:
    """A type of elements, the type of sums, and how they are formed."""

    kind: Format
    into: Format
    core: Core


@dataclass(frozen=True, slots=True)
class _Factors:
    """For two rows of A, or columns of B: the words of each element, by k."""

    words: tuple[list[Val], list[Val]]


def _form(ins: Instruction) -> _Form:
    kind = BF16 if ins.has("BF16") else TF32 if ins.has("TF32") else F16
    into = F32 if ins.has("F32") else F16
    core = CORES.get(ins.arch, {}).get(kind.width)
    if core is None or core.kept != 23 or (into is F16 and kind is not F16):
        raise refused(FORM, f"sums of matrix products on sm_{ins.arch}", ins)
    if ins.has("SP") or ins.has("884"):
        raise refused(FORM, "this shape of HMMA", ins)
    return _Form(kind, into, core)


def _registers(lane: Lane, ins: Instruction, role: str, layout: str = "") -> list[Val]:
    source = ins.get(role)
    if not isinstance(source, Reg) or source.abs or source.inv or source.select not in ("", layout):
        raise refused(FORM, f"the operand {role}", ins)
    if source.is_zero:
        return [const(0, 32)] * (source.width if role != "Rc" else 4)
    return [lane.reg(source.file, source.index + i) for i in range(source.width)]


def _factor(lane: Lane, ins: Instruction, form: _Form, role: str) -> list[Val]:
    """The registers of A or B, with the printed sign."""
    source = ins.get(role)
    words = _registers(lane, ins, role, "ROW" if role == "Ra" else "COL")
    if not isinstance(source, Reg) or not source.neg:
        return words
    sign = const(1 << 31 if form.kind.width == 32 else 0x80008000, 32)
    return [lane.d.xor(word, sign) for word in words]


def _elements(lane: Lane, words: Sequence[Val], kind: Format) -> list[list[Val]]:
    """The elements of each register as bits of a word."""
    d = lane.d
    if kind.width == 32:
        return [[d.lshr(word, const(kind.cut, 32))] for word in words]
    return [[d.and_(word, const(0xFFFF, 32)), d.lshr(word, const(16, 32))] for word in words]


# --- elements ------------------------------------------------------------------------------------


def _parts(lane: Lane, bits: Val, f: Format) -> tuple[Val, Val, Val]:
    """The exponent's field, the mantissa with its sign as an integer, and whether it is zero."""
    d = lane.d
    field = d.and_(d.lshr(bits, const(f.mantissa, 32)), const((1 << f.exponent) - 1, 32))
    fraction = d.and_(bits, const((1 << f.mantissa) - 1, 32))
    denormal = d.eq(field, const(0, 32))
    size = d.select(denormal, fraction, d.or_(fraction, const(1 << f.mantissa, 32)))
    sign = d.and_(d.lshr(bits, const(f.mantissa + f.exponent, 32)), const(1, 32))
    mask = d.sub(const(0, 32), sign)
    signed = d.sub(d.xor(size, mask), mask)
    return d.select(denormal, const(1, 32), field), signed, d.eq(size, const(0, 32))


def _number(lane: Lane, integer: Val) -> Val:
    """An integer that binary32 holds, as its bits."""
    ref = lane.fn.emit(f"sitofp i32 {integer.ref} to float")
    return Val(lane.fn.emit(f"bitcast float {ref} to i32"), 32, False)


def _packed(lane: Lane, bits: Val, f: Format) -> Val:
    """A mantissa as a number, and the exponent in the twelve bits that it leaves zero."""
    d = lane.d
    field, signed, zero = _parts(lane, bits, f)
    return d.or_(
        _number(lane, signed), d.select(zero, const(0, 32), d.or_(field, const(_FLAG, 32)))
    )


def _class(lane: Lane, bits: Val, f: Format) -> Val:
    """A number of binary32 that stands for one: 1 for all that are finite and not zero."""
    d = lane.d
    field = d.and_(d.lshr(bits, const(f.mantissa, 32)), const((1 << f.exponent) - 1, 32))
    fraction = d.and_(bits, const((1 << f.mantissa) - 1, 32))
    special = d.eq(field, const((1 << f.exponent) - 1, 32))
    zero = d.eq(d.or_(field, fraction), const(0, 32))
    size = d.select(zero, const(0, 32), const(0x3F800000, 32))
    odd = d.select(d.eq(fraction, const(0, 32)), const(0x7F800000, 32), const(0x7FC00000, 32))
    sign = d.shl(d.lshr(bits, const(f.mantissa + f.exponent, 32)), const(31, 32))
    return d.or_(d.select(special, odd, size), sign)


def _rows(lane: Lane, own: list[list[Val]]) -> _Factors:
    """Both rows of A: register 2 i + h has words 4 i to 4 i + 3 of row g + 8 h."""
    rows: tuple[list[Val], list[Val]] = ([], [])
    for n, some in enumerate(own):
        for which in range(4):
            rows[n % 2].extend(of_quad(lane, e, which) for e in some)
    return _Factors(rows)


def _columns(lane: Lane, own: list[list[Val]]) -> _Factors:
    """Both columns of B: register i has words 4 i to 4 i + 3 of column g."""
    base = columns(lane)
    both: tuple[list[Val], list[Val]] = ([], [])
    for some in own:
        for which in range(4):
            for column in (0, 1):
                place = lane.d.add(base, const(16 * column + 4 * which, 32))
                both[column].extend(of_lane(lane, e, place) for e in some)
    return _Factors(both)


# --- sums ----------------------------------------------------------------------------------------


def _float(lane: Lane, bits: Val) -> str:
    return lane.fn.emit(f"bitcast i32 {bits.ref} to float")


def _scaled(lane: Lane, number: str, power: Val) -> str:
    """A number times a power of two."""
    given = f"float {number}, i32 {power.ref}"
    return lane.intrinsic("float", "ldexp.f32.i32", given, "float, i32")


def _cut(lane: Lane, number: str, power: Val) -> Val:
    """A number times a power of two, without its fraction: it is less than 2**31."""
    ref = lane.fn.emit(f"fptosi float {_scaled(lane, number, power)} to i32")
    return Val(ref, 32, False)


def _most(lane: Lane, a: Val, b: Val) -> Val:
    return Val(
        lane.intrinsic("i32", "umax.i32", f"i32 {a.ref}, i32 {b.ref}", "i32, i32"), 32, False
    )


def _group(lane: Lane, form: _Form, left: list[Val], right: list[Val], word: Val) -> Val:
    """One result: the sum of a group's products and an addend, rounded."""
    d, core, into = lane.d, form.core, form.into
    sums = [
        d.add(d.and_(a, const(_FIELD, 32)), d.and_(b, const(_FIELD, 32)))
        for a, b in zip(left, right, strict=True)
    ]
    field, signed, zero = _parts(lane, word, into)
    shift = 2 * _FLAG + 2 * form.kind.bias - into.bias
    own = d.select(zero, const(0, 32), d.add(field, const(shift, 32)))
    top = own
    for one in sums:
        top = _most(lane, top, one)
    upper = const(0xFFFFFFFF ^ _FIELD, 32)
    scale = d.sub(const(core.extra - 2 * form.kind.mantissa, 32), top)
    small: list[Val] = []
    for a, b, one in zip(left, right, sums, strict=True):
        x, y = (_float(lane, d.and_(w, upper)) for w in (a, b))
        small.append(_cut(lane, lane.fn.emit(f"fmul float {x}, {y}"), d.add(scale, one)))
    power = d.add(d.sub(own, top), const(core.extra - into.mantissa, 32))
    small.append(_cut(lane, lane.fn.emit(f"sitofp i32 {signed.ref} to float"), power))
    width = 32 if len(small) << core.extra + 2 < 1 << 31 else 64
    if width == 64:
        small = [d.sext(one, width) for one in small]
    total = small[0]
    for one in small[1:]:
        total = d.add(total, one)
    unit = d.sub(top, const(2 * _FLAG + 2 * form.kind.bias + core.extra, 32))
    out = _rounded(lane, total, unit, into)
    # An addend that is not finite stays what it is.
    ones = const((1 << into.exponent) - 1 << into.mantissa, 32)
    size = d.and_(word, const((1 << into.width - 1) - 1, 32))
    none = const((1 << into.width - 1) - 1, 32)
    out = d.select(d.eq(size, ones), word, out)
    return d.select(d.ult(ones, size), none, out)


def _rounded(lane: Lane, total: Val, unit: Val, into: Format) -> Val:
    """A sum in units of a power of two: towards zero in binary32, else to nearest."""
    d, width = lane.d, total.width
    zero = const(0, width)
    negative = d.slt(total, zero)
    size = d.select(negative, d.sub(zero, total), total)
    # 24 bits; of the others, for binary16, whether there are any.
    lead = d.clz(size)
    ones = const((1 << 24) - 1 << width - 24, width)
    kept = d.and_(size, d.lshr(ones, d.select(d.eq(size, zero), zero, lead)))
    if into is F32:
        # Denormal numbers have fewer: bits of less than 2**-149 are cut off, too.
        below = d.sub(const(-149, 32), unit)
        below = d.select(d.slt(below, const(0, 32)), const(0, 32), below)
        below = d.select(d.slt(const(width - 1, 32), below), const(width - 1, 32), below)
        count = below if width == 32 else d.zext(below, width)
        kept = d.shl(d.lshr(kept, count), count)
    else:
        last = d.lshr(const(1 << width - 24, width), d.select(d.eq(size, zero), zero, lead))
        kept = d.select(d.eq(kept, size), kept, d.or_(kept, last))
    signed = d.select(negative, d.sub(zero, kept), kept)
    number = lane.fn.emit(f"sitofp i{width} {signed.ref} to float")
    number = _scaled(lane, number, unit)
    if into is F32:
        return Val(lane.fn.emit(f"bitcast float {number} to i32"), 32, False)
    half = lane.fn.emit(f"fptrunc float {number} to half")
    bits = Val(lane.fn.emit(f"bitcast half {half} to i16"), 16, False)
    out = d.zext(bits, 32)
    return d.select(d.eq(out, const(0x8000, 32)), const(0, 32), out)


# --- infinities and NaN --------------------------------------------------------------------------


def _special(lane: Lane, own: list[list[Val]], f: Format) -> Val:
    """Whether one of this lane's elements is infinite or a NaN."""
    d = lane.d
    most = const((1 << f.exponent) - 1 << f.mantissa, 32)
    out = const(0, 1)
    for e in (e for some in own for e in some):
        out = d.or_(out, d.eq(d.and_(e, most), most))
    return out


def _mended(lane: Lane, form: _Form, classes: list[Val], word: Val, out: Val) -> Val:
    """A result, or the infinity or NaN that it must be.  ``classes``: of the products' factors."""
    d, into = lane.d, form.into
    total = _float(lane, _class(lane, word, into))
    for a, b in zip(classes[::2], classes[1::2], strict=True):
        both = lane.fn.emit(f"fmul float {_float(lane, a)}, {_float(lane, b)}")
        total = lane.fn.emit(f"fadd float {total}, {both}")
    bits = Val(lane.fn.emit(f"bitcast float {total} to i32"), 32, False)
    size = d.and_(bits, const(0x7FFFFFFF, 32))
    sign = d.shl(d.lshr(bits, const(31, 32)), const(into.width - 1, 32))
    infinite = d.or_(sign, const((1 << into.exponent) - 1 << into.mantissa, 32))
    limit = const(0x7F800000, 32)
    out = d.select(d.eq(size, limit), infinite, out)
    return d.select(d.ult(limit, size), const((1 << into.width - 1) - 1, 32), out)


# --- the instruction -----------------------------------------------------------------------------


def _addend(lane: Lane, ins: Instruction, form: _Form) -> list[Val]:
    """The four words of C, of rows g and g + 8, columns 2 t and 2 t + 1."""
    d, source, which = lane.d, ins.get("Rc"), ins.get("Pp")
    words = _registers(lane, ins, "Rc")
    if isinstance(source, Reg) and source.neg:
        raise refused(FORM, "a sign of Rc", ins)
    if isinstance(which, Pred) and not which.is_true:
        held = lane.truth(which)
        words = [d.select(held, w, const(0, 32)) for w in words]
    if form.into is F32:
        return words[:4]
    return [
        half for w in words[:2] for half in (d.and_(w, const(0xFFFF, 32)), d.lshr(w, const(16, 32)))
    ]


def _products(form: _Form, deep: int, lane: Lane, given: Sequence[Val]) -> list[Val]:
    """The four words of the sums; of ``given`` the first ``deep`` are A's registers, then half as
    many of B, then the words of C."""
    d, kind = lane.d, form.kind
    a = _elements(lane, given[:deep], kind)
    b = _elements(lane, given[deep : deep + deep // 2], kind)
    first = list(given[deep + deep // 2 :])
    left = _rows(lane, [[_packed(lane, e, kind) for e in some] for some in a]).words
    right = _columns(lane, [[_packed(lane, e, kind) for e in some] for some in b]).words
    size, terms = form.core.group, len(left[0])
    stages: list[list[Val]] = []
    words = first
    for at in range(0, terms, size):
        words = [
            _group(lane, form, left[n // 2][at : at + size], right[n % 2][at : at + size], word)
            for n, word in enumerate(words)
        ]
        stages.append(words)
    odd = d.or_(_special(lane, a, kind), _special(lane, b, kind))
    some_odd = d.not_(d.eq(ballot(lane, odd), const(0, 32)))
    places = [lane.place(f"sum.{n}", word) for n, word in enumerate(words)]

    def mend() -> None:
        rows = _rows(lane, [[_class(lane, e, kind) for e in some] for some in a]).words
        both = _columns(lane, [[_class(lane, e, kind) for e in some] for some in b]).words
        now = first
        for at, found in zip(range(0, terms, size), stages, strict=True):
            pairs = [
                [
                    w
                    for k in range(at, min(at + size, terms))
                    for w in (rows[n // 2][k], both[n % 2][k])
                ]
                for n in range(4)
            ]
            now = [
                _mended(lane, form, some, word, out)
                for some, word, out in zip(pairs, now, found, strict=True)
            ]
        for place, word in zip(places, now, strict=True):
            place.store(word)

    lane.under(some_odd, mend)
    return [place.load() for place in places]


def hmma(lane: Lane, ins: Instruction) -> None:
    form, target = _form(ins), ins.get("Rd")
    if lane.d.flushes:
        raise refused(FORM, "a product of matrices in a function that flushes", ins)
    if not isinstance(target, Reg) or target.is_zero:
        raise refused(FORM, "the destination Rd", ins)
    a, b = (_factor(lane, ins, form, role) for role in ("Ra", "Rb"))
    if len(a) != 2 * len(b):
        raise refused(FORM, "this shape of HMMA", ins)
    name = f"hmma.{_NAMES[form.kind]}.{_NAMES[form.into]}.{len(a)}"
    body = partial(_products, form, len(a))
    words = call(lane, name, [*a, *b, *_addend(lane, ins, form)], body)
    if form.into is not F32:
        d = lane.d
        words = [d.or_(words[i], d.shl(words[i + 1], const(16, 32))) for i in (0, 2)]
    for i, word in enumerate(words):
        lane.write(RegRef(target.file, target.index + i), word)


__all__ = ["hmma"]
