"""Textures and surfaces: address and filter arithmetic, and loads.

A texture object is the number of an entry in a table of descriptors, whose address the launcher
puts into the kernarg segment (native/cuda/texture.cpp fills the entries).  Arrays are linear in
memory.  Weights of a linear filter have eight bits of fraction, as CUDA's programming guide says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sassxlate.disasm.rdna3.ir import Arg, I, Inst, S, V
from sassxlate.disasm.sass.ir import Imm, Name, Reg

from ..allocate import KERNARG
from ..context import EXEC, NULL, ZERO, Ctx, Rule

# The descriptor, in words (struct Descriptor of native/cuda/texture.cpp); masks are 0 or all ones.
ENTRY_SHIFT, LAST_ENTRY = 8, 4095  # entries of 256 bytes; entry 0 is of no object
_BASE, _PITCH, _SLICE, _SHIFT, _CHANNELS, _FORMAT, _LINEAR = 0, 2, 3, 4, 5, 6, 7
_AXIS, _AXIS_WORDS = 8, 8
_SCALE, _SIZE, _WRAP, _MIRROR, _BORDER_MODE = range(5)  # of an axis
_HALF, _LAYERS, _NORMAL, _FACTOR, _BORDER = 32, 33, 34, 35, 36
_BYTES_X, _HEIGHT, _DEPTH, _CHANNEL_SHIFT = 40, 41, 42, 43

_FORMATS = ("u8", "i8", "u16", "i16", "b32", "f16")  # _FORMAT counts these
_AXES = {"1D": 1, "2D": 2, "3D": 3, "ARRAY_1D": 1, "ARRAY_2D": 2, "CUBE": 2}
_WEIGHT = 0x43800000  # 256.0
_ONE, _HALF_F = 0x3F800000, 0x3F000000
ALL = I(0xFFFFFFFF)


@dataclass(slots=True)
class _Texture:
    """One instruction's view of the descriptor that it uses."""

    c: Ctx
    table: S

    def field(self, word: int, n: int = 1) -> S:
        out = self.c.stemp(n)
        self.c.raw(Inst(f"s_load_b{32 * n}", (out, self.table, NULL), imm=4 * word))
        return out

    def axis(self, axis: int, word: int) -> S:
        return self.field(_AXIS + _AXIS_WORDS * axis + word)


def _descriptor(c: Ctx) -> _Texture:
    """Loads the address of the descriptor; the object's number is the low word of the handle."""
    offset = c.operand("offset")
    if not isinstance(offset, Imm):
        raise c.refuse("texture without a handle")
    handle: Arg
    if "Uc" in c.ins.operands and offset.value == 0:
        handle = c.ssrc("Uc")
    elif "bank" in c.ins.operands and c.imm("bank") == 0:
        handle = c.constant_word(0, 4 * offset.value)
    else:
        raise c.refuse("this kind of texture handle")
    table, number = c.stemp(2), c.stemp()
    c.raw(Inst("s_load_b64", (table, KERNARG, NULL), imm=c.k.textures))
    c.emit("s_min_u32", number, handle, I(LAST_ENTRY))
    c.emit("s_lshl_b32", number, number, I(ENTRY_SHIFT))
    c.emit("s_add_u32", S(table.index), S(table.index), number)
    c.emit("s_addc_u32", S(table.index + 1), S(table.index + 1), ZERO)
    return _Texture(c, table)


def _words(c: Ctx, *roles: str) -> list[Arg]:
    found: list[Arg] = []
    for role in roles:
        reg = c.ins.get(role)
        if isinstance(reg, Reg) and not reg.is_zero:
            found += [c.src(role, i) for i in range(reg.width)]
    return found


@dataclass(frozen=True, slots=True)
class _Along:
    """Along one axis: the two texels' numbers, the second's weight, whether they are outside."""

    first: V
    second: V
    weight: V
    outside: tuple[V, V]


