"""Accesses at any byte, in LLVM IR for the memory helpers.

The hardware has them everywhere but for atomics (SH_MEM_CONFIG's unaligned mode, which AMD's
drivers set), and LLVM merges neighbouring accesses because of that.  Only scratch needs code of its
own: a lane's dwords are apart there, so that an access between two of them goes byte by byte.
"""

from __future__ import annotations


def in_bytes(bytes_: int) -> str:
    """From an access's address, to `bytes` if it leaves a dword in its middle, else to `dwords`."""
    return (
        "  %within = and i64 %a, 3\n"
        f"  %crosses = icmp ugt i64 %within, {4 - min(bytes_, 4)}\n"
        "  br i1 %crosses, label %bytes, label %dwords\nbytes:\n"
    )


def _place(byte: int) -> str:
    """%u{byte}.p, where a byte is: `stride` lies between the dwords, the first is at %p."""
    n = f"%u{byte}"
    return (
        f"  {n}.s = add i64 %within, {byte}\n  {n}.d = lshr i64 {n}.s, 2\n"
        f"  {n}.r = mul i64 {n}.d, %stride\n  {n}.b = and i64 {n}.s, 3\n"
        f"  {n}.x = add i64 {n}.r, {n}.b\n  {n}.o = sub i64 {n}.x, %within\n"
        f"  {n}.p = getelementptr i8, ptr %p, i64 {n}.o\n"
    )


def _slot(dword: int, buffer: str) -> str:
    """%word{dword}, the dword's place in the buffer."""
    return (
        f"  %slot{dword} = add i64 %lane64, {32 * dword}\n"
        f"  %word{dword} = getelementptr i32, ptr %{buffer}, i64 %slot{dword}\n"
    )


def load_bytes(bytes_: int, signed: bool) -> str:
    """The block `bytes` of a load."""
    out = ""
    for dword in range(max(1, bytes_ // 4)):
        out += _slot(dword, "out")
        whole = "0"
        for i in range(min(bytes_, 4)):
            n = f"%u{4 * dword + i}"
            out += (
                _place(4 * dword + i) + f"  {n}.v = load volatile i8, ptr {n}.p\n"
                f"  {n}.z = zext i8 {n}.v to i32\n  {n}.l = shl i32 {n}.z, {8 * i}\n"
                f"  {n}.w = or i32 {whole}, {n}.l\n"
            )
            whole = f"{n}.w"
        if bytes_ == 2 and signed:
            out += f"  %half = trunc i32 {whole} to i16\n  %wide.half = sext i16 %half to i32\n"
            whole = "%wide.half"
        out += f"  store i32 {whole}, ptr %word{dword}\n"
    return out + "  br label %next\n"


def store_bytes(bytes_: int) -> str:
    """The block `bytes` of a store."""
    out = ""
    for dword in range(max(1, bytes_ // 4)):
        out += _slot(dword, "data") + f"  %word{dword}.v = load i32, ptr %word{dword}\n"
        for i in range(min(bytes_, 4)):
            n = f"%u{4 * dword + i}"
            out += (
                _place(4 * dword + i) + f"  {n}.l = lshr i32 %word{dword}.v, {8 * i}\n"
                f"  {n}.v = trunc i32 {n}.l to i8\n  store volatile i8 {n}.v, ptr {n}.p\n"
            )
    return out + "  br label %next\n"
