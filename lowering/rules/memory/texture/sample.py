"""Reads of textures: TEX (filtered), TLD (by texel number) and TLD4 (four texels of a channel).

The code depends on the texture, so it is long.  It is placed after the kernel,
once for each kind of read; an instruction puts coordinates and the descriptor's address into the
first temporaries, calls it, and finds the result there.  Inside, the code that loads a texel is
called once for each texel that the filter needs.

The mapping of coordinates to texels and weights, and the sums of texels, were measured on an H200
(fixtures/textures).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sassxlate.disasm.rdna3.instruction import I, Inst, LabelRef, S, V
from sassxlate.disasm.sass.instruction import Name, Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.texture import table as word
from sassxlate.lowering.rules.memory.texture.cube import face_of
from sassxlate.lowering.rules.memory.texture.filter import Blend, blend, fraction, spread
from sassxlate.lowering.rules.memory.texture.place import along, exactly, layer_of, weights
from sassxlate.lowering.rules.memory.texture.table import Texture, coordinates, descriptor
from sassxlate.lowering.rules.memory.texture.texel import Texel, load
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.target import ZERO

_AXES = {"1D": 1, "2D": 2, "3D": 3, "ARRAY_1D": 1, "ARRAY_2D": 2, "CUBE": 2, "ARRAY_CUBE": 2}
_COMPONENTS = "RGBA"
_GATHERED = (2, 3, 1, 0)  # the corners that TLD4 returns, in order


@dataclass(frozen=True, slots=True)
class Form:
    """The parameters of a read's code, apart from its registers."""

    op: str
    dim: str
    channels: tuple[int, ...]  # the requested ones; for TLD4 the gathered one
    has_level: bool

    @property
    def axes(self) -> int:
        return _AXES[self.dim]

    @property
    def layered(self) -> bool:
        return self.dim.startswith("ARRAY")

    @property
    def cube(self) -> bool:
        return self.dim.endswith("CUBE")

    @property
    def sources(self) -> int:
        """The source registers."""
        return self.axes + self.cube + self.layered + self.has_level

    @property
    def results(self) -> int:
        return 4 if self.op == "TLD4" else len(self.channels)

    @property
    def label(self) -> str:
        lod = "LL" if self.has_level else "LZ"
        return "_".join(("Ltexture", self.op, self.dim, lod, *(str(n) for n in self.channels)))


def _form(c: RuleEmitter) -> Form:
    dim = c.operand("dim")
    op = c.ins.mnemonic
    if not isinstance(dim, Name) or dim.name not in _AXES or (op == "TLD" and "CUBE" in dim.name):
        raise c.refuse(f"texture of this shape: {dim}")
    if c.wants_pred("Pu"):
        raise c.refuse("residency of a texture")
    mask = c.imm("mask")
    channels = tuple(n for n in range(4) if mask >> n & 1)
    if not channels:
        raise c.refuse("a texture read that gives nothing")
    if op == "TLD4":
        if mask != 15:
            raise c.refuse("a part of four gathered texels")
        channels = tuple(n for n, name in enumerate(_COMPONENTS) if c.ins.has(name))
    return Form(op, dim.name, channels, op != "TLD4" and c.ins.has("LL"))


@dataclass(frozen=True, slots=True)
class _Frame:
    """The first temporaries on both sides of a call: coordinates, results, the address of the
    descriptor and the return address."""

    sources: list[V]
    results: list[V]
    back: S
    table: S


def _frame(c: RuleEmitter, form: Form) -> _Frame:
    sources = [c.vtemp() for _ in range(form.sources)]
    first = c.vtemp(form.results)
    results = [V(first.index + n) for n in range(form.results)]
    return _Frame(sources, results, c.stemp(2), c.stemp(2))


