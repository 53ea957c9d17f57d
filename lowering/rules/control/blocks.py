"""Access to the blocks of memory that the driver's functions for kernels work on."""

from __future__ import annotations

from sassxlate.disasm.rdna3.instruction import Arg, I, Inst, V
from sassxlate.disasm.sass.instruction import Reg
from sassxlate.lowering.builder.rule_emitter import RuleEmitter
from sassxlate.lowering.rules.memory.memory import add64
from sassxlate.lowering.target import EXEC, OFF, VCC, ZERO


def argument(c: RuleEmitter, index: int, n: int = 1) -> V:
    return c.vtuple_of(Reg("R", index, n), n)


def address_at(c: RuleEmitter, base: V, index: Arg, scale: int, start: int = 0) -> V:
    """base + index * scale + start, an unsigned 32-bit product in 64 bits."""
    wide = c.vtemp(2)
    c.emit("v_mul_lo_u32", V(wide.index), index, I(scale))
    c.emit("v_mul_hi_u32", V(wide.index + 1), index, I(scale))
    if start:
        wide = add64(c, wide, I(start))
    return add64(c, base, wide)


def plus(c: RuleEmitter, base: V, offset: V) -> V:
    """base + offset, of 64 and 32 bits."""
    out = c.vtemp(2)
    c.emit("v_add_co_u32", V(out.index), VCC, V(base.index), offset)
    c.emit("v_add_co_ci_u32", V(out.index + 1), VCC, ZERO, V(base.index + 1), VCC)
    return out


def put(c: RuleEmitter, at: V, offset: int, value: V) -> None:
    c.raw(Inst(f"global_store_b{32 * value.n}", (at, value, OFF), imm=offset))


def add_below(c: RuleEmitter, block: V, counter: int, bound: int, more: V) -> V:
    """Adds each lane's ``more`` to a counter of the block if the sum does not exceed its bound;
    returns the old value of the counter.  EXEC becomes the lanes for which the sum was stored.

    A sum over the bound is never visible, not even for a moment: the malloc of another
    lane, which fits, would fail because of it.  All are 64-bit numbers.
    """
    again, end = c.k.label("Ladd"), c.k.label("Ladded")
    was = c.vtemp(2)
    with c.scope():
        most, seen, pair = c.vtemp(2), c.vtemp(2), c.vtemp(4)
        asked, left, mask = c.stemp(), c.stemp(), c.stemp()
        c.raw(Inst("s_mov_b32", (asked, EXEC)))
        c.raw(Inst("s_mov_b32", (left, EXEC)))
        c.raw(Inst("global_load_b64", (most, block, OFF), imm=bound))
        c.raw(Inst("global_load_b64", (was, block, OFF), imm=counter, glc=True))
        c.mark(again)
        low, high = V(pair.index), V(pair.index + 1)
        c.emit("v_add_co_u32", low, VCC, V(was.index), V(more.index))
        c.emit("v_add_co_ci_u32", high, VCC, V(was.index + 1), V(more.index + 1), VCC)
        c.emit("v_cmp_le_u64", mask, V(pair.index, 2), most)
        c.raw(Inst("s_and_b32", (EXEC, EXEC, mask)))
        c.branch("s_cbranch_execz", end)
        c.emit("v_mov_b32", V(pair.index + 2), V(was.index))
        c.emit("v_mov_b32", V(pair.index + 3), V(was.index + 1))
        c.raw(Inst("global_atomic_cmpswap_b64", (seen, block, pair, OFF), imm=counter, glc=True))
        c.emit("v_cmp_eq_u64", mask, seen, was)
        c.emit("v_mov_b32", V(was.index), V(seen.index))
        c.emit("v_mov_b32", V(was.index + 1), V(seen.index + 1))
        c.raw(Inst("s_and_not1_b32", (left, left, mask)))
        c.raw(Inst("s_and_not1_b32", (EXEC, EXEC, mask)))
        c.branch("s_cbranch_execnz", again)
        c.mark(end)
        c.raw(Inst("s_and_not1_b32", (EXEC, asked, left)))
    return was
