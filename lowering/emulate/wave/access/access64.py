"""64-bit accesses, in LLVM IR for the memory helpers.

Workgroups run on several host threads, and an aligned 64-bit access is one access to them on
the GPU, as it is on NVIDIA's: programs keep a link and its rank in one word.
"""

from __future__ import annotations

from collections.abc import Callable

from sassxlate.lowering.llvm.ir_text import Module


def in_pairs(space: str, bytes_: int) -> bool:
    """Whether an access moves 64 bits at a time: not in LDS, which belongs to one host thread, nor
    in scratch, which separates a lane's dwords."""
    return space in ("g", "f") and bytes_ in (8, 16)


def _pair_addresses(j: int, kind: str) -> str:
    """%p{j}, the j-th 64 bits in memory; %l{j} and %h{j}, its dwords in the buffer."""
    return (
        f"  %p{j} = getelementptr i8, ptr %p, i64 {8 * j}\n"
        f"  %lx{j} = add i64 %lane64, {64 * j}\n  %hx{j} = add i64 %lane64, {64 * j + 32}\n"
        f"  %l{j} = getelementptr i32, ptr %{kind}, i64 %lx{j}\n"
        f"  %h{j} = getelementptr i32, ptr %{kind}, i64 %hx{j}\n"
    )


def load_pair(j: int, align: int) -> str:
    return (
        f"  %w{j} = load volatile i64, ptr %p{j}, align {align}\n"
        f"  %wl{j} = trunc i64 %w{j} to i32\n  store i32 %wl{j}, ptr %l{j}\n"
        f"  %ws{j} = lshr i64 %w{j}, 32\n  %wh{j} = trunc i64 %ws{j} to i32\n"
        f"  store i32 %wh{j}, ptr %h{j}\n"
    )


def store_pair(j: int, align: int) -> str:
    return (
        f"  %wl{j} = load i32, ptr %l{j}\n  %wh{j} = load i32, ptr %h{j}\n"
        f"  %wz{j} = zext i32 %wl{j} to i64\n  %wy{j} = zext i32 %wh{j} to i64\n"
        f"  %wx{j} = shl i64 %wy{j}, 32\n  %w{j} = or i64 %wx{j}, %wz{j}\n"
        f"  store volatile i64 %w{j}, ptr %p{j}, align {align}\n"
    )


def whole_or_apart(
    space: str, bytes_: int, align: int, apart: str, move: Callable[[int, int], str], kind: str
) -> str:
    """A lane's access in 64 bits at a time if possible (`in_pairs`), otherwise by dwords."""
    if not in_pairs(space, bytes_):
        return apart
    pairs = "".join(_pair_addresses(j, kind) + move(j, min(align, 4)) for j in range(bytes_ // 8))
    if space == "g":
        return pairs
    return (
        "  %near = icmp eq i64 %stride, 4\n  br i1 %near, label %whole, label %apart\n"
        f"whole:\n{pairs}  br label %next\napart:\n{apart}"
    )


def gather_pairs(m: Module, bytes_: int) -> str:
    """The gather by 64 bits (`in_pairs`)."""
    v32, v64 = "<32 x i32>", "<32 x i64>"
    m.declare(f"{v64} @llvm.masked.gather.v32i64.v32p0(<32 x ptr>, <32 x i1>, {v64})")
    out = ""
    for j in range(bytes_ // 8):
        out += (
            f"  %ptrs.{j} = getelementptr i8, <32 x ptr> %ptrs, i64 {8 * j}\n"
            f"  %g.{j} = call {v64} @llvm.masked.gather.v32i64.v32p0(<32 x ptr> align 4 "
            f"%ptrs.{j}, <32 x i1> %lanes.m, {v64} zeroinitializer)\n"
            f"  %gs.{j} = lshr {v64} %g.{j}, splat (i64 32)\n"
        )
        for half, value in enumerate((f"%g.{j}", f"%gs.{j}")):
            out += (
                f"  %t.{j}.{half} = trunc {v64} {value} to {v32}\n"
                f"  %out.{j}.{half} = getelementptr i8, ptr %out, i64 {256 * j + 128 * half}\n"
                f"  store {v32} %t.{j}.{half}, ptr %out.{j}.{half}, align 64\n"
            )
    return out


def scatter_pairs(m: Module, bytes_: int) -> str:
    """The scatter by 64 bits (`in_pairs`)."""
    v32, v64 = "<32 x i32>", "<32 x i64>"
    m.declare(f"void @llvm.masked.scatter.v32i64.v32p0({v64}, <32 x ptr>, <32 x i1>)")
    out = ""
    for j in range(bytes_ // 8):
        out += f"  %ptrs.{j} = getelementptr i8, <32 x ptr> %ptrs, i64 {8 * j}\n"
        for half in (0, 1):
            out += (
                f"  %in.{j}.{half} = getelementptr i8, ptr %data, i64 {256 * j + 128 * half}\n"
                f"  %d.{j}.{half} = load {v32}, ptr %in.{j}.{half}, align 64\n"
                f"  %e.{j}.{half} = zext {v32} %d.{j}.{half} to {v64}\n"
            )
        out += (
            f"  %f.{j} = shl {v64} %e.{j}.1, splat (i64 32)\n"
            f"  %s.{j} = or {v64} %f.{j}, %e.{j}.0\n"
            f"  call void @llvm.masked.scatter.v32i64.v32p0({v64} %s.{j}, <32 x ptr> align 4 "
            f"%ptrs.{j}, <32 x i1> %lanes.m)\n"
        )
    return out
