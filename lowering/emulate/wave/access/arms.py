"""Two ways to the same values, of which a condition chooses one at run time.

LLVM moves computations down to the blocks that use their results.  That is right for vectors of
addresses, which one arm alone wants, mostly.  Of a sum over many loads, though, all additions would
move past the last load, and the stack would get what was loaded.  So what registers have by
operations on floating-point numbers counts as used before the branch.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val


def either(
    c: Context, cond: Val, fast: Callable[[], list[Val]], slow: Callable[[], list[Val]]
) -> list[Val]:
    """Values of one arm or the other; neither arm may read registers that are not cached yet."""
    fn = c.fn
    for value in c.state.held(c.floats):
        c.module.declare("void @llvm.fake.use(...)")
        fn.do(f"call void (...) @llvm.fake.use({value.type} {value.ref})")
    c.floats.clear()
    n = fn.fresh("m")
    fn.do(f"br i1 {cond.ref}, label %fast.{n}, label %slow.{n}, !prof !1")
    ends: list[tuple[list[Val], str]] = []
    for name, arm in (("fast", fast), ("slow", slow)):
        with fn.arm(f"{name}.{n}"):
            values = [c.d.splat(v) for v in arm()]
            ends.append((values, fn.block))
            fn.do(f"br label %join.{n}")
    fn.label(f"join.{n}", keep=True)
    out: list[Val] = []
    for a, b in zip(ends[0][0], ends[1][0], strict=True):
        ref = fn.emit_new(f"phi {a.type} [ {a.ref}, %{ends[0][1]} ], [ {b.ref}, %{ends[1][1]} ]")
        out.append(Val(ref, a.width, True))
    return out


__all__ = ["either"]
