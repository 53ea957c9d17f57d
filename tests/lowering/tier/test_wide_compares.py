"""Comparisons of 64-bit integers made of two: which pairs are, and what they compute."""

from __future__ import annotations

import itertools

import pytest

from sassxlate.cfg import Cfg, build
from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.assembler import assemble_listing
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.disasm.sass.semantics import evaluate, semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.lowering.tier.wide.compares import pairs

ARCH = 80
_LOW = "ISETP.GE.U32.AND P0, PT, R2, R4, PT\n"
_HIGH = "ISETP.GE.AND.EX P0, PT, R3, R5, PT, P0\n"
CASES = {
    "a pair": (_LOW + _HIGH, True),
    "other instructions between": (_LOW + "IADD3 R8, R2, R4, RZ\n" + _HIGH, True),
    "unsigned": (_LOW + "ISETP.GE.U32.AND.EX P1, PT, R3, R5, PT, P0\n", True),
    "joined with another":
        (_LOW + "ISETP.GE.OR.EX P0, PT, R3, R5, P2, P0\n", True),
    "a constant": ("ISETP.NE.U32.AND P0, PT, R2, c[0x0][0x160], PT\n"
                   "ISETP.NE.AND.EX P0, PT, R3, c[0x0][0x164], PT, P0\n", True),
    "under the same guard": ("@P1 " + _LOW + "@P1 " + _HIGH, True),
    "the low words change": (_LOW + "IADD3 R2, R2, 0x1, RZ\n" + _HIGH, False),
    "the low comparison is signed":
        ("ISETP.GE.AND P0, PT, R2, R4, PT\n" + _HIGH, False),
    "another relation": ("ISETP.GT.U32.AND P0, PT, R2, R4, PT\n" + _HIGH, False),
    "the low one is joined": ("ISETP.GE.U32.AND P0, PT, R2, R4, P3\n" + _HIGH, False),
    "the low one is under a guard": ("@P1 " + _LOW + _HIGH, False),
    "the guard changes":
        ("@P1 " + _LOW + "ISETP.NE.AND P1, PT, R9, RZ, PT\n@P1 " + _HIGH, False),
    "the negated predicate": (_LOW + "ISETP.GE.AND.EX P0, PT, R3, R5, PT, !P0\n", False),
    "the predicate is written otherwise":
        (_LOW + "PLOP3.LUT P0, PT, P1, P2, PT, 0x80, 0x0\n" + _HIGH, False),
    "the predicate comes from another block": (_HIGH, False),
}  # fmt: skip


def graph(text: str) -> Cfg:
    lines = [f"{line} ;" for line in (text + "EXIT").split("\n")]
    code = assemble_listing(lines, ARCH)[""]
    words = [int.from_bytes(code[at : at + 16], "little") for at in range(0, len(code), 16)]
    return build("k", ARCH, [decode(w, 16 * i, ARCH) for i, w in enumerate(words)])


@pytest.mark.parametrize("name", CASES)
def test_pairs(name: str) -> None:
    text, expected = CASES[name]
    assert bool(pairs(graph(text))) == expected


class _Registers:
    """R2 to R5, and P0."""

    def __init__(self, words: dict[int, int], low: int) -> None:
        self.words, self.low = words, low

    def reg(self, file: str, index: int) -> Bits:
        return Bits(self.words[index], 32)

    def pred(self, file: str, index: int) -> Bits:
        return Bits(self.low, 1)

    def const(self, operand: object, word: int) -> Bits:
        raise AssertionError

    def special(self, operand: object) -> Bits:
        raise AssertionError


def _holds(ins: Instruction, words: dict[int, int], low: int) -> int:
    (value,) = evaluate(
        Reference(), semantics_table()["ISETP"], ins, _Registers(words, low)
    ).values()
    return value.n


@pytest.mark.parametrize("name", ["LT", "LE", "GT", "GE", "EQ", "NE"])
@pytest.mark.parametrize("signed", [False, True])
def test_two_comparisons_are_one_of_64_bits(name: str, signed: bool) -> None:
    """The identity that the rewrite rests on, by the semantics of both instructions."""
    kind = "" if signed else "U32."
    text = (f"ISETP.{name}.U32.AND P0, PT, R2, R4, PT\n"
            f"ISETP.{name}.{kind}AND.EX P0, PT, R3, R5, PT, P0\n")  # fmt: skip
    low, high, _ = [i for b in graph(text).blocks for i in b.instructions]
    edges = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    for lo, hi, lo2, hi2 in itertools.product(edges, repeat=4):
        words = {2: lo, 3: hi, 4: lo2, 5: hi2}
        sign = 1 << 63 if signed else 0  # turns the order of signed numbers into the unsigned one
        a, b = (hi << 32 | lo) ^ sign, (hi2 << 32 | lo2) ^ sign
        wanted = {"LT": a < b, "LE": a <= b, "GT": a > b, "GE": a >= b, "EQ": a == b, "NE": a != b}
        assert _holds(high, words, _holds(low, words, 0)) == wanted[name]
