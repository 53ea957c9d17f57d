"""Maps the coordinates of a read to texel numbers and weights.

As measured on an H200 (fixtures/textures).  A coordinate becomes a fixed-point number, rounded
down: normalised ones with 21 bits of fraction (22 along axes of more than 16,383 texels), which are
then multiplied by the size.  A NaN and a denormal become 0.  A linear filter
rounds to 1/256 of a texel, ties upwards, after half a texel was subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.texture import table as word
from sassxlate.lowering.rules.memory.texture.table import Texture
from sassxlate.lowering.target import NULL, ZERO

_HALF_F, _TWO, _FOUR = I(0x3F000000), I(0x40000000), I(0x40800000)
_NO_NUMBER = 0x93  # v_cmp_class_f32: not a number, and denormal


@dataclass(frozen=True, slots=True)
class Along:
    """The result along one axis: the two texels' numbers, the second's weight in 1/256, and for
    each whether it is outside of a texture with a border (not 0)."""

    numbers: tuple[V, V]
    weight: V
    outside: tuple[V, V]


def along(t: Texture, axis: int, coordinate: V, *, face: bool, gather: bool) -> Along:
    """``face``: the coordinate goes from -1 to 1.  ``gather``: four texels whatever the filter."""
    c = t.c
    result = Along((c.vtemp(), c.vtemp()), c.vtemp(), (c.vtemp(), c.vtemp()))
    first, second = result.numbers
    with c.scope():
        whole = c.vtemp()
        _fixed(t, axis, coordinate, whole, face=face)
        with c.scope():
            product, bits, half = c.vtemp(2), t.axis(axis, word.BITS), c.stemp()
            c.emit("v_mov_b32", V(product.index + 1), ZERO)
            if gather:
                c.emit("v_mov_b32", V(product.index), t.axis(axis, word.ROUND))
                c.emit("s_mov_b32", half, I(128))
            else:
                linear = t.field(word.LINEAR)
                c.emit("s_and_b32", half, linear, t.axis(axis, word.ROUND))
                c.emit("v_mov_b32", V(product.index), half)
                c.emit("s_and_b32", half, linear, I(128))
            total = c.vtemp(2)
            factor = c.to_v(t.axis(axis, word.FACTOR))
            c.emit("v_mad_i64_i32", total, NULL, whole, factor, product)
            c.emit("v_ashrrev_i64", product, bits, total)
            c.emit("v_subrev_nc_u32", whole, half, V(product.index))
        c.emit("v_and_b32", result.weight, I(255), whole)
        c.emit("v_ashrrev_i32", first, I(8), whole)
    c.emit("v_add_nc_u32", second, I(1), first)
    for number, flag in zip(result.numbers, result.outside, strict=True):
        _inside(t, axis, number, flag)
    with c.scope():  # beyond the edge of a clamped axis both are one texel, and nothing is blended
        same, clamped = c.stemp(), t.axis(axis, word.CLAMP)
        c.emit("v_cmp_eq_u32", same, first, second)
        c.emit("s_and_b32", same, same, clamped)
        c.emit("v_cndmask_b32", result.weight, result.weight, c.to_v(ZERO), same)
    return result


def _fixed(t: Texture, axis: int, coordinate: V, out: V, *, face: bool) -> None:
    """The coordinate as an integer in units of 2^-21, 2^-22 or (not normalised) 2^-12; reduced to
    its period if the texture repeats."""
    c = t.c
    with c.scope():
        x, other, mask = c.vtemp(), c.vtemp(), c.stemp()
        c.emit("v_cmp_class_f32", mask, coordinate, c.to_v(I(_NO_NUMBER)))
        c.emit("v_cndmask_b32", x, coordinate, c.to_v(ZERO), mask)
        if not face:
            # Beyond 4 every number is a multiple of 2^-21, and its remainder modulo 2 is exact.
            rest, limit = c.vtemp(), t.axis(axis, word.LIMIT)
            c.emit("v_mul_f32", rest, _HALF_F, x)
            c.emit("v_fract_f32", rest, rest)
            c.emit("v_mul_f32", rest, _TWO, rest)
            c.emit("v_cmp_ge_f32", mask, x, c.to_v(_FOUR), abs=1)
            c.emit("v_cndmask_b32", rest, x, rest, mask)
            c.emit("v_min_f32", other, limit, x)
            c.emit("v_mul_f32", x, I(0xBF800000), c.to_v(limit))
            c.emit("v_max_f32", other, x, other)
            c.emit("v_cndmask_b32", x, other, rest, t.axis(axis, word.PERIODIC))
        c.emit("v_mul_f32", x, t.axis(axis, word.SCALE), x)
        if face:
            c.emit("v_mul_f32", x, _HALF_F, x)
        c.emit("v_floor_f32", x, x)
        c.emit("v_cvt_i32_f32", out, x)
        if face:
            with c.scope():
                one = c.stemp()
                c.emit("s_add_u32", one, t.axis(axis, word.BITS), I(7))
                c.emit("s_lshl_b32", one, I(1), one)
                c.emit("v_add_nc_u32", out, one, out)
        c.emit("v_and_b32", out, t.axis(axis, word.PERIOD), out)


def _inside(t: Texture, axis: int, number: V, flag: V) -> None:
    """Brings a number into the axis; ``flag``: whether the border's colour replaces it."""
    c = t.c
    with c.scope():
        size, last = t.axis(axis, word.SIZE), c.stemp()
        low, high, mask = c.stemp(), c.stemp(), c.stemp()
        there, other = c.vtemp(), c.vtemp()
        c.emit("s_sub_u32", last, size, I(1))
        c.emit("v_cmp_gt_i32", low, ZERO, number)
        c.emit("v_cmp_lt_i32", high, c.to_v(last), number)
        with c.scope():  # wraps around: only for the neighbours of texels inside
            c.emit("v_add_nc_u32", other, size, number)
            c.emit("v_cndmask_b32", there, number, other, low)
            c.emit("v_subrev_nc_u32", other, size, number)
            c.emit("v_cndmask_b32", there, there, other, high)
            c.emit("v_cndmask_b32", there, number, there, t.axis(axis, word.WRAP))
        with c.scope():  # mirrored: numbers up to twice the size, and their neighbours
            mirror = t.axis(axis, word.MIRROR)
            c.emit("s_and_b32", low, low, mirror)
            c.emit("s_and_b32", high, high, mirror)
            c.emit("v_not_b32", other, number)
            c.emit("v_cndmask_b32", there, there, other, low)
            c.emit("s_lshl_b32", mask, size, I(1))
            c.emit("v_add_nc_u32", other, mask, other)
            c.emit("v_cndmask_b32", there, there, other, high)
        c.emit("v_max_i32", number, ZERO, there)
        c.emit("v_min_i32", number, last, number)
        c.emit("v_cmp_ne_u32", mask, number, there)
        c.emit("s_and_b32", mask, mask, t.axis(axis, word.BORDER_MODE))
        c.emit("v_cndmask_b32", flag, ZERO, I(1), mask)


