"""Atomic sums of binary32 in global memory whose results are denormal: .FTZ makes zeros of them, as
an H200 does (docs/errata.md)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.disasm.sass.interpreter.launches import WORDS_OF_A_AND_B, Prepared, assembled, with_code

_NUMBERS = (
    0x01000001, 0x80800044, 0x00800000, 0x80800001, 0x01000003, 0x007FFFFF, 0x00000001, 0x80000001,
    0x81000007, 0x80800000, 0x3F800000, 0x80000000,
)  # fmt: skip
_WORDS = 3  # of ``out`` a thread: what memory had and has, and what was added
_LISTING = f"""{WORDS_OF_A_AND_B}IMAD.WIDE R2, R0, {4 * _WORDS:#x}, R2 ;
STG.E [R2.64], R8 ;
STG.E [R2.64+0x4], R8 ;
@FORM@ ;
EXIT ;
.L_1:
BRA `(.L_1) ;
"""


@pytest.mark.parametrize("tier", [False, True], ids=["rules", "tier"])
@pytest.mark.parametrize(
    "form",
    [
        "RED.E.ADD.F32.FTZ.RN.STRONG.GPU [R2.64], R9",
        "ATOMG.E.ADD.F32.FTZ.RN.STRONG.GPU PT, R10, [R2.64], R9 ;\nSTG.E [R2.64+0x8], R10",
    ],
    ids=["RED", "ATOMG"],
)
def test_sums_below_the_normal_numbers_are_zeros(form: str, tier: bool) -> None:
    pairs = np.array([(a, b) for a in _NUMBERS for b in _NUMBERS], np.uint32)
    count = len(pairs)
    code = assembled(_LISTING.replace("@FORM@", form), 80)
    out = np.zeros(count * _WORDS, np.uint32)
    inputs = (pairs[:, 0].copy(), pairs[:, 1].copy(), out)
    prepared = Prepared(
        with_code(code, 80), "divergent_if", (1, 1, 1), (count, 1, 1), inputs, count
    )
    got = prepared.translated(tier=tier)
    assert (got == prepared.interpreted()).all()
    sums = got.reshape(count, _WORDS)[:, 0]
    assert not ((sums & 0x7F800000 == 0) & (sums & 0x7FFFFFFF != 0)).any()
    a, b = (x.view(np.float32).astype(np.float64) for x in inputs[:2])
    normal = (np.abs(a) >= 2.0**-126) & (np.abs(b) >= 2.0**-126)
    below = normal & (a + b != 0) & (np.abs(a + b) < 2.0**-126)
    assert below.sum() > 10  # the sums that this is about
    assert (sums[below] == np.where(a + b < 0, 0x80000000, 0)[below]).all()
