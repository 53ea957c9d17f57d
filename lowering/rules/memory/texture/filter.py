"""Weighted sums of texels, as the filter of an H200 computes them (fixtures/textures).

Integers that represent fractions are summed exactly, in 16 bits, and rounded to 16 bits, ties
upwards.  Floats are aligned to the largest of those with a weight, truncated four bits below its
last one (towards 0), summed exactly, and rounded once, ties away from 0.  In a volume each of the
two layers is aligned separately; the sum of the smaller is then truncated downwards, three bits
below the unit of the greater.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.texture import table as word
from sassxlate.lowering.rules.memory.texture.table import Texture
from sassxlate.lowering.rules.memory.texture.texel import ALL
from sassxlate.lowering.target import NULL, ZERO

_QUIET_FLOAT, _QUIET_HALF = I(0x7FFFFFFF), I(0x7FFFE000)
_GUARD = 3  # bits below the unit, for a volume
_NAN, _INFINITE, _DENORMAL = 0x3, 0x204, 0x90


@dataclass(frozen=True, slots=True)
class Blend:
    """The operands of the summing code: one channel of each corner's texel, the weights in
    1/256, the result (in place of the first texel)."""

    texels: tuple[V, ...]
    weights: tuple[V, ...]

    @property
    def out(self) -> V:
        return self.texels[0]


def blend(t: Texture, b: Blend) -> None:
    """The sum of one channel, in the program's format."""
    c = t.c
    integers, done = c.k.label("Lintegers"), c.k.label("Lblended")
    with c.scope():
        c.emit("s_cmp_eq_u32", t.field(word.KIND), I(word.NORMALISED))
    c.branch("s_cbranch_scc1", integers)
    with c.scope():
        _floats(t, b)
    c.branch("s_branch", done)
    c.mark(integers)
    with c.scope():
        total, bytes_, mask = c.vtemp(), c.vtemp(), t.field(word.ADJUST)
        c.emit("v_mov_b32", total, ZERO)
        for texel, weight in zip(b.texels, b.weights, strict=True):
            c.emit("v_mad_i32_i24", total, texel, weight, total)
        spread(c, bytes_, total)
        c.emit("v_add_nc_u32", total, I(128), total)
        c.emit("v_ashrrev_i32", total, I(8), total)
        c.emit("v_cndmask_b32", b.out, total, bytes_, mask)
        fraction(t, b.out)
    c.mark(done)


def spread(c: RuleEmitter, out: V, total: V) -> None:
    """A sum of signed bytes whose weights add up to 256, as a 16-bit number (measured)."""
    c.emit("v_ashrrev_i32", out, I(12), total)
    c.emit("v_lshlrev_b32", out, I(4), out)
    c.emit("v_add_nc_u32", out, out, total)
    c.emit("v_add_nc_u32", out, I(64), out)
    c.emit("v_ashrrev_i32", out, I(7), out)
    c.emit("v_add_nc_u32", out, out, total)


def fraction(t: Texture, value: V) -> None:
    """An integer over the greatest one; the least integer of all means -1, like its neighbour."""
    c = t.c
    with c.scope():
        divisor, inverse = t.field(word.DIVISOR), t.field(word.RECIPROCAL)
        number, rest = c.vtemp(), c.vtemp()
        c.emit("v_max_i32", value, t.field(word.LOWEST), value)
        c.emit("v_cvt_f32_i32", number, value)
        c.emit("v_mul_f32", value, inverse, number)
        # One step of Newton's rounds the quotients of all 2^16 numerators as a division does.
        c.emit("v_fma_f32", rest, value, c.to_v(divisor), number, neg=1)
        c.emit("v_fma_f32", value, rest, c.to_v(inverse), value)


