"""One texel: its place in memory, its load, and its channels in the program's format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3.instruction import I, Inst, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.texture import table as word
from sassxlate.lowering.rules.memory.texture.table import Texture
from sassxlate.lowering.target import ZERO

ALL = I(0xFFFFFFFF)
_LOADS = ("u8", "u16", "b32", "b64", "b128")  # by the log2 of a texel's bytes
_CHANNEL_BITS = (8, 16, 32)


@dataclass(frozen=True, slots=True)
class Texel:
    """The inputs and outputs of the code that loads a texel.

    ``numbers``: the texel's number along each axis.  ``plane``: that of the layer or face, None
    without layers.  ``outside``: not 0 if the border's colour replaces it.
    """

    numbers: tuple[V, ...]
    plane: V | None
    outside: V
    values: tuple[V, ...]  # of the requested channels


def load(t: Texture, texel: Texel, channels: Sequence[int]) -> None:
    """Loads the texel and fills ``texel.values`` with its channels."""
    c = t.c
    with c.scope():
        data = c.vtemp(4)
        _load(t, _offset(t, texel), data)
        _unpack(t, data, channels, texel.values)
    _convert(t, texel.values)
    _replace(t, texel, channels)


def _offset(t: Texture, texel: Texel) -> V:
    """A texel's distance from the base, in bytes; textures have less than 4 GiB."""
    c = t.c
    out = c.vtemp()
    with c.scope():
        c.emit("v_lshlrev_b32", out, t.field(word.SHIFT), texel.numbers[0])
        rows: list[tuple[int, V]] = []
        if len(texel.numbers) > 1:
            rows.append((word.PITCH, texel.numbers[1]))
        plane = texel.numbers[2] if len(texel.numbers) > 2 else texel.plane
        if plane is not None:
            rows.append((word.SLICE, plane))
        for field, number in rows:
            term = c.vtemp()
            c.emit("v_mul_lo_u32", term, t.field(field), number)
            c.emit("v_add_nc_u32", out, out, term)
    return out


def _load(t: Texture, offset: V, data: V) -> None:
    """The texel's bytes in as many registers as they fill."""
    c = t.c
    done = c.k.label("Lloaded")
    labels = [c.k.label("Lbytes") for _ in _LOADS]
    with c.scope():
        base, shift = t.field(word.BASE, 2), t.field(word.SHIFT)
        for n, label in enumerate(labels[1:], 1):
            c.emit("s_cmp_eq_u32", shift, I(n))
            c.branch("s_cbranch_scc1", label)
        for n, (label, name) in enumerate(zip(labels, _LOADS, strict=True)):
            if n:
                c.mark(label)
            words = max(1, (1 << n) // 4)
            c.raw(Inst(f"global_load_{name}", (V(data.index, words), offset, base)))
            if n + 1 < len(_LOADS):
                c.branch("s_branch", done)
    c.mark(done)


def _unpack(t: Texture, data: V, channels: Sequence[int], values: Sequence[V]) -> None:
    """Splits the bytes; channels without bytes are undefined."""
    c = t.c
    done = c.k.label("Lchannels")
    labels = [c.k.label("Lwidth") for _ in _CHANNEL_BITS]
    with c.scope():
        shift = t.field(word.CHANNEL_SHIFT)
        for n, label in enumerate(labels[1:], 1):
            c.emit("s_cmp_eq_u32", shift, I(n))
            c.branch("s_cbranch_scc1", label)
    for n, (label, bits) in enumerate(zip(labels, _CHANNEL_BITS, strict=True)):
        if n:
            c.mark(label)
        for channel, value in zip(channels, values, strict=True):
            source, low = V(data.index + channel * bits // 32), channel * bits % 32
            if bits == 32:
                c.emit("v_mov_b32", value, source)
            else:
                c.emit("v_bfe_i32", value, source, I(low), I(bits))
        if bits < 32:
            with c.scope():  # all ones if channels are signed
                mask = t.field(word.MASK)
                for value in values:
                    c.emit("v_and_b32", value, mask, value)
            c.branch("s_branch", done)
    c.mark(done)


def _convert(t: Texture, values: Sequence[V]) -> None:
    """Halves become binary32; integers that represent fractions are widened to 16 bits if they
    will be filtered."""
    c = t.c
    done, half = c.k.label("Lconverted"), c.k.label("Lhalf")
    with c.scope():
        kind = t.field(word.KIND)
        c.emit("s_cmp_eq_u32", kind, I(word.HALF))
        c.branch("s_cbranch_scc1", half)
        c.emit("s_cmp_lg_u32", kind, I(word.NORMALISED))
        c.branch("s_cbranch_scc1", done)
    with c.scope():
        factor = t.field(word.EXPAND)
        for value in values:
            c.emit("v_mul_lo_u32", value, factor, value)
    c.branch("s_branch", done)
    c.mark(half)
    for value in values:
        widen(c, value)
    c.mark(done)


def widen(c: RuleEmitter, value: V) -> None:
    """binary16 to binary32; a NaN keeps its bits, as on NVIDIA's."""
    with c.scope():
        number, bits, mask = c.vtemp(), c.vtemp(), c.stemp()
        c.emit("v_cvt_f32_f16", number, value)
        c.emit("v_cmp_class_f32", mask, number, c.to_v(I(3)))
        c.emit("v_lshlrev_b32", bits, I(13), value)
        c.emit("v_and_b32", bits, I(0x7FE000), bits)
        c.emit("v_or_b32", bits, I(0x7F800000), bits)
        c.emit("v_and_b32", value, I(0x8000), value)
        c.emit("v_lshlrev_b32", value, I(16), value)
        c.emit("v_or_b32", bits, value, bits)
        c.emit("v_cndmask_b32", value, number, bits, mask)


def _replace(t: Texture, texel: Texel, channels: Sequence[int]) -> None:
    """Replaces the texel by the border's colour outside of the texture."""
    c = t.c
    inner = c.k.label("Linside")
    t.zero(word.BORDERED, inner)
    with c.scope():
        mask = c.stemp()
        c.emit("v_cmp_ne_u32", mask, ZERO, texel.outside)
        for channel, value in zip(channels, texel.values, strict=True):
            with c.scope():
                c.emit("v_cndmask_b32", value, value, c.to_v(t.field(word.BORDER + channel)), mask)
    c.mark(inner)
