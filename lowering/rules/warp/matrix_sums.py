"""The parts of HMMA's sums: exponents, terms as integers, results, infinities and NaN.

A group of products and an addend are added as :mod:`.matrix_float` describes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, S, V
from sassxlate.disasm.sass.semantics.warp.matrix_formats import Core
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.arithmetic.modes import rounding
from sassxlate.lowering.rules.warp.matrix import of_column, of_quad
from sassxlate.lowering.target import ZERO

_CLASS = I(0x207)  # v_cmp_class: infinities and NaN
_KEPT = I(0xE0000000)  # mask of binary64's low word: the bits in binary32's mantissa
_MASKED = I(0x1FFFFFFF)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of elements.

    As an integer, an exponent is ``max(field, 1)``, plus ``flag`` if the element is not zero,
    so nonzero products have the largest sums.
    """

    each: int  # elements per word
    mantissa: int  # number of mantissa bits
    keep: int  # mask of a word without signs
    infinite: int  # pattern of infinity
    flag: int
    bias: int

    @property
    def offset(self) -> int:
        """Excess of the sum of two integers over the sum of two exponents."""
        return 2 * self.flag + 2 * self.bias


F16 = Kind(2, 10, 0x7FFF7FFF, 0x7C00, 256, 15)
BF16 = Kind(2, 7, 0x7FFF7FFF, 0x7F80, 512, 127)
TF32 = Kind(1, 23, 0x7FFFE000, 0x7F800000, 512, 127)