def _floats(t: Texture, b: Blend) -> None:
    c = t.c
    special, signs = c.vtemp(), c.vtemp()
    parts = [c.vtemp(2) for _ in range(0, len(b.texels), 4)]
    tops = [c.vtemp() for _ in parts]
    c.emit("v_mov_b32", special, ZERO)
    c.emit("v_mov_b32", signs, ALL)
    with c.scope():
        mask, product = c.stemp(), c.vtemp()
        for texel, weight in zip(b.texels, b.weights, strict=True):
            with c.scope():  # an infinity counts even if its weight was rounded to 0
                c.emit("v_max_u32", product, I(1), weight)
                c.emit("v_cvt_f32_u32", product, product)
                c.emit("v_mul_f32", product, I(0x3B800000), product)
                c.emit("v_cmp_class_f32", mask, texel, c.to_v(I(_NAN | _INFINITE)))
                c.emit("v_cndmask_b32", product, c.to_v(ZERO), product, mask)
                endless = c.vtemp()
                c.emit("v_cndmask_b32", endless, c.to_v(ZERO), texel, mask)
                c.emit("v_fma_f32", special, product, endless, special)
            c.emit("v_cmp_eq_u32", mask, ZERO, weight)
            c.emit("v_and_b32", product, texel, signs)
            c.emit("v_cndmask_b32", signs, product, signs, mask)
            c.emit("v_cndmask_b32", texel, texel, c.to_v(ZERO), mask)
    for n, (total, top) in enumerate(zip(parts, tops, strict=True)):
        _aligned(t, b.texels[4 * n : 4 * n + 4], b.weights[4 * n : 4 * n + 4], total, top)
    sum_, top = (parts[0], tops[0]) if len(parts) == 1 else _together(c, parts, tops)
    guard = 0 if len(parts) == 1 else _GUARD
    with c.scope():
        _rounded(t, sum_, top, guard, signs, b.out)
    with c.scope():
        mask, quiet = c.stemp(), c.stemp()
        c.emit("v_cmp_class_f32", mask, special, c.to_v(I(_INFINITE)))
        c.emit("v_cndmask_b32", b.out, b.out, special, mask)
        c.emit("s_cmp_eq_u32", t.field(word.KIND), I(word.HALF))
        c.emit("s_cselect_b32", quiet, _QUIET_HALF, _QUIET_FLOAT)
        c.emit("v_cmp_class_f32", mask, special, c.to_v(I(_NAN)))
        c.emit("v_cndmask_b32", b.out, b.out, c.to_v(quiet), mask)


def _bits(t: Texture) -> S:
    """The number of bits of a texel that count, from the first bit of the largest one."""
    c = t.c
    out = c.stemp()
    with c.scope():
        c.emit("s_cmp_eq_u32", t.field(word.KIND), I(word.HALF))
    c.emit("s_cselect_b32", out, I(15), I(28))
    return out


def _aligned(t: Texture, texels: Sequence[V], weights: Sequence[V], total: V, top: V) -> None:
    """The sum as an integer of 2^(top - 126 - bits - 8); ``top``: the largest biased exponent."""
    c = t.c
    with c.scope():
        word_, shift, mask = c.vtemp(), c.vtemp(), c.stemp()
        c.emit("v_mov_b32", top, ZERO)
        for texel in texels:
            c.emit("v_and_b32", word_, I(0x7FFFFFFF), texel)
            c.emit("v_max_u32", top, top, word_)
        c.emit("v_lshrrev_b32", top, I(23), top)
        c.emit("v_subrev_nc_u32", shift, top, c.to_v(I(126)))
        c.emit("v_add_nc_u32", shift, _bits(t), shift)
        for part in range(2):
            c.emit("v_mov_b32", V(total.index + part), ZERO)
        other = c.vtemp(2)
        here, there = total, other
        for texel, weight in zip(texels, weights, strict=True):
            c.emit("v_cmp_class_f32", mask, texel, c.to_v(I(_DENORMAL)))
            c.emit("v_cndmask_b32", word_, texel, c.to_v(ZERO), mask)
            c.emit("v_ldexp_f32", word_, word_, shift)
            c.emit("v_cvt_i32_f32", word_, word_)
            c.emit("v_mad_i64_i32", there, NULL, word_, weight, here)
            here, there = there, here
        if here != total:
            _copy(c, total, here)


def _copy(c: RuleEmitter, to: V, source: V) -> None:
    for part in range(2):
        c.emit("v_mov_b32", V(to.index + part), V(source.index + part))


