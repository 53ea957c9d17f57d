"""The number of a lane in its wave, as a value per lane."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import I, Inst, S, V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.target import ALL_ONES, ZERO


def lane_id(c: RuleEmitter) -> V:
    """A temporary with 0 to 31 in the lanes 0 to 31."""
    lane = c.vtemp()
    c.emit("v_mbcnt_lo_u32_b32", lane, ALL_ONES, ZERO)
    return lane


def wave_in_group(c: RuleEmitter) -> S:
    """The number of this wave in its workgroup, as of a warp in its block."""
    out, tid, at = c.stemp(), c.k.regs.tid, c.k.layout.block_dim
    with c.scope():
        x, y, z = c.vtemp(), c.vtemp(), c.vtemp()
        c.emit("v_and_b32", x, I(0x3FF), tid)
        c.emit("v_bfe_u32", y, tid, I(10), I(10))
        c.emit("v_bfe_u32", z, tid, I(20), I(10))
        for sum_, more, axis in ((y, z, 1), (x, y, 0)):
            with c.scope():
                c.emit("v_mul_lo_u32", more, more, c.to_v(c.constant_word(0, at + 4 * axis)))
            c.emit("v_add_nc_u32", sum_, sum_, more)
        c.raw(Inst("v_readfirstlane_b32", (out, x)))
    c.raw(Inst("s_lshr_b32", (out, out, I(5))))
    return out
