"""Sums of 64-bit integers made of two: which pairs are, and what they compute."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from sassxlate.disasm.sass.instruction import Instruction, RegRef
from sassxlate.disasm.sass.semantics import evaluate, semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.lowering.tier.wide.sums import sums, terms, total, words
from tests.lowering.tier.test_wide_compares import graph

_LOW = "IADD3 R6, P0, R2, R4, RZ\n"
_HIGH = "IADD3.X R7, R3, R5, RZ, P0, !PT\n"
_LEA = "LEA R6, P0, R2, R4, 0x2\n"
_LEA_HIGH = "LEA.HI.X R7, R2, R5, R3, 0x2, P0\n"
_SIGN = "LEA.HI.X.SX32 R7, R2, R5, 0x1, P0\n"
PAIRS = {
    "a pair": _LOW + _HIGH,
    "other instructions between": _LOW + "IADD3 R8, R2, R4, RZ\n" + _HIGH,
    "the low words change": _LOW + "IADD3 R2, R2, 0x1, RZ\n" + _HIGH,
    "a high word that is the carry": _LOW + "IMAD.X R7, RZ, RZ, R5, P0\n",
    "a product by one": _LOW + "IMAD.X R7, R3, 0x1, R5, P0\n",
    "a difference": "IADD3 R6, P0, R2, -R4, RZ\nIADD3.X R7, R3, ~R5, RZ, P0, !PT\n",
    "the other way round": "IADD3 R6, P0, -R2, R4, RZ\nIMAD.X R7, R5, 0x1, ~R3, P0\n",
    "what is left of nothing": "IADD3 R6, P0, RZ, -R4, RZ\nIMAD.X R7, RZ, RZ, ~R5, P0\n",
    "less one": "IADD3 R6, P0, R2, -0x1, RZ\nIADD3.X R7, R3, -0x1, RZ, P0, !PT\n",
    "no high word": _LOW + "IADD3.X R7, RZ, RZ, RZ, P0, !PT\n",
    "a constant": "IADD3 R6, P0, R2, 0x40, RZ\nIADD3.X R7, RZ, R3, RZ, P0, !PT\n",
    "three": "IADD3 R6, P0, P1, R2, R4, R8\nIADD3.X R7, R3, R5, R9, P0, P1\n",
    "three, one of which is subtracted":
        "IADD3 R6, P0, P1, R2, R4, -R8\nIADD3.X R7, R3, R5, ~R9, P0, P1\n",
    "the low word goes": _LOW + "IADD3 R6, R2, 0x1, RZ\n" + _HIGH,
    "in place": "IADD3 R2, P0, R2, R4, RZ\nIADD3.X R3, R3, R5, RZ, P0, !PT\n",
    "into the low one's": _LOW + "IADD3.X R6, R3, R5, RZ, P0, !PT\n",
    "an address": _LEA + _LEA_HIGH,
    "an address in place": "LEA R4, P0, R2, R4, 0x3\nLEA.HI.X R5, R2, R5, R3, 0x3, P0\n",
    "an index with a sign": _LOW + _SIGN,
    "an index with a sign, the other way round": "IADD3 R6, P0, R4, R2, RZ\n" + _SIGN,
    "a shifted index with a sign":
        "LEA R6, P0, R2, R4, 0x2\nLEA.HI.X.SX32 R7, R2, R5, 0x2, P0\n",
    "two sums with a carry": _LOW + _HIGH + "IADD3.X R8, R3, R9, RZ, P0, !PT\n",
    "two sums with a carry, each with an order of its own":
        _LOW + "LEA.HI.X.SX32 R7, R4, R5, 0x1, P0\nIADD3.X R8, R3, R9, RZ, P0, !PT\n",
    "both words of the low sum as an index":
        _LOW + "LEA.HI.X.SX32 R7, R4, R5, 0x1, P0\nLEA.HI.X.SX32 R8, R2, R5, 0x1, P0\n",
}  # fmt: skip
TWO = (*PAIRS,)[-3:]
OTHERS = {
    "a negative word for a complement":
        "IADD3 R6, P0, R2, -R4, RZ\nIADD3.X R7, R3, R5, RZ, P0, !PT\n",
    "a complement for a negative word": _LOW + "IADD3.X R7, R3, ~R5, RZ, P0, !PT\n",
    "a second carry that is not read": "IADD3 R6, P0, P1, R2, R4, R8\n" + _HIGH,
    "no carry of the second": _LOW + "IADD3.X R7, R3, R5, RZ, P0, P1\n",
    "the second carry changes": "IADD3 R6, P0, P1, R2, R4, R8\nISETP.NE.AND P1, PT, R9, RZ, PT\n"
                                "IADD3.X R7, R3, R5, R9, P0, P1\n",
    "the negated carry": _LOW + "IADD3.X R7, R3, R5, RZ, !P0, !PT\n",
    "the carry of a sum with a carry": _HIGH + "IADD3.X R8, R3, R5, RZ, P0, !PT\n",
    "another predicate": "ISETP.NE.AND P0, PT, R9, RZ, PT\n" + _HIGH,
    "a carry from another block": _HIGH,
    "a carry that goes on": _LOW + "IADD3.X R7, P1, R3, R5, RZ, P0, !PT\n",
    "another guard": "@P1 " + _LOW + _HIGH,
    "the guard changes": "@P1 " + _LOW + "ISETP.NE.AND P1, PT, R9, RZ, PT\n@P1 " + _HIGH,
    "another shift": _LEA + "LEA.HI.X R7, R2, R5, R3, 0x3, P0\n",
    "another index": _LEA + "LEA.HI.X R7, R8, R5, R3, 0x2, P0\n",
    "the index changes": _LEA + "IADD3 R2, R2, 0x1, RZ\n" + _LEA_HIGH,
    "the index becomes the low word": "LEA R2, P0, R2, R4, 0x2\n" + _LEA_HIGH,
    "a sign that is shifted": _LOW + "LEA.HI.X.SX32 R7, R2, R5, 0x2, P0\n",
    "a shift": _LOW + "LEA.HI.X R7, R2, R5, R3, 0x1, P0\n",
    "two that are subtracted": "IADD3 R6, P0, P1, -R2, -R4, R8\nIADD3.X R7, ~R3, ~R5, R9, P0, P1\n",
    "a product": _LOW + "IMAD.X R7, R3, R8, R5, P0\n",
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    assert not sums(graph(OTHERS[name]))


class _State:
    """Registers and predicates, with a domain of integers."""

    def __init__(self, words: dict[int, int]) -> None:
        self.d = Reference()
        self.words = {RegRef("R", n): Bits(word, 32) for n, word in words.items()}

    def reg(self, file: str, index: int) -> Bits:
        return self.words[RegRef("R", index)]

    def pred(self, file: str, index: int) -> Bits:
        return self.words[RegRef("P", index)]

    def const(self, operand: object, word: int) -> Bits:
        raise AssertionError

    def special(self, operand: object) -> Bits:
        raise AssertionError

    def step(self, ins: Instruction) -> None:
        self.words |= evaluate(self.d, semantics_table()[ins.mnemonic], ins, self)


@pytest.mark.parametrize("name", PAIRS)
def test_two_sums_are_one_of_64_bits(name: str) -> None:
    """By the semantics of both instructions."""
    cfg = graph(PAIRS[name])
    found = sums(cfg)
    assert len(found) == 1 + (name in TWO)
    below_of = terms(found.values())
    edges = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    for chosen in itertools.product(edges, repeat=4):
        state = _State(dict(zip(range(2, 10), [*chosen, *chosen[::-1]], strict=True)))
        below: Any = {}
        for ins in cfg.blocks[0].instructions[:-1]:
            both = found.get(ins.offset)
            lane: Any = SimpleNamespace(d=state.d, reg=state.reg, pred=state.pred)
            if both is not None:
                written: Any = total(lane, ins, both, below)
                state.step(ins)
                assert written == {ref: state.words[ref] for ref in written}
                assert len(written) == 1 + both.kept
                continue
            if ins.offset in below_of:
                below = words(lane, ins, below_of[ins.offset])
            state.step(ins)


def test_a_low_word_that_is_not_there_any_more_stays() -> None:
    kept = {name: next(iter(sums(graph(text)).values())).kept for name, text in PAIRS.items()}
    assert [name for name, is_kept in kept.items() if not is_kept] == [
        "the low word goes", "into the low one's"
    ]  # fmt: skip
