"""Arithmetic shifts in words that are put together of bytes: LLVM took the signs for zeros."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

from sassxlate.lowering.tier.compiler.signed_bytes import known_signs
from tests.disasm.sass.interpreter.launches import WORDS_OF_A_AND_B, Prepared, assembled, with_code

_SHIFTS = (
    "SHF.R.S32.HI R10, RZ, 0x8, R12", "SHF.R.S32.HI R10, RZ, 0x10, R12",
    "SHF.R.S32.HI R10, RZ, 0x18, R12", "SGXT R10, R12, 0x10", "PRMT R10, R12, 0xbb32, RZ",
    "SHF.R.S64 R10, R13, 0x10, R12",
)  # fmt: skip
# Sums of bits with the other word; what moves bytes on the way to one.
_SUMS = (
    "LOP3.LUT R11, R10, 0xffff0000, R13, 0xf8, !PT",
    "LOP3.LUT R11, R10, 0xff000000, R13, 0xf8, !PT",
    "SHF.L.U32 R11, R13, 0x10, RZ ;\nLOP3.LUT R11, R11, R10, RZ, 0xfc, !PT",
    "SHF.L.U32 R11, R13, 0x18, RZ ;\nLOP3.LUT R11, R11, R10, RZ, 0xfc, !PT",
    "LOP3.LUT R10, R10, 0xffffff00, RZ, 0xc0, !PT ;\nLOP3.LUT R11, R13, 0xff, R10, 0xec, !PT",
    "SHF.R.U32.HI R10, RZ, 0x8, R10 ;\nLOP3.LUT R11, R13, 0xff000000, R10, 0xec, !PT",
    # A sum of halves on the way, which LLVM calls a funnel shift of 16 bits.
    "PRMT R10, R10, 0x2021, RZ ;\nLOP3.LUT R11, R10, 0xffff, R13, 0xe2, !PT",
)  # fmt: skip


def test_words_of_bytes_with_signs() -> None:
    """All pairs in one launch, by the optimising tier; the interpreter says what is right."""
    pairs = [(shift, total) for shift in _SHIFTS for total in _SUMS]
    step = 4 * len(pairs)  # bytes of a thread's results, after a word that stays zero
    body = f"IMAD.WIDE R2, R0, {step:#x}, R2 ;\n"
    for n, (shift, total) in enumerate(pairs):
        # Other words each, as a shift with several uses stays what it is.
        for to, of in ((12, 8), (13, 9)):
            body += f"IMAD R{to}, R{of}, {0x1234567 + 2 * n:#x}, RZ ;\n"
        body += f"{shift} ;\n{total} ;\nSTG.E [R2.64+{4 * n + 4:#x}], R11 ;\n"
    code = assembled(WORDS_OF_A_AND_B + body + "EXIT ;\n.L_1:\nBRA `(.L_1) ;\n", 80)
    rng = np.random.default_rng(1)
    words = [rng.integers(0, 1 << 32, 32, dtype=np.uint64).astype(np.uint32) for _ in range(2)]
    out = np.zeros(32 * len(pairs) + 1, np.uint32)
    prepared = Prepared(
        with_code(code, 80), "divergent_if", (1, 1, 1), (32, 1, 1), (words[0], words[1], out), 32
    )
    got, right = (
        x[1:].reshape(32, len(pairs))
        for x in (prepared.translated(tier=True), prepared.interpreted())
    )
    assert [pairs[n] for n in range(len(pairs)) if (got[:, n] != right[:, n]).any()] == []


def _known(body: str, declared: str = "") -> str:
    module = llvm.parse_assembly(
        f"{declared}\ndefine i32 @k(i32 %x, i32 %y, ptr %p) {{\n{body}\n}}\n"
    )
    text = known_signs(str(module))
    llvm.parse_assembly(text).verify()
    return text


@pytest.mark.parametrize(
    ("made", "hidden"),
    [
        ("ashr i32 %x, 16", True),
        ("ashr exact i32 %x, 8", True),
        ("ashr i32 %x, 31", False),
        ("lshr i32 %x, 16", False),
    ],
)
@pytest.mark.parametrize("name", ["%a", "%1", '%"a b"'])
def test_which_shifts_are_copied(made: str, hidden: bool, name: str) -> None:
    body = f"  {name} = {made}\n  %b = and i32 %y, -65536\n  %c = or i32 {name}, %b\n  ret i32 %c"
    text = _known(body)
    assert bool(re.search(r"@llvm\.amdgcn\.softwqm\.i32\(i32 %", text)) is hidden


def test_shifts_that_are_only_added_stay() -> None:
    assert "softwqm" not in _known(
        "  %a = ashr i32 %x, 16\n  %c = add i32 %a, %y\n  store i32 %c, ptr %p\n  ret i32 %c"
    )


@pytest.mark.parametrize("name", ["fshl.i16", "fshr.i16", "fshl.i32", "bswap.i16"])
def test_calls_on_the_way_to_a_sum(name: str) -> None:
    kind = name.rpartition(".")[2]
    args = f"{kind} %t" if "bswap" in name else f"{kind} %t, {kind} 1, {kind} 8"
    there, back = ("trunc i32 %a to i16", "zext i16 %f to i32")
    if kind == "i32":
        there, back = ("freeze i32 %a", "freeze i32 %f")
    text = _known(
        f"  %a = ashr i32 %x, 24\n  %t = {there}\n  %f = call {kind} @llvm.{name}({args})\n"
        f"  %z = {back}\n  %c = or i32 %z, %y\n  ret i32 %c",
        f"declare {kind} @llvm.{name}({', '.join([kind] * (1 if 'bswap' in name else 3))})",
    )
    assert "call i32 @llvm.amdgcn.softwqm.i32(i32 %a.signs)" in text


def test_extensions_on_the_way_to_a_sum() -> None:
    text = _known(
        "  %h = lshr i32 %x, 16\n  %t = trunc i32 %h to i16\n  %a = sext i16 %t to i32\n"
        "  %s = shl i32 %a, 8\n  %c = xor i32 %s, %y\n  ret i32 %c"
    )
    assert "call i32 @llvm.amdgcn.softwqm.i32(i32 %a.signs)" in text


@pytest.mark.parametrize(
    ("on", "hidden"),
    [
        ("  %s = shl i64 %a, 2\n  %c = add i64 %s, %b", False),  # an index in an address
        ("  %c = or i64 %a, %b", False),
        ("  %s = lshr i64 %a, 16\n  %c = or i64 %s, %b", True),
        ("  %s = shl i64 %a, 16\n  %r = lshr i64 %s, 32\n  %c = or i64 %r, %b", True),
    ],
)
def test_extensions_to_64_bits(on: str, hidden: bool) -> None:
    """The upper half has the sign alone, not bytes and the sign, until it is moved to the right."""
    text = _known(
        f"  %b = load i64, ptr %p\n  %a = sext i32 %x to i64\n{on}\n"
        "  %t = trunc i64 %c to i32\n  ret i32 %t"
    )
    assert ("softwqm" in text) is hidden
