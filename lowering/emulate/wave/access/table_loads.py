"""Dwords of a table, by indices of 32 bits in its lanes: ``base + 4 * sext(index)``, for AVX-512.

The most common address that is not side by side.  The host gathers twice as many lanes at a time by
offsets of 32 bits, and half the vectors are checked; the 64-bit addresses are made where the check
fails alone.  What multiplies the index is often a register that another block has set: that it
is 4 in all active lanes is tested then.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access import dword_helpers
from sassxlate.lowering.emulate.wave.access.all_lanes import member
from sassxlate.lowering.llvm.domain import LlvmDomain
from sassxlate.lowering.llvm.ir_text import Module, Val, const, vec_type
from sassxlate.lowering.target import LANES

V32, _MASK, _PTRS = "<32 x i32>", "<32 x i1>", "<32 x ptr>"
_STEPS = 4  # additions that are looked through


@dataclass(frozen=True, slots=True)
class Table:
    """Addresses base + 4 * sext(index), if every active lane's ``factor`` is 4, where there is
    one."""

    index: Val
    base: Val
    factor: Val | None


def find(d: LlvmDomain, lo: Val, hi: Val) -> Table | None:
    """How a vector of 64-bit addresses is made; None if in another way."""
    top = d.whole(hi, lo)
    if top is None or not top.vec:
        return None
    base = const(0, 64)
    for _ in range(_STEPS):
        op, parts = d.origins.get(top.ref, ("", ()))
        if op == "add" and not all(part.vec for part in parts):
            top, scalar = parts if parts[0].vec else parts[::-1]
            base = d.add(base, scalar)
            continue
        if op == "mul":
            return _product(d, parts[0], parts[1], base)
        if op == "shl" and parts[1].const == 2:
            index = _extended(d, parts[0])
            return None if index is None else Table(index, base, None)
        break
    return None


def _extended(d: LlvmDomain, value: Val) -> Val | None:
    op, parts = d.origins.get(value.ref, ("", ()))
    return parts[0] if op == "sext" and parts[0].vec and parts[0].width == 32 else None


def _product(d: LlvmDomain, a: Val, b: Val, base: Val) -> Table | None:
    index = _extended(d, a)
    if index is None:
        return None
    if b.const is not None:
        return Table(index, base, None) if b.const == 4 else None
    factor = _extended(d, b)
    return None if factor is None else Table(index, base, factor)


def load(m: Module, align: int, by_lanes: Callable[[], str]) -> str:
    """@table.*(w, indices, base, exec, pc) -> dwords.

    An index is inside if its distance from the least one is no more than the greatest one's; both
    are as far as the arena reaches and 32 bits do.  A base outside of the arena, or one that is not
    aligned, is left to the other helpers.
    """
    name = f"table.{align}"
    if name in m.functions:
        return f"@{name}"
    wide = dword_helpers.load(m, "g", align, by_lanes)
    m.declare("i64 @llvm.usub.sat.i64(i64, i64)")
    m.declare("i64 @llvm.umin.i64(i64, i64)")
    attributes = 'nounwind "min-legal-vector-width"="512"'
    args = f"ptr %w, {V32} %at, i64 %base, i32 %exec, i32 %pc"
    v64 = vec_type(64)
    zeros = f"<{LANES} x i32> zeroinitializer"

    def splat(out: str, value: str, bits: int) -> str:
        type_ = vec_type(bits)
        return (
            f"  %{out}.1 = insertelement {type_} poison, i{bits} {value}, i64 0\n"
            f"  %{out} = shufflevector {type_} %{out}.1, {type_} poison, {zeros}\n"
        )

    m.functions[f"{name}.wide"] = (
        f"define internal {V32} @{name}.wide({args}) noinline cold {attributes} {{\n"
        f"  %index = sext {V32} %at to {v64}\n  %bytes = shl {v64} %index, splat (i64 2)\n"
        + splat("base.v", "%base", 64)
        + f"  %all = add {v64} %base.v, %bytes\n"
        f"  %got = tail call {V32} {wide}(ptr %w, {v64} %all, i32 %exec, i32 %pc)\n"
        f"  ret {V32} %got\n}}\n"
    )
    m.functions[name] = (
        f"define internal {V32} @{name}({args}) noinline {attributes} {{\nentry:\n"
        + member("arena", "i64", WaveLayout.ARENA_BASE)
        + member("size", "i64", WaveLayout.ARENA_SIZE)
        + "  %off = sub i64 %base, %arena\n"
        "  %room = call i64 @llvm.usub.sat.i64(i64 %size, i64 3)\n"
        "  %inside = icmp ult i64 %off, %room\n"
        "  %low = and i64 %base, 3\n  %aligned = icmp eq i64 %low, 0\n"
        # The indices from -below to above, each within 32 bits.
        "  %down = lshr i64 %off, 2\n"
        f"  %below = call i64 @llvm.umin.i64(i64 %down, i64 {1 << 31})\n"
        "  %rest = sub i64 %size, %off\n  %after = sub i64 %rest, 4\n  %up = lshr i64 %after, 2\n"
        f"  %above = call i64 @llvm.umin.i64(i64 %up, i64 {(1 << 31) - 1})\n"
        "  %span = add i64 %below, %above\n"
        "  %below.s = trunc i64 %below to i32\n  %span.s = trunc i64 %span to i32\n"
        + splat("below.v", "%below.s", 32)
        + splat("span.v", "%span.s", 32)
        + f"  %from = add {V32} %at, %below.v\n  %in = icmp ule {V32} %from, %span.v\n"
        f"  %in.m = bitcast {_MASK} %in to i32\n"
        "  %inactive = xor i32 %exec, -1\n  %all.m = or i32 %in.m, %inactive\n"
        "  %all = icmp eq i32 %all.m, -1\n  %both = and i1 %inside, %aligned\n"
        f"  %ok = and i1 %all, %both\n  %wanted = bitcast i32 %exec to {_MASK}\n"
        "  br i1 %ok, label %once, label %other, !prof !1\nother:\n"
        f"  %slow = tail call {V32} @{name}.wide({args})\n  ret {V32} %slow\nonce:\n"
        "  %p = inttoptr i64 %base to ptr\n"
        f"  %ptrs = getelementptr i32, ptr %p, {V32} %at\n"
        f"  %got = call {V32} @llvm.masked.gather.v32i32.v32p0({_PTRS} align 4 %ptrs, "
        f"{_MASK} %wanted, {V32} zeroinitializer)\n  ret {V32} %got\n}}\n"
    )
    return f"@{name}"


__all__ = ["Table", "find", "load"]
