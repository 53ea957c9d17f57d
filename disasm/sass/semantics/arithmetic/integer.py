"""Integer arithmetic: sums with carries, products, minimum and maximum, packed parts.

A ``-x`` of a sum with carries is the two addends ~x and 1, so that -0 carries (measured).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sassxlate.disasm.sass.semantics.rows import NoSemantics, Results, Semantics, View, row, uniform
from sassxlate.domain.interface import Domain, neg, smax, smin, umax, umin

T = TypeVar("T")
_SUM_BITS = 40  # bits of a sum of a few 32-bit words


def _chain(d: Domain[T], terms: list[T], carries: list[T]) -> tuple[T, list[T]]:
    """The sum of words and carries, and the carries out of its additions, one after the other.

    Each addition takes one more word and one carry, as an adder does; that also keeps the terms of
    a proof near those of the other side.
    """
    pending = list(carries)
    total, rest = terms[0], list(terms[1:])
    while len(rest) < len(pending):
        rest.append(d.const(0, 32))
    out: list[T] = []
    for term in rest:
        first = d.add(total, term)
        carry = d.ult(first, total)
        total = first
        if pending:
            total = d.add(first, d.zext(pending.pop(0), 32))
            carry = d.or_(carry, d.ult(total, first))
        out.append(carry)
    return total, out


def _carry_predicates(d: Domain[T], carries: list[T]) -> tuple[T, T]:
    """Whether there is a carry, and whether there are two."""
    some = two = d.const(0, 1)
    for c in carries:
        two = d.or_(two, d.and_(some, c))
        some = d.or_(some, c)
    return some, two


def _addend(d: Domain[T], x: View[T], role: str, word: int) -> tuple[T, list[T]]:
    """A word of a source; a negated one is complemented, and 1 is to be added."""
    width = 64 if word else 32
    value = x.whole(role, width)
    if word:
        value = d.extract(value, 32, 32)
    if x.flag(role, "neg") or x.flag(role, "inv"):
        value = d.not_(value)
    return value, [d.const(1, 1)] if x.flag(role, "neg") and word == 0 else []


def _carried(d: Domain[T], x: View[T], roles: tuple[str, ...], words: int) -> Results:
    """The sum of sources of ``words`` 32-bit words, and its carries."""
    carries: list[T] = []
    given = [x.pred_or("Pp", 0), x.pred_or("Pq", 0)] if x.has("X") else []
    parts: list[T] = []
    for i in range(words):
        terms: list[T] = []
        for role in roles:
            value, one = _addend(d, x, role, i)
            terms.append(value)
            carries += one
        total, carries = _chain(d, terms, [*carries, *(given if i == 0 else [])])
        parts.append(total)
    some, two = _carry_predicates(d, carries)
    value = parts[0] if words == 1 else d.concat(parts[1], parts[0])
    return {"Rd": value, "Pu": some, "Pv": two}


def iadd3(d: Domain[T], x: View[T]) -> Results:
    return _carried(d, x, ("Ra", "Rb", "Rc"), 2 if x.has("64") else 1)


def iadd(d: Domain[T], x: View[T]) -> Results:
    return _carried(d, x, ("Ra", "Rb"), 2 if x.has("64") else 1)


def _product(d: Domain[T], x: View[T]) -> T:
    """All 64 bits of Ra * Rb."""
    wide = d.zext if x.has("U32") else d.sext
    return d.mul(wide(x.bits("Ra"), 64), wide(x.bits("Rb"), 64))


def _add64(d: Domain[T], a: T, b: T, carry: T) -> tuple[T, T]:
    """a + b + carry, and the carry out of 64 bits."""
    first = d.add(a, b)
    total = d.add(first, d.zext(carry, 64))
    return total, d.or_(d.ult(first, a), d.ult(total, first))


def imad(d: Domain[T], x: View[T]) -> Results:
    if x.has("WIDE", "HI"):
        return _imad_wide(d, x)
    low = d.mul(x.bits("Ra"), x.bits("Rb"))
    total = d.add(low, x.integer("Rc"))
    if x.has("X"):
        total = d.add(total, d.zext(x.pred("Pp"), 32))
    return {"Rd": total}


def _imad_wide(d: Domain[T], x: View[T]) -> Results:
    addend = x.whole("Rc", 64)
    minus, inverted = x.flag("Rc", "neg"), x.flag("Rc", "inv")
    carry = x.pred("Pp") if x.has("X") else d.const(int(minus), 1)
    if minus or inverted:
        addend = d.not_(addend)
    total, out = _add64(d, addend, _product(d, x), carry)
    return {"Rd": d.extract(total, 32, 32) if x.has("HI") else total, "Pu": out}


def lea(d: Domain[T], x: View[T]) -> Results:
    """(Ra << shift) + Rb; .HI takes the high word of the pair Rc:Ra, .SX32 Ra's sign as Rc."""
    shift = x.imm("shift") & 31
    low = x.whole("Ra")
    value = d.shl(low, d.const(shift, 32))
    if x.has("HI"):
        high = d.ashr(low, d.const(31, 32)) if x.has("SX32") else x.bits("Rc")
        pair = d.shl(d.concat(high, low), d.const(shift, 64))
        value = d.extract(pair, 32, 32)
    carries: list[T] = []
    terms: list[T] = []
    for role, term in (("Ra", value), ("Rb", x.whole("Rb"))):
        flipped = x.flag(role, "neg") or x.flag(role, "inv")
        terms.append(d.not_(term) if flipped else term)
        if x.flag(role, "neg"):
            carries.append(d.const(1, 1))
    if x.has("X"):
        carries.append(x.pred("Pp"))
    total, out = _chain(d, terms, carries)
    return {"Rd": total, "Pu": _carry_predicates(d, out)[0]}