def layer_of(t: Texture, number: V) -> V:
    """The number of a layer (or cube), which is clamped to the last."""
    c = t.c
    out = c.vtemp()
    with c.scope():
        last = t.field(word.LAYERS)
        c.emit("s_sub_u32", last, last, I(1))
        c.emit("v_min_u32", out, last, number)
    return out


def exactly(t: Texture, axis: int, number: V, outside: V) -> V:
    """A texel given by its number; adds to ``outside`` whether it does not exist."""
    c = t.c
    out = c.vtemp()
    with c.scope():
        size, mask, flag = t.axis(axis, word.SIZE), c.stemp(), c.vtemp()
        c.emit("v_cmp_le_u32", mask, size, number)
        c.emit("v_cndmask_b32", out, number, c.to_v(ZERO), mask)
        c.emit("v_cndmask_b32", flag, ZERO, I(1), mask)
        c.emit("v_or_b32", outside, outside, flag)
    return out


def weights(c: RuleEmitter, axes: list[Along]) -> list[V]:
    """The weights of the corners in 1/256; bit n of a corner's number takes axis n's second texel.

    They are rounded so that their sum is 256: first along z and x, then along y; at ties the left
    half is rounded down, the right half up.
    """
    wx = axes[0].weight
    out = [c.vtemp() for _ in range(1 << len(axes))]
    with c.scope():
        whole = c.to_v(I(256))
        for z in range(2 if len(axes) == 3 else 1):
            with c.scope():
                share, right, left = whole, wx, c.vtemp()
                if len(axes) == 3:
                    share, right = axes[2].weight, c.vtemp()
                    if z == 0:
                        share = c.vtemp()
                        c.emit("v_sub_nc_u32", share, whole, axes[2].weight)
                    c.emit("v_mad_u32_u24", right, wx, share, c.to_v(I(128)))
                    c.emit("v_lshrrev_b32", right, I(8), right)
                c.emit("v_sub_nc_u32", left, share, right)
                if len(axes) == 1:
                    c.emit("v_mov_b32", out[0], left)
                    c.emit("v_mov_b32", out[1], right)
                    continue
                for x, (part, half) in enumerate(((left, 127), (right, 128))):
                    upper, lower = out[4 * z + x], out[4 * z + 2 + x]
                    c.emit("v_mad_u32_u24", lower, part, axes[1].weight, c.to_v(I(half)))
                    c.emit("v_lshrrev_b32", lower, I(8), lower)
                    c.emit("v_sub_nc_u32", upper, part, lower)
    return out