def _together(c: RuleEmitter, parts: list[V], tops: list[V]) -> tuple[V, V]:
    """The sum of both layers, with guard bits, and the exponent that it has."""
    out, top = c.vtemp(2), c.vtemp()
    with c.scope():
        c.emit("v_max_u32", top, tops[0], tops[1])
        down = c.vtemp()
        for part, own in zip(parts, tops, strict=True):
            c.emit("v_sub_nc_u32", down, top, own)
            c.emit("v_min_u32", down, I(63), down)
            c.raw(Inst("v_lshlrev_b64", (out, I(_GUARD), part)))
            c.raw(Inst("v_ashrrev_i64", (part, down, out)))
        carry = c.stemp()
        c.emit("v_add_co_u32", V(out.index), carry, V(parts[0].index), V(parts[1].index))
        c.emit(
            "v_add_co_ci_u32",
            V(out.index + 1), NULL, V(parts[0].index + 1), V(parts[1].index + 1), carry,
        )  # fmt: skip
    return out, top


def _rounded(t: Texture, total: V, top: V, guard: int, signs: V, out: V) -> None:
    """The nearest float or half, ties away from 0; values below the smallest float are 0."""
    c = t.c
    wide, low, scale, mask = c.vtemp(2), c.vtemp(2), c.vtemp(), c.stemp()
    c.emit("v_cvt_f64_i32", wide, V(total.index + 1))
    c.emit("v_ldexp_f64", wide, wide, c.to_v(I(32)))
    c.emit("v_cvt_f64_u32", low, V(total.index))
    c.emit("v_add_f64", wide, wide, low)
    # The sum has fewer bits than a double: the next double away from 0 is nearer to what a tie
    # rounds to, and changes nothing else.
    c.emit("v_or_b32", scale, V(total.index), V(total.index + 1))
    c.emit("v_cmp_ne_u32", mask, ZERO, scale)
    c.emit("v_cndmask_b32", scale, ZERO, I(1), mask)
    c.emit("v_or_b32", V(wide.index), scale, V(wide.index))
    c.emit("v_subrev_nc_u32", scale, _bits(t), top)
    c.emit("v_add_nc_u32", scale, I((-126 - 8 - guard) & 0xFFFFFFFF), scale)
    c.emit("v_ldexp_f64", wide, wide, scale)
    single, done = c.k.label("Lsingle"), c.k.label("Lrounded")
    with c.scope():
        c.emit("s_cmp_lg_u32", t.field(word.KIND), I(word.HALF))
    c.branch("s_cbranch_scc1", single)
    _to_half(c, wide, out)
    c.branch("s_branch", done)
    c.mark(single)
    c.emit("v_cvt_f32_f64", out, wide)
    c.emit("v_cmp_class_f32", mask, out, c.to_v(I(_DENORMAL)))
    c.emit("v_and_b32", scale, I(0x80000000), out)
    c.emit("v_cndmask_b32", out, out, scale, mask)
    c.mark(done)
    # A sum of negative zeros only is a negative zero.
    with c.scope():
        both = c.vtemp()
        c.emit("v_or_b32", both, V(total.index), V(total.index + 1))
        c.emit("v_cmp_eq_u32", mask, ZERO, both)
        c.emit("v_and_b32", both, I(0x80000000), signs)
        c.emit("v_cndmask_b32", out, out, both, mask)


def _to_half(c: RuleEmitter, wide: V, out: V) -> None:
    """A double that is not a tie between halves, by way of a float rounded to odd if inexact."""
    with c.scope():
        back, mask, odd = c.vtemp(2), c.stemp(), c.vtemp()
        c.raw(Inst("s_round_mode", (), imm=0xF))  # towards 0
        c.emit("v_cvt_f32_f64", out, wide)
        c.raw(Inst("s_round_mode", (), imm=0x0))
        c.emit("v_cvt_f64_f32", back, out)
        c.emit("v_cmp_neq_f64", mask, back, wide)
        c.emit("v_or_b32", odd, I(1), out)
        c.emit("v_cndmask_b32", out, out, odd, mask)
        c.emit("v_cvt_f16_f32", out, out)
        c.emit("v_cvt_f32_f16", out, out)