def iabs(d: Domain[T], x: View[T]) -> Results:
    value = x.integer("Rb")
    return {"Rd": d.select(d.slt(value, d.const(0, 32)), neg(d, value), value)}


# --- minimum and maximum -----------------------------------------------------------------------

# Printed type -> width of a part, whether it is signed.
_PARTS = {
    "16x2": (16, True), "U16x2": (16, False), "S16x2": (16, True), "U8x4": (8, False),
    "S8x4": (8, True), "U64": (64, False), "S64": (64, True),
}  # fmt: skip


def _each(d: Domain[T], width: int, fn: Callable[..., T], *args: T) -> T:
    """``fn`` of the parts of words."""
    total = d.width(args[0])
    if width == total:
        return fn(*args)
    parts = [fn(*(d.extract(a, lo, width) for a in args)) for lo in range(0, total, width)]
    out = parts[0]
    for part in parts[1:]:
        out = d.concat(part, out)
    return out


def _extreme(d: Domain[T], x: View[T], signed: bool) -> Callable[[T, T], T]:
    """Minimum if Pp holds, otherwise maximum."""
    least = x.pred("Pp")
    low, high = (smin, smax) if signed else (umin, umax)

    def pick(a: T, b: T) -> T:
        return d.select(least, low(d, a, b), high(d, a, b))

    return pick


def _relu(d: Domain[T], x: View[T], value: T, signed: bool) -> T:
    if not x.has("RELU"):
        return value
    if not signed:
        raise NoSemantics("RELU of an unsigned number")
    return smax(d, value, d.const(0, d.width(value)))


def _type(x: View[T]) -> tuple[int, bool]:
    name = x.one_of(_PARTS)
    return _PARTS[name] if name else (32, not x.has("U32"))


def imnmx(d: Domain[T], x: View[T]) -> Results:
    """Pu: Ra was taken, or of parts the lowest was; Pv: of halves the high one was, otherwise as
    Pu."""
    width, signed = _type(x)
    if (x.wants("Pu") or x.wants("Pv")) and width in (8, 64):
        raise NoSemantics("predicates of this minimum")
    if width == 64 and not x.absent("Pq"):
        more = x.ins["Pq"]
        if not getattr(more, "is_false", False):
            raise NoSemantics("second predicate of a minimum")
    pick = _extreme(d, x, signed)
    word = 64 if width == 64 else 32
    a, b = x.integer("Ra", word), x.integer("Rb", word)

    def part(p: T, q: T) -> T:
        return _relu(d, x, pick(p, q), signed)

    out = _each(d, width, part, a, b)
    low, high = (
        d.eq(d.extract(out, lo, w), d.extract(a, lo, w))
        for lo, w in ((0, min(width, word)), (16 if width == 16 else 0, min(width, word)))
    )
    return {"Rd": out, "Pu": low, "Pv": high}


def vimnmx3(d: Domain[T], x: View[T]) -> Results:
    width, signed = _type(x)
    pick = _extreme(d, x, signed)

    def three(p: T, q: T, r: T) -> T:
        return _relu(d, x, pick(pick(p, q), r), signed)

    return {"Rd": _each(d, width, three, x.bits("Ra"), x.bits("Rb"), x.bits("Rc"))}


def _saturated(d: Domain[T], x: View[T]) -> T:
    """The exact sum of two signed words, at most 2**31 - 1 and at least -2**31."""
    if not x.has("S32"):
        raise NoSemantics("saturated parts")
    a, b = (d.sext(x.whole(role), 34) for role in ("Ra", "Rb"))
    a = neg(d, a) if x.flag("Ra", "neg") else a
    total = d.add(a, neg(d, b) if x.flag("Rb", "neg") else b)
    low, high = d.const(-(1 << 31), 34), d.const((1 << 31) - 1, 34)
    return d.extract(smax(d, smin(d, total, high), low), 0, 32)


