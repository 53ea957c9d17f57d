"""The number of a lane in its wave, as a value per lane."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import V
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.target import ALL_ONES, ZERO


def lane_id(c: RuleEmitter) -> V:
    """A temporary with 0 to 31 in the lanes 0 to 31."""
    lane = c.vtemp()
    c.emit("v_mbcnt_lo_u32_b32", lane, ALL_ONES, ZERO)
    return lane
