"""Helpers' code for atomics on dwords of LDS, in LLVM IR for AVX-512: addresses and data in
registers.

A workgroup has one host thread at a time, so nothing needs the bus: each lane's is a load, an
operation and a store.  One comparison says of all active lanes whether they are inside
(`dword_helpers`); what fails it goes to the helper that visits lanes one by one, which reports
faults.  Where all lanes are active they follow each other without a search for the next.
"""

from __future__ import annotations

import re

from sassxlate.lowering.emulate.image.abi import WaveLayout
from sassxlate.lowering.emulate.wave.access import dword_helpers
from sassxlate.lowering.emulate.wave.access.helpers import atomic_helpers
from sassxlate.lowering.emulate.wave.access.helpers.all_lanes import member
from sassxlate.lowering.emulate.wave.context import Context
from sassxlate.lowering.llvm.ir_text import Module, Val
from sassxlate.lowering.target import LANES

V32 = dword_helpers.V32
# Of one lane's text: what is not from around it.
_OWN_NAME = re.compile(r"%(?!(?:addr|data|lds|lane64)\b)([\w.]+)")


def handles(space: str, op: str, width: int) -> bool:
    """Whether an operation (see `atomic_helpers`) on a space has a helper here."""
    return space == "l" and width == 32 and op not in atomic_helpers.TWO_OPERANDS


def _lane(op: str, tag: str, index: str, *, kept: bool) -> str:
    """The operation of one lane, whose number is an i64."""
    text = (
        f"  %at.q = getelementptr i32, ptr %addr, i64 {index}\n  %a = load i32, ptr %at.q\n"
        f"  %put.q = getelementptr i32, ptr %data, i64 {index}\n  %d0 = load i32, ptr %put.q\n"
        "  %p = getelementptr i8, ptr %lds, i32 %a\n"
        + atomic_helpers.own_memory(op, 32)
        + ("  store i32 %old, ptr %put.q\n" if kept else "")
    )
    return _OWN_NAME.sub(rf"%{tag}.\1", text)


def emit(c: Context, op: str, addresses: Val, data: Val, *, kept: bool) -> Val | None:
    """The active lanes' dwords before, if they are ``kept``."""
    d = c.d
    args = f"{V32} {d.splat(addresses).ref}, {V32} {d.splat(data).ref}"
    call = f"{_atomic(c.module, op, kept=kept)}(ptr %w, {args}, i32 {c.state.exec_mask().ref}, "
    call += f"i32 {c.pc_ref})"
    if kept:
        return Val(c.fn.emit_new(f"call {V32} {call}"), 32, True)
    c.fn.do(f"call void {call}")
    return None


def _atomic(m: Module, op: str, *, kept: bool) -> str:
    """@lds.*(w, addresses, dwords, exec, pc): the lanes in ascending order; the values before, if
    they are ``kept``."""
    name = f"lds.{op}.{'kept' if kept else 'done'}"
    if name in m.functions:
        return f"@{name}"
    type_ = V32 if kept else "void"
    m.declare("i32 @llvm.cttz.i32(i32, i1)")
    args = f"ptr %w, {V32} %at, {V32} %put, i32 %exec, i32 %pc"
    lanes = atomic_helpers.atomic(m, "l", op, 32)
    out = (
        f"  %got = load {V32}, ptr %data, align 64\n  ret {V32} %got\n" if kept else "  ret void\n"
    )
    m.functions[f"{name}.lanes"] = (
        f"define internal {type_} @{name}.lanes({args}) noinline cold "
        f"{dword_helpers.ATTRIBUTES} {{\n"
        + dword_helpers.by_lanes_text(
            "l",
            f"  store {V32} %put, ptr %data, align 64\n"
            f"  call void {lanes}(ptr %w, ptr %addr, ptr %data, i32 %exec, i32 %pc)\n",
        )
        + out
        + "}\n"
    )
    result = f"%slow = tail call {type_}" if kept else "tail call void"
    m.functions[name] = (
        f"define internal {type_} @{name}({args}) noinline {dword_helpers.ATTRIBUTES} {{\nentry:\n"
        "  %addr = alloca [128 x i8], align 64\n  %data = alloca [128 x i8], align 64\n"
        + dword_helpers.inside_text(m, "l")
        + "  br i1 %all, label %begin, label %lanes, !prof !1\nlanes:\n"
        f"  {result} @{name}.lanes({args})\n  ret {type_}{' %slow' if kept else ''}\nbegin:\n"
        + member("lds", "ptr", WaveLayout.LDS)
        + f"  store {V32} %at, ptr %addr, align 64\n  store {V32} %put, ptr %data, align 64\n"
        "  %every = icmp eq i32 %exec, -1\n  br i1 %every, label %full, label %part\nfull:\n"
        + "".join(_lane(op, f"l{lane}", str(lane), kept=kept) for lane in range(LANES))
        + "  br label %done\npart:\n  %none = icmp eq i32 %exec, 0\n"
        "  br i1 %none, label %done, label %next\nnext:\n"
        "  %m = phi i32 [ %exec, %part ], [ %m2, %next ]\n"
        "  %lane = call i32 @llvm.cttz.i32(i32 %m, i1 true)\n"
        "  %m1 = sub i32 %m, 1\n  %m2 = and i32 %m, %m1\n  %lane64 = zext i32 %lane to i64\n"
        + _lane(op, "x", "%lane64", kept=kept)
        + "  %more = icmp ne i32 %m2, 0\n  br i1 %more, label %next, label %done\ndone:\n"
        + out
        + "}\n"
    )
    return f"@{name}"


__all__ = ["emit", "handles"]