def viadd(d: Domain[T], x: View[T]) -> Results:
    """Each part wraps; .ISAT saturates instead (PTX's add.sat.s32 and sub.sat.s32)."""
    if x.has("ISAT"):
        return {"Rd": _saturated(d, x)}
    width, _ = _type(x)
    a, b = x.whole("Ra"), x.whole("Rb")

    def part(p: T, q: T) -> T:
        p = neg(d, p) if x.flag("Ra", "neg") else p
        return d.add(p, neg(d, q) if x.flag("Rb", "neg") else q)

    return {"Rd": _each(d, width, part, a, b)}


def viaddmnmx(d: Domain[T], x: View[T]) -> Results:
    """The extreme of Ra + Rb, which wraps, and Rc."""
    width, signed = _type(x)
    pick = _extreme(d, x, signed)

    def part(p: T, q: T, r: T) -> T:
        total = d.add(p, neg(d, q) if x.flag("Rb", "neg") else q)
        return _relu(d, x, pick(total, r), signed)

    return {"Rd": _each(d, width, part, x.bits("Ra"), x.whole("Rb"), x.bits("Rc"))}


# --- sums of parts -----------------------------------------------------------------------------


def _distance(d: Domain[T], a: T, b: T, signed: bool) -> T:
    less = d.slt(a, b) if signed else d.ult(a, b)
    return d.select(less, d.sub(b, a), d.sub(a, b))


def vabsdiff(d: Domain[T], x: View[T]) -> Results:
    """Pu: the sum does not fit 32 bits."""
    diff = _distance(d, x.bits("Ra"), x.bits("Rb"), not x.has("U32"))
    total = d.add(diff, x.bits("Rc"))
    return {"Rd": total, "Pu": d.ult(total, diff)}


def vabsdiff4(d: Domain[T], x: View[T]) -> Results:
    """Byte by byte, packed, whatever Rc is; with .ACC their sum and Rc, and Pu its carry."""
    signed = not x.has("U8")

    def part(p: T, q: T) -> T:
        return _distance(d, p, q, signed)

    bytes_ = _each(d, 8, part, x.bits("Ra"), x.bits("Rb"))
    if not x.has("ACC"):
        return {"Rd": bytes_, "Pu": d.const(0, 1)}
    total = d.zext(x.bits("Rc"), _SUM_BITS)
    for lo in range(0, 32, 8):
        total = d.add(total, d.zext(d.extract(bytes_, lo, 8), _SUM_BITS))
    carry = d.not_(d.eq(d.extract(total, 32, 8), d.const(0, 8)))
    return {"Rd": d.extract(total, 0, 32), "Pu": carry}


def idp(d: Domain[T], x: View[T]) -> Results:
    """Dot products of bytes; .2A takes halves of Ra and two bytes of Rb."""
    sorts = [m for m in x.ins.modifiers if m in ("S8", "U8", "S16", "U16")]
    if len(sorts) != 2:
        raise NoSemantics("types of a dot product")
    wide_a = d.sext if sorts[0][0] == "S" else d.zext
    wide_b = d.sext if sorts[1][0] == "S" else d.zext
    step = int(sorts[0][1:])
    first = 2 if x.has("HI") else 0
    total = x.integer("Rc")
    a, b = x.bits("Ra"), x.bits("Rb")
    for i in range(32 // step):
        left = wide_a(d.extract(a, step * i, step), 32)
        right = wide_b(d.extract(b, 8 * (i + first), 8), 32)
        total = d.add(total, d.mul(left, right))
    return {"Rd": total}


_MINMAX = "U32 S32 16x2 U16x2 S16x2 U8x4 S8x4 U64 S64 RELU"


def rows() -> list[Semantics]:
    return [
        *uniform([
            row("IADD3", iadd3, "X 64"),
            row("IMAD", imad, "WIDE HI U32 X MOV SHL IADD"),
            row("LEA", lea, "HI X SX32"),
            row("IABS", iabs),
            row("IMNMX", imnmx, _MINMAX),
            row("VIMNMX", imnmx, _MINMAX),
            row("VIADD", viadd, "32 S32 16x2 S16x2 U8x4 S8x4 ISAT"),
        ]),
        row("IADD", iadd, "X 64"),
        row("VIMNMX3", vimnmx3, _MINMAX),
        row("VIADDMNMX", viaddmnmx, _MINMAX),
        row("VABSDIFF", vabsdiff, "U32"),
        row("VABSDIFF4", vabsdiff4, "U8 ACC"),
        row("IDP", idp, "4A 2A LO HI S8 U8 S16 U16"),
    ]  # fmt: skip
