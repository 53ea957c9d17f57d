"""Copies of tiles between global tensors and shared memory (UTMALDG, UTMASTG), as PTX has them.

A tensor map is opaque to programs, so its 128 bytes are ours to choose: the driver's library writes
them (``runtime_shim/native/cuda/tensor_map.cpp``), and a copy traps if they are not its.  Words::

    0, 1     address          2        MAGIC + rank
    3        bits 0-1 logarithm of a unit of at most 4 bytes, bit 2 two units an element,
             bits 4-7 logarithm of the swizzle's size (4: none), bits 24-27 CUtensorMapDataType
    4-8      elements of each dimension, at most 2**27
    9-13     the box, elements of each dimension
    14-21    bytes from one element to the next of dimensions 1 to 4, 64 bits each

What a map cannot say (interleaved layouts, strides of elements, NaN outside of the tensor) is
refused when it is made.  A copy is done when it is issued, by all lanes of the wave: each takes a
row of the box in turn.  Elements outside of the tensor are zeros, and are not stored.

Measured on an H100 (``fixtures/silicon/sm_90/tensor_copies.npz``) beyond what PTX says: a box must
begin at a whole 16 bytes of a row, and a store at no negative coordinate (there an illegal
instruction, here a trap); a store writes whole 16 bytes, also where the row ends within them; a
swizzle is one of addresses in shared memory, wherever the box begins there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.builder.lane_id import lane_id
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.builder.sources import part
from sassxlate.lowering.target import ALL_ONES, EXEC, NULL, ZERO

MAGIC: Final = 0x53585440
TRAP_MAP: Final = 0x55  # trap id: not a tensor map that can be copied with, or not as this one
DIMENSIONS, BOX, STRIDES = 16, 36, 56  # byte offsets
_FAR, _LEAST = 1 << 27, 1 << 20  # coordinates beyond are outside of every tensor


class TensorCopy:
    """One copy: its registers, and its steps in order."""

    def __init__(self, c: RuleEmitter, inwards: bool) -> None:
        self.c, self.inwards = c, inwards
        ins = c.ins
        self.rank = next((n for n in range(1, 6) if ins.has(f"{n}D")), 0)
        if not self.rank:
            raise c.refuse("a tensor copy of no dimensions")
        self.save, self.map = c.stemp(), c.stemp(2)
        self.near, self.first, self.across, self.inner = (c.stemp() for _ in range(4))
        self.flags, self.rows, self.left, self.valid = (c.stemp() for _ in range(4))
        self.row, self.at = c.vtemp(), c.vtemp()
        self.far, self.data = c.vtemp(2), c.vtemp()
        self.start = [c.vtemp() for _ in range(1, self.rank)]  # of the box, dimensions 1 to 4

    def scalar(self, offset: int, to: S) -> S:
        """A word of the map, or a pair."""
        op = "s_load_b64" if to.n == 2 else "s_load_b32"
        self.c.raw(Inst(op, (to, self.map, NULL), imm=offset))
        return to

    def read(self) -> None:
        """The map's address, the coordinates and the address in shared memory, with the lanes that
        execute; then all lanes of the wave run."""
        c = self.c
        box, map_ = c.reg("box"), c.reg("map")
        for i in range(2):
            with c.scope():
                c.raw(Inst("s_mov_b32", (part(self.map, i), c.to_s(c.value(map_, i)))))
        c.raw(Inst("s_mov_b32", (self.near, c.to_s(c.value(box)))))
        first = 2 if self.inwards else 1
        if not self.inwards:  # each coordinate's sign
            with c.scope():
                signs = c.stemp()
                c.raw(Inst("s_mov_b32", (signs, ZERO)))
                for k in range(self.rank):
                    with c.scope():
                        c.raw(Inst("s_or_b32", (signs, signs, c.to_s(c.value(box, first + k)))))
                self.need("s_cmp_ge_i32", signs, ZERO)
        with c.scope():
            c.raw(Inst("s_max_i32", (self.first, c.to_s(c.value(box, first)), I(-_LEAST))))
            c.raw(Inst("s_min_i32", (self.first, self.first, I(_FAR))))
        c.raw(Inst("s_mov_b32", (self.save, EXEC)))
        for k, place in enumerate(self.start, first + 1):
            with c.scope():
                value = c.to_s(c.value(box, k))
                c.raw(Inst("s_mov_b32", (EXEC, ALL_ONES)))
                c.emit("v_mov_b32", place, value)
                c.raw(Inst("s_mov_b32", (EXEC, self.save)))
        self.mode()
        c.raw(Inst("s_mov_b32", (EXEC, ALL_ONES)))

    def mode(self) -> None:
        """The upper half of .MULTICAST's operand: blocks of the cluster, of which there is one."""
        c = self.c
        if c.ins.has("MULTICAST"):
            with c.scope():
                blocks = c.stemp()
                c.raw(Inst("s_lshr_b32", (blocks, c.to_s(c.value(c.operand("Rc"))), I(16))))
                self.need("s_cmp_eq_u32", blocks, I(1))

    def need(self, test: str, a: object, b: object) -> None:
        """Traps unless a comparison of scalars holds."""
        c = self.c
        fine = c.k.label("Lmap")
        c.emit(test, a, b)  # type: ignore[arg-type]
        c.branch("s_cbranch_scc1", fine)
        c.raw(Inst("s_trap", (), imm=TRAP_MAP))
        c.mark(fine)

    def describe(self) -> None:
        """What the map says, in units."""
        self.kind(MAGIC)
        self.size()
        c = self.c
        c.raw(Inst("s_mov_b32", (self.rows, I(1))))
        for k in range(1, self.rank):
            with c.scope():
                size = self.scalar(BOX + 4 * k, c.stemp())
                c.raw(Inst("s_mul_i32", (self.rows, self.rows, size)))

    def kind(self, magic: int) -> None:
        """Traps if the map is of another kind or rank."""
        c = self.c
        with c.scope():
            self.need("s_cmp_eq_u32", self.scalar(8, c.stemp()), I(magic + self.rank))

    def size(self) -> None:
        """The first dimension: where the box begins, its size and the tensor's, in units."""
        c = self.c
        self.scalar(12, self.flags)
        self.scalar(DIMENSIONS, self.across)
        self.scalar(BOX, self.inner)
        with c.scope():
            twice = c.stemp()
            c.raw(Inst("s_bfe_u32", (twice, self.flags, I(1 << 16 | 2))))
            for count in (self.first, self.across, self.inner):
                c.raw(Inst("s_lshl_b32", (count, count, twice)))
        with c.scope():  # units in 16 bytes, less one
            unit, low = c.stemp(), c.stemp()
            c.raw(Inst("s_and_b32", (unit, self.flags, I(3))))
            c.raw(Inst("s_lshr_b32", (unit, I(16), unit)))
            c.raw(Inst("s_sub_u32", (unit, unit, I(1))))
            c.raw(Inst("s_and_b32", (low, self.first, unit)))
            self.need("s_cmp_eq_u32", low, ZERO)
            if not self.inwards:
                c.raw(Inst("s_add_u32", (self.across, self.across, unit)))
                c.raw(Inst("s_not_b32", (unit, unit)))
                c.raw(Inst("s_and_b32", (self.across, self.across, unit)))

    def place(self) -> None:
        """This lane's row: whether it is in the tensor, and its two addresses."""
        self.begin()
        c = self.c
        with c.scope():
            rest = c.vtemp()
            c.emit("v_mov_b32", rest, self.row)
            for k, start in enumerate(self.start, 1):
                with c.scope():
                    here = rest
                    if k + 1 < self.rank:
                        here = self.digit(rest, self.scalar(BOX + 4 * k, c.stemp()))
                    c.emit("v_add_nc_u32", here, start, here)
                    self.along(k, here)
        self.near_row()

    def begin(self) -> None:
        """The tensor's address, at the box's first element of dimension 0; all lanes are valid."""
        c = self.c
        with c.scope():
            base = self.scalar(0, c.stemp(2))
            offset, high = c.stemp(), c.stemp()
            c.raw(Inst("s_and_b32", (high, self.flags, I(3))))
            c.raw(Inst("s_lshl_b32", (offset, self.first, high)))
            c.raw(Inst("s_ashr_i32", (high, offset, I(31))))
            c.raw(Inst("s_add_u32", (offset, offset, part(base, 0))))
            c.raw(Inst("s_addc_u32", (high, high, part(base, 1))))
            c.emit("v_mov_b32", V(self.far.index), offset)
            c.emit("v_mov_b32", V(self.far.index + 1), high)
        c.raw(Inst("s_mov_b32", (self.valid, EXEC)))

    def near_row(self) -> None:
        """The row's address in shared memory."""
        c = self.c
        with c.scope():
            size = c.stemp()
            c.raw(Inst("s_and_b32", (size, self.flags, I(3))))
            c.raw(Inst("s_lshl_b32", (size, self.inner, size)))
            c.emit("v_mul_lo_u32", self.at, self.row, size)
            c.emit("v_add_nc_u32", self.at, self.near, self.at)

    def digit(self, rest: V, size: S) -> V:
        """``rest`` modulo ``size``; ``rest`` becomes the quotient.  The reciprocal's product is off
        by at most one, for ``rest`` is less than 2**16."""
        c = self.c
        mask = c.stemp()
        quotient, digit, other, more = (c.vtemp() for _ in range(4))
        c.emit("v_cvt_f32_u32", quotient, size)
        c.emit("v_rcp_f32", quotient, quotient)
        c.emit("v_cvt_f32_u32", digit, rest)
        c.emit("v_mul_f32", quotient, quotient, digit)
        c.emit("v_cvt_u32_f32", quotient, quotient)
        c.emit("v_mul_lo_u32", digit, quotient, size)
        c.emit("v_sub_nc_u32", digit, rest, digit)
        for test, step in (("v_cmp_gt_i32", -1), ("v_cmp_le_i32", 1)):  # below 0; size or more
            bound = ZERO if step < 0 else size
            c.emit(test, mask, bound, digit)
            c.emit("v_add_nc_u32" if step < 0 else "v_sub_nc_u32", other, digit, c.to_v(size))
            c.emit("v_add_nc_u32", more, I(step & 0xFFFFFFFF), quotient)
            c.emit("v_cndmask_b32", digit, digit, other, mask)
            c.emit("v_cndmask_b32", quotient, quotient, more, mask)
        c.emit("v_mov_b32", rest, quotient)
        return digit

    def along(self, k: int, coordinate: V) -> None:
        """Dimension ``k``: adds the distance, and leaves out the rows outside of the tensor.
        Overwrites the coordinate."""
        c = self.c
        with c.scope():
            inside = c.stemp()
            size = self.scalar(DIMENSIONS + 4 * k, c.stemp())
            c.emit("v_cmp_gt_u32", inside, size, coordinate)
            c.raw(Inst("s_and_b32", (self.valid, self.valid, inside)))
            stride = self.scalar(STRIDES + 8 * (k - 1), c.stemp(2))
            low, high, carry = c.vtemp(), c.vtemp(), c.stemp()
            c.emit("v_mul_lo_u32", low, coordinate, part(stride, 0))
            c.emit("v_mul_hi_u32", high, coordinate, part(stride, 0))
            c.emit("v_mul_lo_u32", coordinate, coordinate, part(stride, 1))
            c.emit("v_add_nc_u32", high, high, coordinate)
            to, top = V(self.far.index), V(self.far.index + 1)
            c.emit("v_add_co_u32", to, carry, to, low)
            c.emit("v_add_co_ci_u32", top, carry, top, high, carry)

    def units(self, size: int) -> None:
        """The units of this lane's row, ``size`` bytes each."""
        c = self.c
        kind = {1: "u8", 2: "u16", 4: "b32"}[size]
        store = {1: "b8", 2: "b16", 4: "b32"}[size]

        def moved(place: V, now: S) -> None:
            if self.inwards:
                c.emit("v_mov_b32", self.data, ZERO)
                c.raw(Inst("s_mov_b32", (EXEC, now)))
                c.raw(Inst(f"global_load_{kind}", (self.data, self.far, NULL), glc=True))
                c.raw(Inst("s_mov_b32", (EXEC, self.left)))
                c.raw(Inst(f"ds_store_{store}", (place, self.data)))
            else:
                c.raw(Inst(f"ds_load_{kind}", (self.data, place)))
                c.raw(Inst("s_mov_b32", (EXEC, now)))
                c.raw(Inst(f"global_store_{store}", (self.far, self.data, NULL)))
                c.raw(Inst("s_mov_b32", (EXEC, self.left)))

        self.steps(size, 1, moved)

    def steps(self, size: int, units: int, step: Callable[[V, S], None]) -> None:
        """Goes along this lane's row in steps of ``size`` bytes, so many units each.  ``step`` gets
        the place in shared memory and the lanes in the tensor; EXEC is ``left`` before and after.
        """
        c = self.c
        again, end = c.k.label("Lunit"), c.k.label("Lrow")
        with c.scope():
            x, now, mask = (c.stemp() for _ in range(3))
            place = c.vtemp()
            c.raw(Inst("s_bfe_u32", (mask, self.flags, I(4 << 16 | 4))))
            c.raw(Inst("s_lshl_b32", (mask, I(1), mask)))
            c.raw(Inst("s_sub_u32", (mask, mask, I(16))))
            c.raw(Inst("s_mov_b32", (x, ZERO)))
            c.mark(again)
            c.raw(Inst("s_cmp_ge_u32", (x, self.inner)))
            c.branch("s_cbranch_scc1", end)
            c.raw(Inst("s_add_u32", (now, self.first, x)))
            c.raw(Inst("s_cmp_lt_u32", (now, self.across)))
            c.raw(Inst("s_cselect_b32", (now, self.valid, ZERO)))
            c.emit("v_lshrrev_b32", place, I(3), self.at)
            c.emit("v_and_b32", place, mask, place)
            c.emit("v_xor_b32", place, self.at, place)
            with c.scope():
                step(place, now)
            c.emit("v_add_nc_u32", self.at, I(size), self.at)
            with c.scope():
                to, top, carry = V(self.far.index), V(self.far.index + 1), c.stemp()
                c.emit("v_add_co_u32", to, carry, to, c.to_v(I(size)))
                c.emit("v_add_co_ci_u32", top, carry, top, c.to_v(ZERO), carry)
            c.raw(Inst("s_add_u32", (x, x, I(units))))
            c.branch("s_branch", again)
            c.mark(end)

    def copy(self) -> None:
        """All rows."""
        c = self.c
        again, done = c.k.label("Lrows"), c.k.label("Lcopied")
        with c.scope():
            c.emit("v_mov_b32", self.row, lane_id(c))
        c.mark(again)
        c.emit("v_cmp_gt_u32", self.left, self.rows, self.row)
        c.raw(Inst("s_mov_b32", (EXEC, self.left)))
        c.branch("s_cbranch_execz", done)
        self.place()
        self.along_row()
        c.emit("v_add_nc_u32", self.row, I(32), self.row)
        c.branch("s_branch", again)
        c.mark(done)

    def along_row(self) -> None:
        """The units of this lane's row, of the map's size."""
        sizes = {n.bit_length() - 1: partial(self.units, n) for n in (1, 2, 4)}
        self.ways(I(3), sizes, TRAP_MAP)

    def ways(self, field: I, ways: Mapping[int, Callable[[], None]], trap: int) -> None:
        """Code by a field of the map's flags, a mask; a trap for another value."""
        c = self.c
        labels = {value: c.k.label("Lway") for value in ways}
        next_ = c.k.label("Lnext")
        with c.scope():
            found = c.stemp()
            c.raw(Inst("s_and_b32", (found, self.flags, field)))
            for value, label in labels.items():
                c.raw(Inst("s_cmp_eq_u32", (found, I(value))))
                c.branch("s_cbranch_scc1", label)
            c.raw(Inst("s_trap", (), imm=trap))
        for value, code in ways.items():
            c.mark(labels[value])
            code()
            c.branch("s_branch", next_)
        c.mark(next_)