def tex(c: Ctx) -> None:
    """TEX of single-level textures: any level of detail is level 0."""
    dim = c.operand("dim")
    axes = _AXES.get(dim.name) if isinstance(dim, Name) else None
    if axes is None or not isinstance(dim, Name):
        raise c.refuse(f"texture of this shape: {dim}")
    if c.wants_pred("Pu"):
        raise c.refuse("residency of a texture")
    layered = dim.name.startswith("ARRAY")
    cube = dim.name == "CUBE"
    words = _words(c, "Ra", "Rb")
    if len(words) < axes + (layered or cube) + c.ins.has("LL"):
        raise c.refuse("coordinates of a texture", "SX0412")
    texture = _descriptor(c)
    layer: V | None = None
    if cube:
        # A face is a layer, and what lies outside of it is addressed within it: only what asks
        # for seamless filtering reaches other faces, and is refused when it is created.
        words = list(_face(c, *(c.to_v(word) for word in words[:3])))
    if layered or cube:
        layer = c.vtemp()
        with c.scope():
            last = texture.field(_LAYERS)
            c.emit("s_sub_u32", last, last, I(1))
            c.emit("v_min_u32", layer, last, c.to_v(words[0]))
    first = int(layered or cube)
    along = [_along(texture, n, c.to_v(words[first + n])) for n in range(axes)]
    channels = [n for n in range(4) if c.imm("mask") >> n & 1]
    out = c.vtemp(len(channels))
    done, nearest = c.k.label("Ltexture"), c.k.label("Lnearest")
    with c.scope():
        c.emit("s_cmp_eq_u32", texture.field(_LINEAR), ZERO)
    c.branch("s_cbranch_scc1", nearest)
    with c.scope():
        corners = [_fetch(texture, along, n, layer, channels) for n in range(1 << axes)]
        for n in range(len(channels)):
            values = [corner[n] for corner in corners]
            for axis in along:
                values = [
                    _mix(c, values[i], values[i + 1], axis.weight) for i in range(0, len(values), 2)
                ]
            c.emit("v_mov_b32", V(out.index + n), values[0])
    c.branch("s_branch", done)
    c.mark(nearest)
    with c.scope():
        for n, value in enumerate(_fetch(texture, along, 0, layer, channels)):
            c.emit("v_mov_b32", V(out.index + n), value)
    c.mark(done)
    _give(c, out)


def _face(c: Ctx, x: V, y: V, z: V) -> tuple[V, V, V]:
    """The face of a cube that a direction points to (+x -x +y -y +z -z), and where on it."""
    face, s, t, most = c.vtemp(), c.vtemp(), c.vtemp(), c.vtemp()
    with c.scope():
        mask, also = c.stemp(), c.stemp()
        below, turned = c.vtemp(), c.vtemp()

        def pick(out: V, value: Arg, neg: int = 0) -> None:
            """out = the value where the mask holds, with its sign changed where neg is 1."""
            c.emit("v_mul_f32", turned, I(_ONE), c.to_v(value), neg=2 if neg else 0)
            c.emit("v_cndmask_b32", out, out, turned, mask)

        def longest(axis: V, others: tuple[V, V]) -> None:
            c.emit("v_cmp_ge_f32", mask, axis, others[0], abs=3)
            c.emit("v_cmp_ge_f32", also, axis, others[1], abs=3)
            c.emit("s_and_b32", mask, mask, also)

        for out in (face, s, t, most):
            c.emit("v_mov_b32", out, ZERO)
        # z goes before y, and y before x, where two are equally long.
        for number, axis, others, (u, v) in (
            (0, x, (y, z), ((z, 1), (y, 1))),
            (2, y, (x, z), ((x, 0), (z, 0))),
            (4, z, (x, y), ((x, 0), (y, 1))),
        ):
            longest(axis, others)
            c.emit("v_cmp_gt_f32", also, ZERO, axis)
            c.emit("v_cndmask_b32", below, I(number), I(number + 1), also)
            c.emit("v_cndmask_b32", face, face, below, mask)
            c.emit("v_max_f32", turned, axis, axis, neg=2)
            c.emit("v_cndmask_b32", most, most, turned, mask)
            for out, (value, neg) in ((s, u), (t, v)):
                pick(out, value, neg)
            # On the negative side one of the two runs the other way.
            flipped = t if number == 2 else s
            c.emit("s_and_b32", mask, mask, also)
            if number == 2:
                pick(flipped, z, 1)
            elif number == 0:
                pick(flipped, z, 0)
            else:
                pick(flipped, x, 1)
        c.emit("v_rcp_f32", most, most)
        for out in (s, t):
            c.emit("v_mul_f32", out, most, out)
            c.emit("v_fma_f32", out, out, c.to_v(I(_HALF_F)), c.to_v(I(_HALF_F)))
    return face, s, t


