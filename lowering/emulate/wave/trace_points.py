"""Records register values at chosen places of a launch, by calls in the compiled code.

A :class:`TracePoint` is before or after one instruction and names registers.  When a traced wave
passes it with some lane in the point's mask, a record goes to a buffer (``trace_buffer.py``): the
wave, the point, the mask, and the values.  Nothing else of the emulation changes.  Limits that are
only checked between blocks are checked there: a launch that has executed too much is ended
(``DeviceFault.TRACED``), as is one whose records no longer fit.

A record, in 32-bit words: its length in words, the point's number, the mask, EXEC, the wave's
number (two words), then 32 words per vector register or slot of scratch, then one word per scalar.
"""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.lowering.emulate.image.abi import DeviceFault, WaveLayout
from sassxlate.lowering.emulate.options import Place, TracePoint
from sassxlate.lowering.emulate.wave.access import memory_helpers
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Module, const, vec_type
from sassxlate.lowering.target import LANES

V32 = vec_type(32)
HEAD = 6  # words
_USED, _ROOM, _DATA, _BUDGET = 0, 8, 16, 24  # byte offsets in SxTrace


# --- in the compiled code ------------------------------------------------------------------------


def emit(c: Context, point: TracePoint) -> None:
    """The call at a point."""
    st, d = c.state, c.d
    wide = [
        d.splat(st.read_v_all(p.index)).ref if p.kind == "v" else _slot(c, p.index)
        for p in point.wide
    ]
    scalar = [st.read_s(p.index).ref if p.kind == "s" else _word(c, p) for p in point.scalar]
    name = _recorder(c.module, len(wide), len(scalar))
    given = [f"i32 {point.number}", f"i32 {st.read_s(point.mask).ref}"]
    given += [f"i32 {st.exec_mask().ref}"]
    given += [f"{V32} {ref}" for ref in wide] + [f"i32 {ref}" for ref in scalar]
    c.fn.do(f"call void {name}(ptr %w, {', '.join(given)})")


def _slot(c: Context, offset: int) -> str:
    """A register's slot in scratch, whose lanes are contiguous."""
    fn = c.fn
    at = fn.emit(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.SCRATCH)}")
    base = fn.emit(f"load ptr, ptr {at}, !invariant.load !0")
    row = fn.emit_new(f"getelementptr i8, ptr {base}, i64 {offset * LANES}")
    return fn.emit_new(f"load {V32}, ptr {row}, align 4")


def _word(c: Context, place: Place) -> str:
    fn = c.fn
    if place.kind == "m":
        return fn.emit_new(f"load volatile i32, ptr inttoptr (i64 {place.index} to ptr), align 4")
    at = fn.emit(f"getelementptr i8, ptr %w, i64 {int(WaveLayout.LDS)}")
    base = fn.emit(f"load ptr, ptr {at}, !invariant.load !0")
    word = fn.emit_new(f"getelementptr i8, ptr {base}, i64 {place.index}")
    return fn.emit_new(f"load volatile i32, ptr {word}, align 4")


def _recorder(m: Module, wide: int, scalar: int) -> str:
    name = f"record.{wide}.{scalar}"
    if name in m.functions:
        return f"@{name}"
    memory_helpers.fault(m)
    args = ["ptr %w", "i32 %point", "i32 %mask", "i32 %exec"]
    args += [f"{V32} %v{i}" for i in range(wide)] + [f"i32 %s{i}" for i in range(scalar)]
    words = HEAD + LANES * wide + scalar
    stores = [("i32", str(words)), ("i32", "%point"), ("i32", "%mask"), ("i32", "%exec"),
              ("i64", "%wave")]  # fmt: skip
    stores += [(V32, f"%v{i}") for i in range(wide)] + [("i32", f"%s{i}") for i in range(scalar)]
    body, at = "", 0
    for n, (type_, value) in enumerate(stores):
        body += f"  %p{n} = getelementptr i8, ptr %to, i64 {at}\n"
        body += f"  store {type_} {value}, ptr %p{n}, align 4\n"
        at += {"i32": 4, "i64": 8}.get(type_, 4 * LANES)
    m.functions[name] = (
        f"define internal void @{name}({', '.join(args)}) noinline {memory_helpers.ATTRIBUTES} {{\n"
        f"  %wp = getelementptr i8, ptr %w, i64 {int(WaveLayout.TRACED)}\n"
        "  %number = load i64, ptr %wp\n"
        "  %off = icmp eq i64 %number, 0\n"
        "  %nobody = icmp eq i32 %mask, 0\n"
        "  %skip = or i1 %off, %nobody\n"
        "  br i1 %skip, label %done, label %look\n"
        "look:\n"
        "  %wave = sub i64 %number, 1\n"
        f"  %tp = getelementptr i8, ptr %w, i64 {int(WaveLayout.TRACE)}\n"
        "  %t = load ptr, ptr %tp\n"
        f"  %up = getelementptr i8, ptr %t, i64 {_USED}\n"
        "  %used = load i64, ptr %up\n"
        f"  %rp = getelementptr i8, ptr %t, i64 {_ROOM}\n"
        "  %room = load i64, ptr %rp\n"
        f"  %end = add i64 %used, {4 * words}\n"
        "  %full = icmp ugt i64 %end, %room\n"
        "  br i1 %full, label %stop, label %write\n"
        "stop:\n"
        f"  call void @fault(ptr %w, i32 {int(DeviceFault.TRACED)}, i32 0, i32 0, i64 0)\n"
        "  unreachable\n"
        "write:\n"
        "  store i64 %end, ptr %up\n"
        f"  %dp = getelementptr i8, ptr %t, i64 {_DATA}\n"
        "  %data = load ptr, ptr %dp\n"
        "  %to = getelementptr i8, ptr %data, i64 %used\n" + body + "  br label %done\n"
        "done:\n  ret void\n}\n"
    )
    return f"@{name}"


def emit_budget(c: Context, instructions: int) -> None:
    """At the start of a block: ends a launch that has used up its budget."""
    m, name = c.module, "spend"
    if name not in m.functions:
        memory_helpers.fault(m)
        m.functions[name] = (
            f"define internal void @{name}(ptr %w, i64 %n, i32 %pc) noinline "
            f"{memory_helpers.ATTRIBUTES} {{\n"
            f"  %tp = getelementptr i8, ptr %w, i64 {int(WaveLayout.TRACE)}\n"
            "  %t = load ptr, ptr %tp\n"
            f"  %bp = getelementptr i8, ptr %t, i64 {_BUDGET}\n"
            "  %old = load i64, ptr %bp\n"
            "  %new = sub i64 %old, %n\n"
            "  store i64 %new, ptr %bp\n"
            "  %over = icmp slt i64 %new, 0\n"
            "  br i1 %over, label %stop, label %done\n"
            "stop:\n"
            f"  call void @fault(ptr %w, i32 {int(DeviceFault.TRACED)}, i32 %pc, i32 0, i64 1)\n"
            "  unreachable\n"
            "done:\n  ret void\n}\n"
        )
    c.fn.do(f"call void @{name}(ptr %w, i64 {const(instructions, 64).ref}, i32 {c.pc})")


def by_pc(
    points: Sequence[TracePoint],
) -> tuple[dict[int, list[TracePoint]], dict[int, list[TracePoint]]]:
    """The points before and after the instruction at an offset."""
    before: dict[int, list[TracePoint]] = {}
    after: dict[int, list[TracePoint]] = {}
    for point in points:
        (after if point.after else before).setdefault(point.pc, []).append(point)
    return before, after


__all__ = ["HEAD", "by_pc", "emit", "emit_budget"]
