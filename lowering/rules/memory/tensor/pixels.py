"""Copies of columns of pixels between global tensors and shared memory (UTMALDG.IM2COL and
UTMASTG.IM2COL), as PTX's im2col mode has them.

The tensor's dimensions are channels, one to three spatial ones, and images.  A column has some
channels of each of a number of pixels, which lie in a window from ``lower`` to ``last`` of each
spatial dimension (they may lie outside of the tensor): from the instruction's coordinates on, each
spatial dimension goes on by its step, and where it passes ``last`` it begins again at ``lower``,
and the next dimension goes on.  A load adds the instruction's offsets to each pixel.

The map is that of tiles but for these words::

    2        PIXELS + rank
    3        bit 3 also: the window lies within the tensor; bits 8-11, 12-15, 16-19: the steps of
             the spatial dimensions
    9, 10    channels and pixels of a column
    11-13    2**32 / step rounded up, for each spatial dimension; 0 for a step of 1
    22-30    lower, last and the number of steps from one to the other, for each spatial dimension

Measured on an H100 (``fixtures/silicon/sm_90/tensor_pixels.npz``): a column must begin within the
window and at a whole 16 bytes of channels, and a store at no negative coordinate, with a window
within the tensor (there an illegal instruction, here a trap); a store writes whole 16 bytes, also
where the channels end within them.
"""

from __future__ import annotations

from typing import Final

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.tensor.box import BOX, TensorCopy
from sassxlate.lowering.target import ZERO

PIXELS: Final = 0x53585450
_WITHIN = 8
_WINDOW = 88  # byte offset of the first dimension's lower, last and number
_OFFSET_BITS = {3: 16, 4: 8, 5: 5}  # of an offset, by the rank


class PixelCopy(TensorCopy):
    """One copy of a column."""

    def __init__(self, c: RuleEmitter, inwards: bool) -> None:
        super().__init__(c, inwards)
        if self.rank not in _OFFSET_BITS:
            raise c.refuse(f"a copy of pixels of {self.rank} dimensions")
        self.spatial = range(1, self.rank - 1)
        self.offsets = c.stemp() if inwards else self.save

    def mode(self) -> None:
        """The offsets are in the lower half of the operand that has .MULTICAST's blocks."""
        super().mode()
        c = self.c
        if self.inwards:
            with c.scope():
                c.raw(Inst("s_mov_b32", (self.offsets, c.to_s(c.value(c.operand("Rc"))))))

    def describe(self) -> None:
        """What the map says."""
        self.kind(PIXELS)
        self.size()
        self.scalar(BOX + 4, self.rows)
        c = self.c
        if not self.inwards:
            with c.scope():
                within = c.stemp()
                c.raw(Inst("s_and_b32", (within, self.flags, I(_WITHIN))))
                self.need("s_cmp_lg_u32", within, ZERO)
        for k in self.spatial:
            with c.scope():
                first, end = c.stemp(), c.stemp()
                c.raw(Inst("v_readfirstlane_b32", (first, self.start[k - 1]), uniform=True))
                for word, test in ((0, "s_cmp_ge_i32"), (4, "s_cmp_le_i32")):
                    self.need(test, first, self.scalar(_WINDOW + 12 * (k - 1) + word, end))

    def place(self) -> None:
        """This lane's pixel: whether it is in the tensor, and its two addresses."""
        self.begin()
        c = self.c
        with c.scope():
            rest, here = c.vtemp(), c.vtemp()
            c.emit("v_mov_b32", rest, self.row)
            for k in self.spatial:
                with c.scope():
                    self.walk(k, rest, here)
                self.along(k, here)
            c.emit("v_add_nc_u32", here, self.start[-1], rest)
            self.along(self.rank - 1, here)
        self.near_row()

    def walk(self, k: int, rest: V, here: V) -> None:
        """Steps along dimension ``k``: its coordinate, and how often it began again in ``rest``."""
        c = self.c
        window, start = _WINDOW + 12 * (k - 1), self.start[k - 1]
        left, passed, again = c.vtemp(), c.vtemp(), c.stemp()
        with c.scope():
            first = self.first_row(k, start, window)
            c.emit("v_cmp_le_u32", again, first, rest)
            c.emit("v_sub_nc_u32", left, rest, c.to_v(first))
        c.emit("v_cndmask_b32", left, ZERO, left, again)
        digit = self.digit(left, self.scalar(window + 8, c.stemp()))
        c.emit("v_add_nc_u32", passed, I(1), left)
        c.emit("v_cndmask_b32", digit, rest, digit, again)
        c.emit("v_cndmask_b32", rest, ZERO, passed, again)
        with c.scope():
            step = c.stemp()
            c.raw(Inst("s_bfe_u32", (step, self.flags, I(4 << 16 | 4 + 4 * k))))
            c.emit("v_mul_lo_u32", digit, digit, step)
        with c.scope():
            c.emit("v_mov_b32", here, self.scalar(window, c.stemp()))
        c.emit("v_cndmask_b32", here, start, here, again)
        c.emit("v_add_nc_u32", here, here, digit)
        if self.inwards:
            with c.scope():
                c.emit("v_add_nc_u32", here, self.offset(k), here)

    def first_row(self, k: int, start: V, window: int) -> S:
        """How many pixels there are from the start until dimension ``k`` begins again."""
        c = self.c
        first, scale, much = (c.stemp() for _ in range(3))
        self.scalar(window + 4, much)
        c.raw(Inst("v_readfirstlane_b32", (first, start), uniform=True))
        c.raw(Inst("s_sub_u32", (first, much, first)))
        self.scalar(BOX + 4 + 4 * k, scale)
        c.raw(Inst("s_mul_hi_u32", (much, first, scale)))
        c.raw(Inst("s_cmp_lg_u32", (scale, ZERO)))
        c.raw(Inst("s_cselect_b32", (first, much, first)))
        c.raw(Inst("s_add_u32", (first, first, I(1))))
        return first

    def offset(self, k: int) -> S:
        """The instruction's offset along dimension ``k``."""
        c, bits = self.c, _OFFSET_BITS[self.rank]
        offset = c.stemp()
        c.raw(Inst("s_bfe_u32", (offset, self.offsets, I(bits << 16 | bits * (k - 1)))))
        return offset