def _along(t: _Texture, axis: int, coordinate: V) -> _Along:
    """Wraps, mirrors or clamps one coordinate, and splits it into a number and a weight."""
    c = t.c
    first, second, weight = c.vtemp(), c.vtemp(), c.vtemp()
    outside = (c.vtemp(), c.vtemp())
    with c.scope():
        x, part = c.vtemp(), c.vtemp()
        c.emit("v_fract_f32", part, coordinate)
        c.emit("v_cndmask_b32", x, coordinate, part, t.axis(axis, _WRAP))
        with c.scope():  # mirrored: every odd repetition runs backwards
            odd, back, mask = c.vtemp(), c.vtemp(), c.stemp()
            c.emit("v_floor_f32", odd, coordinate)
            c.emit("v_mul_f32", odd, I(_HALF_F), odd)
            c.emit("v_fract_f32", odd, odd)
            c.emit("v_cmp_neq_f32", mask, ZERO, odd)
            c.emit("v_sub_f32", back, I(_ONE), part)
            c.emit("v_cndmask_b32", part, part, back, mask)
            c.emit("v_cndmask_b32", x, x, part, t.axis(axis, _MIRROR))
        c.emit("v_mul_f32", x, t.axis(axis, _SCALE), x)
        c.emit("v_subrev_f32", x, t.field(_HALF), x)
        c.emit("v_floor_f32", part, x)
        c.emit("v_sub_f32", weight, x, part)
        c.emit("v_cvt_i32_f32", first, part)
    with c.scope():  # to eight bits
        c.emit("v_mul_f32", weight, I(_WEIGHT), weight)
        c.emit("v_rndne_f32", weight, weight)
        c.emit("v_mul_f32", weight, I(0x3B800000), weight)
    c.emit("v_add_nc_u32", second, I(1), first)
    for number, flag in zip((first, second), outside, strict=True):
        _inside(t, axis, number, flag)
    return _Along(first, second, weight, outside)


def _inside(t: _Texture, axis: int, number: V, flag: V) -> None:
    """A texel's number within the axis; ``flag``: whether the border's colour stands for it."""
    c = t.c
    with c.scope():
        size, last = t.axis(axis, _SIZE), c.stemp()
        mask, wrapped, near = c.stemp(), c.vtemp(), c.vtemp()
        c.emit("s_sub_u32", last, size, I(1))
        # Around the end: only the neighbours of what lies inside.
        c.emit("v_add_nc_u32", near, size, number)
        c.emit("v_cmp_gt_i32", mask, ZERO, number)
        c.emit("v_cndmask_b32", wrapped, number, near, mask)
        c.emit("v_subrev_nc_u32", near, size, number)
        c.emit("v_cmp_gt_i32", mask, number, c.to_v(last))
        c.emit("v_cndmask_b32", wrapped, wrapped, near, mask)
        c.emit("v_cndmask_b32", wrapped, number, wrapped, t.axis(axis, _WRAP))
        c.emit("v_max_i32", near, ZERO, wrapped)
        c.emit("v_min_i32", near, last, near)
        c.emit("v_cmp_ne_u32", mask, near, wrapped)
        border = t.axis(axis, _BORDER_MODE)
        c.emit("s_and_b32", mask, mask, border)
        c.emit("v_cndmask_b32", flag, ZERO, I(1), mask)
        c.emit("v_mov_b32", number, near)