@dataclass(frozen=True, slots=True)
class Product:
    """State shared by the steps of one instruction.

    ``a`` and ``b`` are this lane's words of A and B, ``ea`` and ``eb`` their exponents; register
    2 i + h of A has words 4 i to 4 i + 3 of row g + 8 h, register i of B those of a column.  The
    four results of a lane are those of (row, column) (0, 0), (0, 1), (1, 0) and (1, 1).
    """

    c: RuleEmitter
    kind: Kind
    half: bool  # addend and result are binary16
    core: Core
    base: V
    a: list[V]
    b: list[V]
    ea: list[V]
    eb: list[V]
    special: S  # lanes with an infinity or NaN in their words

    def left(self, words: Sequence[V], k: int) -> Iterator[tuple[int, V]]:
        """Word ``k`` of both rows."""
        for row in (0, 1):
            yield row, of_quad(self.c, words[k // 4 * 2 + row], k % 4)

    def right(self, words: Sequence[V], group: range) -> list[list[V]]:
        """The words of a group, each of both columns."""
        c = self.c
        return [[of_column(c, self.base, words[k // 4], n, k % 4) for n in (0, 1)] for k in group]


# --- exponents ------------------------------------------------------------------------------------


def _both(kind: Kind, value: int) -> I:
    return I(value | value << 16) if kind.each == 2 else I(value)


def exponents(
    c: RuleEmitter, kind: Kind, words: Sequence[V], largest: V | None, least: int = 1
) -> tuple[list[V], V]:
    """The exponents of the elements of registers, and the largest magnitude among all so far.

    ``least`` is the field of the smallest exponent: for numbers that were bytes it is not 1.
    """
    out = [c.vtemp() for _ in words]
    packed = kind.each == 2
    most = "v_pk_max_u16" if packed else "v_max_u32"
    peak = largest or c.vtemp()
    with c.scope():
        size, one, shift, flag = (c.vtemp() for _ in range(4))
        for temp, value in ((one, 1), (shift, kind.mantissa), (flag, kind.flag)):
            c.emit("v_mov_b32", temp, _both(kind, value))
        floor = one
        if least != 1:
            floor = c.vtemp()
            c.emit("v_mov_b32", floor, _both(kind, least))
        for n, (field, word) in enumerate(zip(out, words, strict=True)):
            c.emit("v_and_b32", size, I(kind.keep), word)
            if n or largest:
                c.emit(most, peak, peak, size)
            else:
                c.emit("v_mov_b32", peak, size)
            c.emit("v_pk_lshrrev_b16" if packed else "v_lshrrev_b32", field, shift, size)
            c.emit(most, field, field, floor)
            c.emit("v_pk_min_u16" if packed else "v_min_u32", size, size, one)
            c.emit("v_pk_mad_u16" if packed else "v_mad_u32_u24", field, size, flag, field)
    return out, peak


def specials(c: RuleEmitter, kind: Kind, peak: V) -> S:
    """The mask of lanes in which some value is an infinity or NaN, by the largest magnitude."""
    out = c.stemp()
    with c.scope():
        most = peak
        if kind.each == 2:
            most, high = c.vtemp(), c.vtemp()
            c.emit("v_lshrrev_b32", high, I(16), peak)
            c.emit("v_and_b32", most, I(0xFFFF), peak)
            c.emit("v_max_u32", most, most, high)
        c.emit("v_cmp_le_u32", out, I(kind.infinite), most)
    return out


def _of_addend(p: Product, word: V) -> V:
    """The exponent of an addend, on the scale of the products'."""
    c, out = p.c, p.c.vtemp()
    mantissa, width, bias = (10, 5, 15) if p.half else (23, 8, 127)
    c.emit("v_bfe_u32", out, word, I(mantissa), I(width))
    c.emit("v_max_u32", out, I(1), out)
    c.emit("v_add_nc_u32", out, I(p.kind.offset - bias), out)
    if p.kind is F16 and not p.half:
        return out  # zero's is already less than any product's
    with c.scope():
        size, zero = c.vtemp(), c.stemp()
        c.emit("v_and_b32", size, I(0x7FFF if p.half else 0x7FFFFFFF), word)
        c.emit("v_cmp_eq_u32", zero, ZERO, size)
        c.emit("v_mov_b32", size, I(2 * p.kind.flag + 2))
        c.emit("v_cndmask_b32", out, out, size, zero)
    return out


def parts(group: range) -> list[range]:
    """A group as ranges of at most eight words, whose words fit into registers and whose sums into
    32 bits."""
    return [range(at, min(at + 8, group.stop)) for at in range(group.start, group.stop, 8)]


def shifts_of(p: Product, group: range, addends: Sequence[V]) -> list[V]:
    """For each result, the power of two that scales the terms before they are truncated."""
    c, packed = p.c, p.kind.each == 2
    add, most = ("v_pk_add_u16", "v_pk_max_u16") if packed else ("v_add_nc_u32", "v_max_u32")
    out = [c.vtemp() for _ in range(4)]
    for part in parts(group):
        with c.scope():
            right = p.right(p.eb, part)
            for n, k in enumerate(part):
                with c.scope():
                    for row, word in p.left(p.ea, k):
                        for column in (0, 1):
                            top = out[2 * row + column]
                            first = k == group.start
                            term = top if first else c.vtemp()
                            c.emit(add, term, word, right[n][column])
                            if not first:
                                c.emit(most, top, top, term)
    for top, word in zip(out, addends, strict=True):
        with c.scope():
            exponent = _of_addend(p, word)
            if packed:
                high = c.vtemp()
                c.emit("v_lshrrev_b32", high, I(16), top)
                c.emit("v_and_b32", top, I(0xFFFF), top)
                c.emit("v_max3_u32", top, top, high, exponent)
            else:
                c.emit("v_max_u32", top, top, exponent)
            c.emit("v_sub_nc_u32", top, I(p.core.extra + p.kind.offset), top)
    return out


# --- terms ----------------------------------------------------------------------------------------


def sums_of(p: Product, group: range, shifts: Sequence[V]) -> list[V]:
    """The integer sums of products of halves."""
    c = p.c
    out = [c.vtemp() for _ in range(4)]
    with c.scope():
        scales = [c.vtemp() for _ in shifts]
        for scale, shift in zip(scales, shifts, strict=True):
            c.emit("v_lshl_add_u32", scale, shift, I(23), I(0x3F800000))
        right = p.right(p.b, group)
        for n, k in enumerate(group):
            with c.scope():
                for row, word in p.left(p.a, k):
                    for column in (0, 1):
                        at = 2 * row + column
                        parts = [c.vtemp(), c.vtemp()]
                        for high, term in enumerate(parts):
                            c.emit("v_fma_mix_f32", term, word, right[n][column], ZERO,
                                   op_sel=3 * high, op_sel_hi=3)  # fmt: skip
                            c.emit("v_mul_f32", term, term, scales[at])
                            c.emit("v_cvt_i32_f32", term, term)
                        _added(c, out[at], parts, first=n == 0)
    return out


def _added(c: RuleEmitter, total: V, terms: Sequence[V], *, first: bool) -> None:
    if first and len(terms) == 1:
        c.emit("v_mov_b32", total, terms[0])
    elif first or len(terms) == 1:
        c.emit("v_add_nc_u32", total, terms[0], total if len(terms) == 1 else terms[1])
    else:
        c.emit("v_add3_u32", total, total, *terms)


def _elements(p: Product, word: V) -> list[V]:
    """The elements of a word of BF16 or TF32, as binary64."""
    c = p.c
    out = [c.vtemp(2) for _ in range(p.kind.each)]
    for i, pair in enumerate(out):
        single = word
        if p.kind.each == 2:
            single = V(pair.index)
            if i:
                c.emit("v_and_b32", single, I(0xFFFF0000), word)
            else:
                c.emit("v_lshlrev_b32", single, I(16), word)
        c.emit("v_cvt_f64_f32", pair, single)
    return out


def scale64(c: RuleEmitter, shift: V) -> V:
    """Two to the ``shift`` as binary64."""
    pair = c.vtemp(2)
    c.emit("v_mov_b32", V(pair.index), ZERO)
    c.emit("v_lshl_add_u32", V(pair.index + 1), shift, I(20), I(0x3FF00000))
    return pair


def sums64(p: Product, group: range, scales: Sequence[V]) -> list[V]:
    """The integer sums of products whose exponents binary32 has no room for."""
    c = p.c
    out = [c.vtemp() for _ in range(4)]
    with c.scope():
        words = p.right(p.b, group)
        for n, k in enumerate(group):
            with c.scope():
                right = [_elements(p, word) for word in words[n]]
                for row, word in p.left(p.a, k):
                    left = _elements(p, word)
                    for column in (0, 1):
                        at = 2 * row + column
                        terms: list[V] = []
                        for x, y in zip(left, right[column], strict=True):
                            term = c.vtemp(2)
                            c.emit("v_mul_f64", term, x, y)
                            c.emit("v_mul_f64", term, term, scales[at])
                            c.emit("v_cvt_i32_f64", V(term.index), term)
                            terms.append(V(term.index))
                        _added(c, out[at], terms, first=n == 0)
    return out


# --- results --------------------------------------------------------------------------------------


def narrow(p: Product, totals: Sequence[V], shift: V, word: V, out: V, *, many: bool) -> None:
    """Adds the addend to the sums of products of halves, and rounds.

    With ``many`` terms the sum has more than 32 bits.  Neither the integer nor the result is
    denormal, unless all products are zero, and then nothing is cut.
    """
    total, *others = totals
    c = p.c
    with c.scope():
        last, pair = c.vtemp(), c.vtemp(2)
        low = V(pair.index)
        if p.half:
            c.emit("v_cvt_f32_f16", last, word)
            c.emit("v_ldexp_f32", last, last, shift)
        else:
            c.emit("v_ldexp_f32", last, word, shift)
        c.emit("v_cvt_i32_f32", last, last)
        if many:
            more = c.vtemp(2)
            c.emit("v_cvt_f64_i32", pair, total)
            c.emit("v_cvt_f64_i32", more, last)
            c.emit("v_add_f64", pair, pair, more)
            for other in others:
                c.emit("v_cvt_f64_i32", more, other)
                c.emit("v_add_f64", pair, pair, more)
        else:
            for some in totals:
                c.emit("v_add_nc_u32", last, last, some)
            c.emit("v_cvt_f64_i32", pair, last)
        if p.half:  # a sticky bit for the second rounding
            c.emit("v_and_b32", last, _MASKED, low)
            c.emit("v_min_u32", last, I(1), last)
            c.emit("v_lshl_or_b32", low, last, I(29), low)
        if p.core.kept < 20 and not p.half:
            high = V(pair.index + 1)
            c.emit("v_and_b32", high, I(0x100000000 - (1 << 20 - p.core.kept)), high)
            c.emit("v_mov_b32", low, ZERO)
        else:
            c.emit("v_and_b32", low, _KEPT, low)
        c.emit("v_cvt_f32_f64", out, pair)
        c.emit("v_sub_nc_u32", last, ZERO, shift)
        c.emit("v_ldexp_f32", out, out, last)
        if p.half:
            c.emit("v_cvt_f16_f32", out, out)
            c.emit("v_add_f16", out, ZERO, out)  # no negative zero


def wide(p: Product, total: V, scale: V, word: V, out: V) -> None:
    """The same for results that may be denormal or too large."""
    c = p.c
    with c.scope():
        last, pair, back = c.vtemp(2), c.vtemp(2), c.vtemp(2)
        high = V(pair.index + 1)
        c.emit("v_cvt_f64_f32", last, word)
        c.emit("v_mul_f64", last, last, scale)
        c.emit("v_trunc_f64", last, last)
        c.emit("v_cvt_f64_i32", pair, total)
        c.emit("v_add_f64", pair, pair, last)
        c.emit("v_mov_b32", V(back.index), ZERO)
        c.emit("v_sub_nc_u32", V(back.index + 1), I(0x7FE00000), V(scale.index + 1))
        c.emit("v_mul_f64", pair, pair, back)
        with rounding(c, "RZ"):
            c.emit("v_cvt_f32_f64", out, pair)
        large, size = c.stemp(), V(last.index)
        c.emit("v_and_b32", size, I(0x7FFFFFFF), high)
        c.emit("v_cmp_le_u32", large, I(0x47F00000), size)  # from 2**128 on
        c.emit("v_cndmask_b32", size, ZERO, I(1), large)
        c.emit("v_add_nc_u32", out, out, size)  # infinity follows the largest number
        c.emit("v_add_f32", out, ZERO, out)  # no negative zero


# --- infinities and NaN ---------------------------------------------------------------------------


def correct(p: Product, group: range, addends: Sequence[V], out: Sequence[V]) -> None:
    """Repairs the results that an infinity or NaN contributes to, if a lane of the wave has one."""
    c = p.c
    test = "v_cmp_class_f16" if p.half else "v_cmp_class_f32"
    odd = [c.stemp() for _ in addends]
    found = c.stemp()
    for mask, word in zip(odd, addends, strict=True):
        c.emit(test, mask, word, _CLASS)
    c.emit("s_or_b32", found, p.special, odd[0])
    for mask in odd[1:]:
        c.emit("s_or_b32", found, found, mask)
    none = c.k.label("Lfinite")
    c.emit("s_cmp_eq_u32", found, ZERO)
    c.branch("s_cbranch_scc1", none)
    narrow = p.kind is F16
    with c.scope():
        n = 1 if narrow else 2
        totals = [c.vtemp(n) for _ in out]
        for total in totals:
            for i in range(n):
                c.emit("v_mov_b32", V(total.index + i), ZERO)
        for part in parts(group):
            with c.scope():
                right = p.right(p.b, part)
                for n, k in enumerate(part):
                    with c.scope():
                        for row, word in p.left(p.a, k):
                            for column in (0, 1):
                                _plain(p, totals[2 * row + column], word, right[n][column])
        for at, total in enumerate(totals):
            with c.scope():
                _corrected(p, total, addends[at], out[at], odd[at])
    c.mark(none)


def _plain(p: Product, total: V, a: V, b: V) -> None:
    """Adds the products of two words as IEEE does, in a format that has room for finite ones."""
    c = p.c
    if p.kind is F16:
        for high in (0, 3):
            c.emit("v_fma_mix_f32", total, a, b, total, op_sel=high, op_sel_hi=3)
        return
    with c.scope():
        for x, y in zip(_elements(p, a), _elements(p, b), strict=True):
            c.emit("v_fma_f64", total, x, y, total)


def _corrected(p: Product, total: V, word: V, out: V, odd: S) -> None:
    """``odd``: the lanes whose addend is an infinity or NaN."""
    c = p.c
    narrow = p.kind is F16
    also, last = c.stemp(), c.vtemp(total.n)
    c.emit("v_cmp_class_f32" if narrow else "v_cmp_class_f64", also, total, _CLASS)
    c.emit("s_or_b32", odd, odd, also)
    if narrow:
        if p.half:
            c.emit("v_cvt_f32_f16", last, word)
            c.emit("v_add_f32", last, last, total)
            c.emit("v_cvt_f16_f32", last, last)
        else:
            c.emit("v_add_f32", last, word, total)
    else:
        c.emit("v_cvt_f64_f32", last, word)
        c.emit("v_add_f64", last, last, total)
        c.emit("v_cvt_f32_f64", V(last.index), last)
    single, nan = V(last.index), c.vtemp()
    c.emit("v_cmp_u_f16" if p.half else "v_cmp_u_f32", also, single, single)
    c.emit("v_mov_b32", nan, I(0x7FFF if p.half else 0x7FFFFFFF))
    c.emit("v_cndmask_b32", single, single, nan, also)
    c.emit("v_cndmask_b32", out, out, single, odd)
