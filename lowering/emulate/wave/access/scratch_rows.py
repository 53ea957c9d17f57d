"""Rows of scratch: a dword of all lanes, which lie side by side (`memory_helpers`)."""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Val, vec_type

V32 = vec_type(32)


def load(c: Context, p: str, n: int) -> list[Val]:
    """``n`` rows from a pointer on."""
    out: list[Val] = []
    for k in range(n):
        q = c.fn.emit(f"getelementptr i8, ptr {p}, i64 {128 * k}")
        out.append(Val(c.fn.emit_new(f"load {V32}, ptr {q}, align 4"), 32, True))
    return out


def _blend_row(c: Context, p: str, data: Val, lanes: Val) -> None:
    """A store to memory that no other host thread accesses."""
    old = Val(c.fn.emit_new(f"load {V32}, ptr {p}, align 4"), 32, True)
    c.fn.do(f"store {V32} {c.d.select(lanes, data, old).ref}, ptr {p}, align 4")


def store(c: Context, p: str, data: Sequence[Val], lanes: Val) -> None:
    """Of some lanes, a row for each of ``data``."""
    for k, v in enumerate(data):
        _blend_row(c, c.fn.emit(f"getelementptr i8, ptr {p}, i64 {128 * k}"), v, lanes)


__all__ = ["load", "store"]