def _offset(t: _Texture, numbers: Sequence[V], layer: V | None) -> V:
    """A texel's distance from the base, in bytes; textures have less than 4 GiB."""
    c = t.c
    out = c.vtemp()
    with c.scope():
        c.emit("v_lshlrev_b32", out, t.field(_SHIFT), numbers[0])
        for word, index in (
            (_PITCH, numbers[1] if len(numbers) > 1 else None),
            (_SLICE, numbers[2] if len(numbers) > 2 else layer),
        ):
            if index is None:
                continue
            term = c.vtemp()
            c.emit("v_mul_lo_u32", term, t.field(word), index)
            c.emit("v_add_nc_u32", out, out, term)
    return out


def _fetch(
    t: _Texture, along: Sequence[_Along], corner: int, layer: V | None, channels: Sequence[int]
) -> list[V]:
    """A texel's channels, as the program gets them: bit n of ``corner`` takes axis n's second."""
    c = t.c
    numbers = [a.second if corner >> n & 1 else a.first for n, a in enumerate(along)]
    offset = _offset(t, numbers, layer)
    values = [c.vtemp() for _ in channels]
    done = c.k.label("Ltexel")
    labels = [c.k.label("Lformat") for _ in _FORMATS]
    with c.scope():
        kind = t.field(_FORMAT)
        for n, label in enumerate(labels[1:], 1):
            c.emit("s_cmp_eq_u32", kind, I(n))
            c.branch("s_cbranch_scc1", label)
    for n, (label, name) in enumerate(zip(labels, _FORMATS, strict=True)):
        if n:
            c.mark(label)
        for channel, value in zip(channels, values, strict=True):
            with c.scope():
                c.raw(
                    Inst(f"global_load_{name.replace('f', 'u')}", (value, offset, _of(t, channel)))
                )
        _converted(t, name, values)
        c.branch("s_branch", done)
    c.mark(done)
    for channel, value in zip(channels, values, strict=True):
        _replaced(t, channel, value, [a.outside[corner >> n & 1] for n, a in enumerate(along)])
    return values


def _of(t: _Texture, channel: int) -> S:
    """The address of a channel of the first texel; that of the last one where it has fewer."""
    c = t.c
    base = t.field(_BASE, 2)
    if channel:
        last, shift = t.field(_CHANNELS), t.field(_CHANNEL_SHIFT)
        c.emit("s_sub_u32", last, last, I(1))
        c.emit("s_min_u32", last, last, I(channel))
        c.emit("s_lshl_b32", last, last, shift)
        c.emit("s_add_u32", S(base.index), S(base.index), last)
        c.emit("s_addc_u32", S(base.index + 1), S(base.index + 1), ZERO)
    return base


def _converted(t: _Texture, name: str, values: Sequence[V]) -> None:
    """Half precision becomes binary32; normalised integers lie between -1 or 0 and 1."""
    c = t.c
    if name == "b32":
        return
    if name == "f16":
        for value in values:
            c.emit("v_cvt_f32_f16", value, value)
        return
    plain = c.k.label("Lplain")
    with c.scope():
        c.emit("s_cmp_eq_u32", t.field(_NORMAL), ZERO)
    c.branch("s_cbranch_scc1", plain)
    with c.scope():
        factor = t.field(_FACTOR)
        for value in values:
            c.emit(f"v_cvt_f32_{'i' if name[0] == 'i' else 'u'}32", value, value)
            c.emit("v_mul_f32", value, factor, value)
            if name[0] == "i":
                c.emit("v_max_f32", value, I(0xBF800000), value)
    c.mark(plain)