def read(c: RuleEmitter) -> None:
    """TEX, TLD and TLD4 of textures with one level: a level of detail is ignored."""
    form = _form(c)
    frame = _frame(c, form)
    words = coordinates(c, "Ra", "Rb")
    if len(words) < form.sources:
        raise c.refuse("coordinates of a texture", "SX0412")
    for place, value in zip(frame.sources, words, strict=False):
        c.emit("v_mov_b32", place, value)
    descriptor(c, frame.table)
    c.outline(form.label, partial(_routine, form))
    c.raw(Inst("s_call_b64", (frame.back, LabelRef(form.label))))
    _give(c, V(frame.results[0].index, form.results))


def _routine(form: Form, c: RuleEmitter) -> None:
    """The code of a kind of read, followed by the code that loads a texel and the code that
    sums."""
    frame = _frame(c, form)
    t = Texture(c, frame.table)
    inner = c.stemp(2)
    loader, mixer = c.k.label("Ltexel"), c.k.label("Lblend")
    rest = list(frame.sources)
    plane: V | None = None
    if form.layered:
        plane = c.vtemp()
        c.emit("v_mov_b32", plane, rest.pop(0))
    numbers = tuple(c.vtemp() for _ in range(form.axes))
    values = tuple(c.vtemp() for _ in form.channels)
    outside = c.vtemp()
    mixed = Blend(*(tuple(c.vtemp() for _ in range(1 << form.axes)) for _ in range(2)))
    missing = c.vtemp()
    c.emit("v_mov_b32", outside, ZERO)
    if form.op == "TLD":
        c.emit("v_mov_b32", missing, ZERO)
        _named(t, form, rest, numbers, plane, missing)
    elif form.cube:
        rest, face = face_of(c, rest[:3])
        layer = layer_of(t, plane) if plane is not None else None
        plane = face if plane is None else plane
        if layer is not None:
            c.emit("v_mul_u32_u24", plane, I(6), layer)
            c.emit("v_add_nc_u32", plane, plane, face)
    elif plane is not None:
        c.emit("v_mov_b32", plane, layer_of(t, plane))
    texel = Texel(numbers, plane, outside, values)
    if form.op == "TLD":
        c.raw(Inst("s_call_b64", (inner, LabelRef(loader))))
        _finish(t, form, values)
        for out, value in zip(frame.results, values, strict=True):
            with c.scope():
                mask = c.stemp()
                c.emit("v_cmp_ne_u32", mask, ZERO, missing)
                c.emit("v_cndmask_b32", out, value, c.to_v(ZERO), mask)
    else:
        _sampled(t, form, frame, rest, texel, mixed, inner, loader, mixer)
    c.raw(Inst("s_setpc_b64", (frame.back,)))
    c.mark(loader)
    with c.scope():
        load(t, texel, form.channels)
    c.raw(Inst("s_setpc_b64", (inner,)))
    if form.op == "TEX":
        c.mark(mixer)
        with c.scope():
            blend(t, mixed)
        c.raw(Inst("s_setpc_b64", (inner,)))


def _named(
    t: Texture, form: Form, words: list[V], numbers: tuple[V, ...], plane: V | None, missing: V
) -> None:
    """TLD: 0 outside of the texture, whatever its address mode."""
    c = t.c
    for axis, (number, place) in enumerate(zip(words, numbers, strict=False)):
        c.emit("v_mov_b32", place, exactly(t, axis, number, missing))
    with c.scope():
        mask, flag = c.stemp(), c.vtemp()
        if plane is not None:
            c.emit("v_cmp_le_u32", mask, t.field(word.LAYERS), plane)
            c.emit("v_cndmask_b32", plane, plane, c.to_v(ZERO), mask)
            c.emit("v_cndmask_b32", flag, ZERO, I(1), mask)
            c.emit("v_or_b32", missing, missing, flag)
        if form.dim == "1D":  # an array of one dimension is one of two here, of height 1
            c.emit("s_not_b32", mask, t.field(word.FETCHABLE))
            c.emit("v_or_b32", missing, mask, missing)


