"""Comparing waves: any NaN equals any other if a rule computes it, and no other difference
passes."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.instruction import RegRef
from sassxlate.lowering.verify.rules.compare import Words, first_difference, float_kind

BOTH = "R16", "R17"


@pytest.mark.parametrize(
    ("kind", "names", "sass", "rdna", "equal"),
    [
        ("F32", ("R5",), (0x7FFFFFFF,), (0xFFC00001,), True),
        ("F32", ("R5",), (0x7FFFFFFF,), (0x7F800000,), False),  # an infinity
        ("F32", ("R7",), (0x7FFFFFFF,), (0xFFC00001,), False),  # not computed
        ("F32", ("P0",), (0x7FFFFFFF,), (0xFFC00001,), False),  # lanes
        ("F32", ("global memory",), (0x7FFFFFFF,), (0xFFC00001,), True),
        ("F32 FTZ", ("R5",), (0x80000000,), (0x807949BC,), True),  # a sum that was kept
        ("F32 FTZ", ("R5",), (0x80000000,), (0x007949BC,), False),  # of another sign
        ("F32 FTZ", ("R5",), (0x00000000,), (0x00800000,), False),  # a normal number
        ("F32 FTZ", ("R7",), (0x80000000,), (0x807949BC,), False),  # not computed
        ("F64", BOTH, (0xFFFFFFFF, 0x7FFFFFFF), (5, 0xFFF00000), True),
        ("F64", BOTH, (0xFFFFFFFF, 0x7FFFFFFF), (0, 0x7FF00000), False),
        ("F64", BOTH, (1, 0x3FF00000), (2, 0x3FF00000), False),
        ("F16x2", ("R5",), (0x7FFF0001,), (0xFE000001,), True),
        ("F16x2", ("R5",), (0x7FFF0001,), (0xFE000002,), False),  # the other half
        ("BF16x2", ("R5",), (0x7D003F80,), (0x7D013F80,), False),  # a large number in bf16
        ("BF16x2", ("R5",), (0x7FFF3F80,), (0xFFC13F80,), True),
    ],
)
def test_nan(
    kind: str, names: tuple[str, ...], sass: tuple[int, ...], rdna: tuple[int, ...], equal: bool
) -> None:
    def words(value: int) -> Words:
        return np.full((1, 2), value, dtype=np.uint32)

    pairs = [(n, words(a), words(b)) for n, a, b in zip(names, sass, rdna, strict=True)]
    written = [RegRef("R", i) for i in (5, 16, 17)]
    assert (first_difference(pairs, written, kind) is None) == equal


@pytest.mark.parametrize(
    ("word", "text", "kind"),
    [
        (0x000FDE000806055800000008041079A2, "ATOM.E.ADD.EF.F16x8", "F16x2"),
        (0x000FDE00000E0B0000000008041073A3, "ATOMG.E.ADD.EF.BF16x8", "BF16x2"),
        (0x000FDE000006170000000008041073A2, "ATOM.E.ADD.EF.F32x4.FTZ", "F32 FTZ"),
        (0x000FDE000000000800000004041F7221, "FADD", ""),
    ],
)
def test_kinds(word: int, text: str, kind: str) -> None:
    """For a vector, its parts."""
    ins = decode(word, 0, 90, strict=False)
    assert ins.text.startswith(text)
    assert float_kind(ins) == kind
