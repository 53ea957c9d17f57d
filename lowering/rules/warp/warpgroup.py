"""Matrix products of a warpgroup: each warp multiplies its own 16 rows by tiles in shared memory.

A product is done when it is issued, so code that waits for it never waits; but a thread that has
waited knows that all four warps' products are done, and may let their tiles be overwritten.  So
warps of a group meet at WARPGROUP.ARRIVE and .DEPBAR (``sass/semantics/warpgroups.py``).

The 16 x N x k product is N / 8 products of a warp (:mod:`.matrix_float`, :mod:`.matrix`), whose
code, with the loads of B, is placed after the kernel once.  Tiles and their layouts are described
in ``disasm/sass/semantics/warp/warpgroup.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, LabelRef, S, V
from sassxlate.disasm.sass.instruction import Pred, Reg
from sassxlate.disasm.sass.semantics.warp.matrix_formats import WARPGROUP_CORES
from sassxlate.disasm.sass.semantics.warpgroups import WARPS
from sassxlate.lowering.builder.lane_id import lane_id, wave_in_group
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.rule import Rule, knowing
from sassxlate.lowering.rules.warp.matrix import integer_sums, whole_warp
from sassxlate.lowering.rules.warp.matrix_float import MatrixForm, product
from sassxlate.lowering.rules.warp.matrix_sums import BF16, F16, TF32
from sassxlate.lowering.target import ZERO

TRAP_BASE_OFFSET = 0x54  # trap id: a matrix descriptor with a base offset


# --- tiles ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tile:
    """A descriptor in scalar registers.  ``shift``: logarithm of the size of a row in bytes;
    ``next``: between eight rows of A or columns of B and the next eight (transposed: between
    blocks of a row's size); ``deep``: to the second half of k."""

    transposed: bool
    start: S
    shift: S
    next: S
    deep: S


def _open(c: RuleEmitter, low: Arg, high: Arg, transposed: bool) -> _Tile:
    """The fields of a descriptor; traps if it has a base offset."""
    start, shift, beyond, deep = (c.stemp() for _ in range(4))
    fine = c.k.label("Ltile")
    with c.scope():
        leading, swizzle, other = c.stemp(), c.stemp(), c.stemp()
        c.raw(Inst("s_bfe_u32", (other, high, I(3 << 16 | 17))))
        c.raw(Inst("s_cmp_eq_u32", (other, ZERO)))
        c.branch("s_cbranch_scc1", fine)
        c.raw(Inst("s_trap", (), imm=TRAP_BASE_OFFSET))
        c.mark(fine)
        c.raw(Inst("s_bfe_u32", (start, low, I(14 << 16))))
        c.raw(Inst("s_lshl_b32", (start, start, I(4))))
        c.raw(Inst("s_bfe_u32", (leading, low, I(14 << 16 | 16))))
        c.raw(Inst("s_lshl_b32", (leading, leading, I(4))))
        c.raw(Inst("s_bfe_u32", (beyond, high, I(14 << 16))))
        c.raw(Inst("s_lshl_b32", (beyond, beyond, I(4))))
        c.raw(Inst("s_lshr_b32", (swizzle, high, I(30))))
        c.raw(Inst("s_sub_u32", (shift, I(8), swizzle)))
        c.raw(Inst("s_cmp_eq_u32", (swizzle, ZERO)))
        c.raw(Inst("s_cselect_b32", (shift, I(4), shift)))
        if transposed:
            c.raw(Inst("s_cselect_b32", (deep, leading, beyond)))
            c.raw(Inst("s_cselect_b32", (beyond, beyond, leading)))
        else:
            c.raw(Inst("s_cselect_b32", (deep, leading, I(16))))
    return _Tile(transposed, start, shift, beyond, deep)


def _lane_part(c: RuleEmitter, t: _Tile, out: V) -> None:
    """The part of this lane's address that is the same for all eight rows: lane 4 g + t reads word
    t of row g (transposed: elements g of rows 2 t and 2 t + 1)."""
    with c.scope():
        lane, row = lane_id(c), c.vtemp()
        c.emit("v_lshrrev_b32", row, I(2), lane)
        c.emit("v_and_b32", lane, I(3), lane)
        if t.transposed:
            c.emit("v_lshlrev_b32", row, I(1), row)
            c.emit("v_lshlrev_b32", lane, I(1), lane)
            c.emit("v_lshlrev_b32", lane, t.shift, lane)
        else:
            c.emit("v_lshlrev_b32", row, t.shift, row)
            c.emit("v_lshlrev_b32", lane, I(2), lane)
        c.emit("v_add_nc_u32", out, row, lane)
        c.emit("v_add_nc_u32", out, t.start, out)


def _block(c: RuleEmitter, t: _Tile, number: Arg, out: S) -> None:
    """The offset of rows 8 * ``number`` to + 7."""
    if not t.transposed:
        c.raw(Inst("s_mul_i32", (out, t.next, number)))
        return
    with c.scope():
        at, mask = c.stemp(), c.stemp()
        c.raw(Inst("s_lshl_b32", (at, number, I(4))))
        c.raw(Inst("s_lshl_b32", (mask, I(1), t.shift)))
        c.raw(Inst("s_sub_u32", (mask, mask, I(1))))
        c.raw(Inst("s_and_b32", (mask, at, mask)))
        c.raw(Inst("s_lshr_b32", (at, at, t.shift)))
        c.raw(Inst("s_mul_i32", (out, at, t.next)))
        c.raw(Inst("s_add_u32", (out, out, mask)))


def _load(c: RuleEmitter, t: _Tile, lane: V, block: S, out: Sequence[V]) -> None:
    """The two words of this lane's row: words t and t + 4."""
    with c.scope():
        mask, one = c.stemp(), c.stemp()
        c.raw(Inst("s_lshl_b32", (one, I(1), t.shift)))
        c.raw(Inst("s_sub_u32", (mask, one, I(16))))
        base = c.vtemp()
        c.emit("v_add_nc_u32", base, block, lane)
        for half, word in enumerate(out):
            if half:
                c.emit("v_add_nc_u32", base, t.deep, base)
            if not t.transposed:
                c.raw(Inst("ds_load_b32", (word, _swizzled(c, base, mask))))
                continue
            next_ = c.vtemp()
            c.emit("v_add_nc_u32", next_, one, base)
            high = c.vtemp()
            c.raw(Inst("ds_load_u16", (word, _swizzled(c, base, mask))))
            c.raw(Inst("ds_load_u16", (high, _swizzled(c, next_, mask))))
            c.emit("v_lshl_or_b32", word, high, I(16), word)


def _swizzled(c: RuleEmitter, at: V, mask: S) -> V:
    out = c.vtemp()
    c.emit("v_lshrrev_b32", out, I(3), at)
    c.emit("v_and_b32", out, mask, out)
    c.emit("v_xor_b32", out, at, out)
    return out


def _first_rows(c: RuleEmitter) -> S:
    """The number, in blocks of eight, of this warp's first row of A."""
    out = wave_in_group(c)
    c.raw(Inst("s_and_b32", (out, out, I(WARPS - 1))))
    c.raw(Inst("s_lshl_b32", (out, out, I(1))))
    return out


# --- products -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Columns:
    """The parameters of the code for eight columns, apart from its registers."""

    label: str
    sums: Callable[[RuleEmitter, list[V], list[V], list[V]], list[V]]  # A, B and C
    count: int  # of C's registers
    transposed: bool  # B
    signs: int = 0  # bits to invert in B's words


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where caller and callee have what both use: their first temporaries."""

    a: list[V]
    c: list[V]
    lane: V
    tile: _Tile
    block: S
    back: S


def _frame(c: RuleEmitter, count: int, transposed: bool) -> _Frame:
    a, last, lane = [c.vtemp() for _ in range(4)], [c.vtemp() for _ in range(count)], c.vtemp()
    back = c.stemp(2)
    start, shift, beyond, deep, block = (c.stemp() for _ in range(5))
    return _Frame(a, last, lane, _Tile(transposed, start, shift, beyond, deep), block, back)


def _shared(form: _Columns, c: RuleEmitter) -> None:
    f = _frame(c, form.count, form.transposed)
    b = [c.vtemp(), c.vtemp()]
    _load(c, f.tile, f.lane, f.block, b)
    if form.signs:
        for word in b:
            c.emit("v_xor_b32", word, I(form.signs), word)
    for place, word in zip(f.c, form.sums(c, f.a, b, f.c), strict=True):
        c.emit("v_mov_b32", place, word)
    c.raw(Inst("s_setpc_b64", (f.back,)))


def _chosen(c: RuleEmitter, role: str) -> set[str]:
    operand = c.operand(role)
    return set(operand.select.split(".")) - {""} if isinstance(operand, Reg) else set()


def _signs(c: RuleEmitter) -> int:
    if c.ins.mnemonic == "QGMMA":
        return 0x80808080
    return 0x80000000 if c.ins.has("TF32") else 0x80008000


def _form(c: RuleEmitter, b: set[str]) -> _Columns:
    ins = c.ins
    half = not ins.has("F32")
    signs = _signs(c) if "negB" in b else 0
    transposed = "tnspB" in b
    label = f"L{ins.mnemonic.lower()}_" + "_".join((*ins.modifiers[1:], *sorted(b)))
    if ins.mnemonic == "IGMMA":
        sorts = [m for m in ins.modifiers if m in ("U8", "S8")]
        sums = partial(_integers, tuple(sorts), ins.has("SAT"))
        return _Columns(label, sums, 4, transposed, signs)
    if ins.mnemonic == "QGMMA":
        sorts = [m for m in ins.modifiers if m in ("E4M3", "E5M2")]
        found = MatrixForm(F16, half, WARPGROUP_CORES[8], tuple(sorts))
    else:
        kind = BF16 if ins.has("BF16") else TF32 if ins.has("TF32") else F16
        found = MatrixForm(kind, half, WARPGROUP_CORES[32 // kind.each])
    return _Columns(label, partial(_floats, found), 2 if half else 4, transposed, signs)


def _integers(
    sorts: Sequence[str], saturated: bool, c: RuleEmitter, a: list[V], b: list[V], last: list[V]
) -> list[V]:
    return integer_sums(c, a, b, last, sorts, saturated, True)


def _floats(form: MatrixForm, c: RuleEmitter, a: list[V], b: list[V], last: list[V]) -> list[V]:
    if form.kind is TF32:
        a, b = ([_cut(c, word) for word in words] for words in (a, b))
    return product(c, form, a, b, last)


def _cut(c: RuleEmitter, word: V) -> V:
    out = c.vtemp()
    c.emit("v_and_b32", out, I(0xFFFFE000), word)
    return out


def _put_a(c: RuleEmitter, f: _Frame, role: str, names: set[str]) -> None:
    """A's words to the frame: from registers, or from the warp's rows of the tile."""
    ra = c.operand("Ra")
    assert isinstance(ra, Reg)
    if role == "Rb":
        negative = c.flag("Ra", "neg")
        for i, place in enumerate(f.a):
            with c.scope():
                c.emit("v_mov_b32", place, c.value(ra, i))
    else:
        negative = "negA" in names
        with c.scope():
            number, lane = _first_rows(c), c.vtemp()
            low, high = (c.to_s(c.value(ra, i)) for i in (0, 1))
            found = _open(c, low, high, "tnspA" in names)
            _lane_part(c, found, lane)
            for half in (0, 1):
                if half:
                    c.raw(Inst("s_add_u32", (number, number, I(1))))
                with c.scope():
                    block = c.stemp()
                    _block(c, found, number, block)
                    _load(c, found, lane, block, [f.a[half], f.a[2 + half]])
    if negative:
        for place in f.a:
            c.emit("v_xor_b32", place, I(_signs(c)), place)


def _put_tile(c: RuleEmitter, f: _Frame, role: str) -> None:
    """B's descriptor to the frame."""
    reg = c.operand(role)
    assert isinstance(reg, Reg)
    with c.scope():
        low, high = (c.to_s(c.value(reg, i)) for i in (2, 3))
        found = _open(c, low, high, f.tile.transposed)
        for to, from_ in (
            (f.tile.start, found.start), (f.tile.shift, found.shift), (f.tile.next, found.next),
            (f.tile.deep, found.deep),
        ):  # fmt: skip
            c.raw(Inst("s_mov_b32", (to, from_)))
    _lane_part(c, f.tile, f.lane)


def _apart(c: RuleEmitter) -> None:
    """Refuses results that would overwrite parts of C that are read later."""
    rd, rc = c.reg("Rd"), c.reg("Rc")
    if rd.is_zero:
        raise c.refuse("a product of a warpgroup without a result")
    if rc.is_zero or rc.index == rd.index:
        return
    if abs(rc.index - rd.index) < rd.width:
        raise c.refuse("an addend that overlaps the result")


def gmma(c: RuleEmitter) -> None:
    """HGMMA, QGMMA and IGMMA, eight columns at a time."""
    role = "Rb" if "Rb" in c.ins.operands else "Ra"
    names = _chosen(c, role)
    if not names <= {"negA", "negB", "tnspA", "tnspB"}:
        raise c.refuse("this form of a descriptor")
    _apart(c)
    form = _form(c, names & {"negB", "tnspB"})
    rd, rc = c.reg("Rd"), c.operand("Rc")
    assert isinstance(rc, Reg)
    c.outline(form.label, partial(_shared, form))
    f = _frame(c, form.count, form.transposed)
    which = c.operand("Pp") if "Pp" in c.ins.operands else None
    told = isinstance(which, Pred) and not which.is_true
    with whole_warp(c):
        _put_a(c, f, role, names)
        _put_tile(c, f, role)
        for first in range(0, rd.width, form.count):
            _block(c, f.tile, I(first // form.count), f.block)
            for i, place in enumerate(f.c):
                with c.scope():
                    value = c.value(rc, first + i)
                    if told and value != ZERO:
                        c.emit("v_cndmask_b32", place, ZERO, c.to_v(value), c.mask_reg("Pp"))
                    else:
                        c.emit("v_mov_b32", place, value)
            c.raw(Inst("s_call_b64", (f.back, LabelRef(form.label))))
            c.write_back(Reg("R", rd.index + first, form.count), V(f.c[0].index, form.count))


_SHAPES = " ".join(f"64x{n}x{k}" for n in range(8, 257, 8) for k in (8, 16, 32))
# The modifiers that each rule, or all rules of a mnemonic, translate or refuse.
KNOWN: Mapping[str, str] = {
    "HGMMA": f"F16 F32 BF16 TF32 {_SHAPES}",
    "QGMMA": f"F16 F32 E4M3 E5M2 {_SHAPES}",
    "IGMMA": f"U8 S8 SAT {_SHAPES}",
}
RULES: tuple[Rule, ...] = knowing(
    KNOWN,
    Rule("hgmma", "HGMMA", gmma, lambda ins: not ins.has("SP"), temporaries=96),
    Rule("qgmma", "QGMMA", gmma, lambda ins: not ins.has("SP"), temporaries=112),
    Rule("igmma", "IGMMA", gmma, lambda ins: not ins.has("SP"), temporaries=48),
)