def _sampled(
    t: Texture, form: Form, frame: _Frame, rest: list[V], texel: Texel, mixed: Blend,
    inner: S, loader: str, mixer: str,
) -> None:  # fmt: skip
    """TEX and TLD4: the texels around a point."""
    c = t.c
    gather = form.op == "TLD4"
    axes = [along(t, n, rest[n], face=form.cube, gather=gather) for n in range(form.axes)]

    def fetch(corner: int) -> None:
        c.emit("v_mov_b32", texel.outside, ZERO)
        for n, (axis, number) in enumerate(zip(axes, texel.numbers, strict=True)):
            c.emit("v_mov_b32", number, axis.numbers[corner >> n & 1])
            c.emit("v_or_b32", texel.outside, texel.outside, axis.outside[corner >> n & 1])
        c.raw(Inst("s_call_b64", (inner, LabelRef(loader))))

    if gather:
        for out, corner in zip(frame.results, _GATHERED, strict=True):
            fetch(corner)
            _gathered(t, form, texel.values)
            c.emit("v_mov_b32", out, texel.values[0])
        return
    nearest, done = c.k.label("Lnearest"), c.k.label("Ltexture_end")
    t.zero(word.LINEAR, nearest)
    # Not in a scope: all of it is live across the calls, whose temporaries come after it.
    kept = [[c.vtemp() for _ in form.channels] for _ in range(1 << form.axes)]
    for corner, places in enumerate(kept):
        fetch(corner)
        for place, value in zip(places, texel.values, strict=True):
            c.emit("v_mov_b32", place, value)
    with c.scope():
        for place, weight in zip(mixed.weights, weights(c, axes), strict=True):
            c.emit("v_mov_b32", place, weight)
    for corner, places in enumerate(kept):
        if not corner:
            continue
        with c.scope():  # a texel without a weight on some axis is not read
            none, mask = c.stemp(), c.stemp()
            c.emit("s_mov_b32", none, ZERO)
            for n, axis in enumerate(axes):
                if corner >> n & 1:
                    c.emit("v_cmp_eq_u32", mask, ZERO, axis.weight)
                    c.emit("s_or_b32", none, none, mask)
            for place in places:
                c.emit("v_cndmask_b32", place, place, c.to_v(ZERO), none)
    for n, out in enumerate(frame.results):
        for place, texels in zip(mixed.texels, kept, strict=True):
            c.emit("v_mov_b32", place, texels[n])
        c.raw(Inst("s_call_b64", (inner, LabelRef(mixer))))
        c.emit("v_mov_b32", out, mixed.out)
    _lacking(t, form, frame.results)
    c.branch("s_branch", done)
    c.mark(nearest)
    fetch(0)
    _finish(t, form, texel.values)
    for out, value in zip(frame.results, texel.values, strict=True):
        c.emit("v_mov_b32", out, value)
    c.mark(done)


def _finish(t: Texture, form: Form, values: tuple[V, ...]) -> None:
    """Converts the loaded values to the program's format."""
    c = t.c
    done = c.k.label("Lfinished")
    with c.scope():
        c.emit("s_cmp_lg_u32", t.field(word.KIND), I(word.NORMALISED))
    c.branch("s_cbranch_scc1", done)
    for channel, value in zip(form.channels, values, strict=True):
        plain, next_ = c.k.label("Lplain"), c.k.label("Lchannel")
        with c.scope():
            c.emit("s_cmp_le_u32", t.field(word.CURVED), I(channel))
        c.branch("s_cbranch_scc1", plain)
        with c.scope():  # sRGB: a table of the 256 values
            at = c.vtemp()
            c.emit("v_min_u32", at, I(255), value)
            c.emit("v_lshlrev_b32", at, I(2), at)
            c.raw(Inst("global_load_b32", (value, at, t.field(word.CURVE, 2))))
        c.branch("s_branch", next_)
        c.mark(plain)
        fraction(t, value)
        c.mark(next_)
    c.mark(done)
    _lacking(t, form, list(values))