def _replaced(t: _Texture, channel: int, value: V, outside: Sequence[V]) -> None:
    """The border's colour outside; 0, or 1 for the fourth, where the texture lacks the channel."""
    c = t.c
    with c.scope():
        flag, mask = c.vtemp(), c.stemp()
        c.emit("v_mov_b32", flag, outside[0])
        for other in outside[1:]:
            c.emit("v_or_b32", flag, flag, other)
        c.emit("v_cmp_ne_u32", mask, ZERO, flag)
        c.emit("v_cndmask_b32", value, value, c.to_v(t.field(_BORDER + channel)), mask)
    if channel:
        with c.scope():
            mask = c.stemp()
            c.emit("s_cmp_gt_u32", t.field(_CHANNELS), I(channel))
            c.emit("s_cselect_b32", mask, ALL, ZERO)
            lacking = c.to_v(I(_ONE if channel == 3 else 0))
            c.emit("v_cndmask_b32", value, lacking, value, mask)


def _mix(c: Ctx, first: V, second: V, weight: V) -> V:
    """(1 - w) a + w b."""
    out, rest = c.vtemp(), c.vtemp()
    c.emit("v_sub_f32", rest, I(_ONE), weight)
    c.emit("v_mul_f32", out, rest, first)
    c.emit("v_fma_f32", out, weight, second, out)
    return out


def _give(c: Ctx, out: V) -> None:
    """The first two channels to Rd, the others to Rd2."""
    given = 0
    for role in ("Rd", "Rd2"):
        reg = c.reg(role)
        if reg.is_zero:
            continue
        width = min(reg.width, out.n - given)
        c.write_back(Reg("R", reg.index, width), V(out.index + given, width))
        given += width
    if given < out.n and not (c.reg("Rd").is_zero or c.reg("Rd2").is_zero):
        raise c.refuse("channels of a texture", "SX0412")


# --- surfaces -------------------------------------------------------------------------------------


def sust(c: Ctx) -> None:
    """SUST.D: plain bytes at a byte's x and a row's y.  .TRAP faults outside, .IGN does nothing."""
    shape = next((m for m in c.ins.modifiers if m in ("1D", "2D", "3D")), None)
    if shape is None or not c.ins.has("D"):
        raise c.refuse("this form of a surface store")
    words = _words(c, "Ra")
    axes = int(shape[0])
    if len(words) < axes:
        raise c.refuse("coordinates of a surface", "SX0412")
    size = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    n = next((size[m] for m in c.ins.modifiers if m in size), 4)
    texture = _descriptor(c)
    data = c.vtuple("Rb", max(1, n // 4))
    numbers = [c.to_v(word) for word in words[:axes]]
    save, good, offset = c.stemp(), c.stemp(), c.vtemp()
    with c.scope():
        last = c.vtemp()
        c.emit("v_add_nc_u32", last, I(n - 1), numbers[0])
        c.emit("v_cmp_gt_u32", good, texture.field(_BYTES_X), last)
        for word, number in zip((_HEIGHT, _DEPTH), numbers[1:], strict=False):
            with c.scope():
                mask = c.stemp()
                c.emit("v_cmp_gt_u32", mask, texture.field(word), number)
                c.emit("s_and_b32", good, good, mask)
    c.emit("v_mov_b32", offset, numbers[0])
    for word, number in zip((_PITCH, _SLICE), numbers[1:], strict=False):
        with c.scope():
            term = c.vtemp()
            c.emit("v_mul_lo_u32", term, texture.field(word), number)
            c.emit("v_add_nc_u32", offset, offset, term)
    c.raw(Inst("s_mov_b32", (save, EXEC)))
    if c.ins.has("TRAP"):
        fine = c.k.label("Lsurface")
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, good)))
        c.branch("s_cbranch_execz", fine)
        c.raw(Inst("s_trap", (), imm=2))
        c.mark(fine)
        c.raw(Inst("s_mov_b32", (EXEC, save)))
    elif not c.ins.has("IGN"):
        raise c.refuse("boundary mode of a surface store")
    c.raw(Inst("s_and_b32", (EXEC, EXEC, good)))
    store = Inst(f"global_store_b{8 * n}", (offset, data, texture.field(_BASE, 2)))
    c.raw(store)
    c.raw(Inst("s_mov_b32", (EXEC, save)))


RULES: tuple[Rule, ...] = (Rule("tex", "TEX", tex), Rule("sust", "SUST", sust))
