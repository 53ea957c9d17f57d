"""``run --interleave``: the waves of a workgroup take turns, each up to its next access to memory.

A wave runs to its barrier otherwise.  NVIDIA's processors issue the warps of a block side by side:
between two barriers, warp 1 loads at about the time when warp 0 loads, and before warp 0 stores.
"""

from __future__ import annotations

from sassxlate.lowering.emulate.image.abi import TURN, Rt, WaveLayout
from sassxlate.lowering.emulate.wave.context import Context

_ACROSS_LANES = ("ds_nop", "ds_permute", "ds_bpermute", "ds_swizzle")


def ends_turn(op: str) -> bool:
    """Whether the instruction accesses memory that the waves of a workgroup share."""
    return op.startswith(("global_", "flat_", "ds_")) and not op.startswith(_ACROSS_LANES)


def emit(c: Context) -> None:
    """Gives the workgroup's other waves their turns, before the instruction."""
    fn = c.fn
    p = fn.emit_new(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.RT)}")
    table = fn.emit_new(f"load ptr, ptr {p}")
    slot = fn.emit_new(f"getelementptr ptr, ptr {table}, i64 {int(Rt.YIELD)}")
    f = fn.emit_new(f"load ptr, ptr {slot}")
    fn.do(f"call void {f}(ptr %w, i32 {c.pc | TURN})")