def _gathered(t: Texture, form: Form, values: tuple[V, ...]) -> None:
    """Gathered values go through the filter: signed bytes are widened to 16 bits, and a NaN
    loses its bits; a denormal float becomes a zero."""
    c = t.c
    value = values[0]
    done, other = c.k.label("Lgathered"), c.k.label("Lother")
    with c.scope():
        adjust = c.stemp()
        c.emit("s_cmp_eq_u32", t.field(word.KIND), I(word.NORMALISED))
        c.emit("s_cselect_b32", adjust, t.field(word.ADJUST), ZERO)
        c.emit("s_cmp_eq_u32", adjust, ZERO)
    c.branch("s_cbranch_scc1", other)
    with c.scope():
        total, number, rest = c.vtemp(), c.vtemp(), c.vtemp()
        c.emit("v_lshlrev_b32", total, I(8), value)
        spread(c, value, total)
        c.emit("v_max_i32", value, c.to_v(I(-32767 & 0xFFFFFFFF)), value)
        c.emit("v_cvt_f32_i32", number, value)
        divisor, inverse = c.to_v(I(0x46FFFE00)), c.to_v(I(0x38000100))
        c.emit("v_mul_f32", value, inverse, number)
        c.emit("v_fma_f32", rest, value, divisor, number, neg=1)
        c.emit("v_fma_f32", value, rest, inverse, value)
    _lacking(t, form, [value])
    c.branch("s_branch", done)
    c.mark(other)
    _finish(t, form, values)
    with c.scope():
        mask, half = c.stemp(), c.stemp()
        c.emit("s_cmp_eq_u32", t.field(word.KIND), I(word.HALF))
        c.emit("s_cselect_b32", half, I(0xFFFFFFFF), ZERO)
        c.emit("v_cmp_class_f32", mask, value, c.to_v(I(3)))
        c.emit("s_and_b32", mask, mask, half)
        c.emit("v_cndmask_b32", value, value, c.to_v(I(0x7FFFE000)), mask)
    _without_bits(t, value)
    c.mark(done)


def _without_bits(t: Texture, value: V) -> None:
    """A float's NaN becomes NVIDIA's, a denormal a zero of its sign."""
    c = t.c
    with c.scope():
        mask, single, zero = c.stemp(), c.stemp(), c.vtemp()
        c.emit("s_cmp_eq_u32", t.field(word.KIND), I(word.FLOAT))
        c.emit("s_cselect_b32", single, I(0xFFFFFFFF), ZERO)
        c.emit("v_cmp_class_f32", mask, value, c.to_v(I(3)))
        c.emit("s_and_b32", mask, mask, single)
        c.emit("v_cndmask_b32", value, value, c.to_v(I(0x7FFFFFFF)), mask)
        c.emit("v_and_b32", zero, I(0x80000000), value)
        c.emit("v_cmp_class_f32", mask, value, c.to_v(I(0x90)))
        c.emit("s_and_b32", mask, mask, single)
        c.emit("v_cndmask_b32", value, value, zero, mask)


def _lacking(t: Texture, form: Form, values: list[V]) -> None:
    """Sets channels that the texture does not have to 0."""
    c = t.c
    for channel, value in zip(form.channels, values, strict=True):
        if channel:
            with c.scope():
                mask = c.stemp()
                c.emit("s_cmp_gt_u32", t.field(word.CHANNELS), I(channel))
                c.emit("s_cselect_b32", mask, I(0xFFFFFFFF), ZERO)
                c.emit("v_and_b32", value, mask, value)


def _give(c: RuleEmitter, out: V) -> None:
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


# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "TEX": "SCR LL LZ",
    "TLD": "SCR LZ",
    "TLD4": "SCR R G B A",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("tex", "TEX", read, temporaries=96),
    Rule("tld", "TLD", read, temporaries=40),
    Rule("tld4", "TLD4", read, temporaries=56),
)
