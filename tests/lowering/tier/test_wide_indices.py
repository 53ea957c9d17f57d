"""Shifts of an index's two words become one of 64 bits, with the same sums."""

from __future__ import annotations

import ctypes
import random

import llvmlite.binding as llvm
import pytest

from sassxlate.lowering.tier.compiler.wide_indices import whole

EDGES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
ADDRESS = [
    "%l = zext i32 %low to i64",
    "%ls = shl nuw nsw i64 %l, 2",
    "%h = zext i32 %high to i64",
    "%hs = shl i64 %h, 34",
    "%s = add i64 %base, %ls",
    "%r = add i64 %s, %hs",
]


def _module(lines: list[str]) -> str:
    body = "\n".join(f"  {line}" for line in lines)
    head = "define i64 @made(i32 %low, i32 %high, i64 %base) {\nentry:\n"
    return str(llvm.parse_assembly(f"{head}{body}\n  ret i64 %r\n}}\n"))


def _results(text: str) -> list[int]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_triple("x86_64-unknown-linux-gnu").create_target_machine()
    module = llvm.parse_assembly(text)
    module.verify()
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    words = (ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint64)
    function = ctypes.CFUNCTYPE(ctypes.c_uint64, *words)(engine.get_function_address("made"))
    chance = random.Random(3)
    some = [(a, b) for a in EDGES for b in EDGES]
    some += [(chance.getrandbits(32), chance.getrandbits(32)) for _ in range(30)]
    return [function(a, b, base) for a, b in some for base in (0, 1 << 63, chance.getrandbits(64))]


@pytest.mark.parametrize(
    "lines",
    [
        ADDRESS,
        [*ADDRESS[:4], "%s = add i64 %ls, %base", "%r = add i64 %hs, %s"],
        [*ADDRESS[:4], "%s = or disjoint i64 %hs, %ls", "%r = add i64 %s, %base"],
        [*ADDRESS[:4], "%r = add i64 %hs, %ls"],
    ],
)
def test_indices(lines: list[str]) -> None:
    text = _module(lines)
    out = whole(text)
    assert ".i, 2" in out
    assert _results(out) == _results(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%h, 34", "%h, 35"),
        ("%h, 34", "%h, 2"),
        ("%h = zext", "%h = sext"),
        ("%l = zext", "%l = sext"),
        ("%r = add i64 %s, %hs", "%r = sub i64 %s, %hs"),
        ("%s = add i64 %base, %ls", "%s = sub i64 %base, %ls"),
        ("%s = add i64 %base, %ls", "%s = or i64 %base, %ls"),
        ("%r = add i64 %s, %hs", "%o = add i64 %s, %hs\n  %r = xor i64 %s, %o"),  # the sum, too
        ("%r = add i64 %s, %hs", "%o = add i64 %s, %hs\n  %r = xor i64 %hs, %o"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    text = "\n  ".join(ADDRESS)
    assert text.count(old) == 1
    made = _module(text.replace(old, new).split("\n"))
    assert whole(made).strip() == made.strip()
