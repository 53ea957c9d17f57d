"""Loads whose lanes share an address, all 32 or those of each half: scalars, inline.

A tile's row or column that a warp multiplies by is read so.  A wave of two rows of a block has two
addresses (see `contiguous`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.lowering.emulate.wave.access import contiguous, linear
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)


def starts(c: Context, lo: Val, hi: Val | None) -> tuple[Val, list[Val]]:
    """(whether the active lanes of each run have its first lane's address, these addresses, 64 bits
    wide and without the base)."""
    d = c.d
    top = lo if hi is None else d.whole(hi, lo)
    root, steps = (lo, []) if top is None or not top.vec else linear.chain(d, top)
    if steps:  # what is made alike of equal values is equal, and accesses by one root share a test
        heads, vector = contiguous.firsts(c, root)
        hit = d.eq(root, d.splat(vector))
        for step in reversed(steps):
            heads = [step.of(d, head) for head in heads]
        wide = [d.zext(head, 64) for head in heads]
    else:
        lows, vector = contiguous.firsts(c, lo)
        hit = d.eq(d.splat(lo), d.splat(vector))
        wide = [d.zext(low, 64) for low in lows]
        if hi is not None:
            highs, vector = contiguous.firsts(c, hi)
            if hi.vec:
                hit = d.and_(hit, d.eq(hi, vector))
            wide = [d.concat(high, low) for high, low in zip(highs, lows, strict=True)]
    exec_ = c.state.exec_mask()
    return d.and_(c.state.every_active(hit), d.not_(d.eq(exec_, const(0, 32)))), wide


def spread(c: Context, words: Sequence[Val]) -> Val:
    """A scalar of each run in all its lanes."""
    if len(words) == 1:
        return c.d.splat(words[0])
    length, fn = LANES // len(words), c.fn
    made = "poison"
    for run, word in enumerate(words):
        made = fn.emit(f"insertelement {V32} {made}, i32 {word.ref}, i64 {run * length}")
    index = ", ".join(f"i32 {lane // length * length}" for lane in range(LANES))
    text = f"shufflevector {V32} {made}, {V32} poison, <{LANES} x i32> <{index}>"
    return Val(fn.emit(text), 32, True)


__all__ = ["spread", "starts"]
