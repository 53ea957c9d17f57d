"""The low word of a double that is NaN is read as bits beside another double's high word."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.cfg import liveness
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.nans.bits import nan_bits
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code
from tests.lowering.nans import generated_nans

_HEAD = """
MOV R2, 0x1000 ;
MOV R3, 0x0 ;
LDG.E.64 R4, [R2.64] ;
LDG.E.64 R8, [R2.64+0x8] ;
ISETP.GT.AND P0, PT, R5, RZ, PT ;
DADD R6, R4, R8 ;
"""
_SUM = 5 * 16


def _exact(text: str, *, tier: bool = False) -> bool:
    """Whether the sum in R6 gets NVIDIA's choice of NaN."""
    (kernel,) = with_code(assembled(f"{_HEAD}{text}\nEXIT ;\n", 80), 80).kernels
    cfg = kernel_cfg(kernel)
    return _SUM in nan_bits(cfg, liveness(cfg), tier=tier).exact


_STORED = "DADD R12, R12, R4 ;\nSTG.E.64 [R2.64], R12 ;"
_TESTED = "DSETP.GT.AND P1, PT, R12, R4, PT ;\nSEL R10, RZ, 0x1, P1 ;\nSTG.E [R2.64], R10 ;"


@pytest.mark.parametrize("read", [_STORED, _TESTED])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MOV R12, R6 ;\nMOV R13, R7 ;", False),
        ("MOV R13, R7 ;\nLDG.E R10, [R2.64] ;\nIMAD.MOV.U32 R12, RZ, RZ, R6 ;", False),
        ("MOV R12, R6 ;\nMOV R13, R9 ;", True),
        ("MOV R12, R4 ;\nMOV R13, R7 ;", False),  # NaN with any low word
        ("MOV R12, R6 ;\nDADD R6, R6, R4 ;\nMOV R13, R7 ;", True),
        ("SEL R12, R6, R8, P0 ;\nSEL R13, R7, R9, P0 ;", False),
        ("SEL R12, R6, RZ, P0 ;\nSEL R13, R7, 0x3ff00000, P0 ;", False),
        ("SEL R12, R6, R8, P0 ;\nSEL R13, R7, R9, !P0 ;", True),
        ("SEL R12, R6, R8, P0 ;\nISETP.GT.AND P0, PT, R4, RZ, PT ;\nSEL R13, R7, R9, P0 ;", True),
        ("MOV R12, R8 ;\nMOV R13, R9 ;\n@P0 MOV R12, R6 ;\n@P0 MOV R13, R7 ;", False),
        ("MOV R12, R8 ;\nMOV R13, R9 ;\n@P0 MOV R12, R6 ;\n@!P0 MOV R13, R7 ;", True),
        ("MOV R12, R6 ;\nMOV R13, R9 ;\n@P0 MOV R13, R7 ;", True),
        ("DADD R12, R6, R6 ;\n@P0 MOV R13, R9 ;", True),
        # In other blocks:
        ("MOV R12, R6 ;\nMOV R13, R7 ;\n@P0 BRA `(.L) ;\nDADD R12, R4, R4 ;\n.L:", False),
        ("MOV R12, R6 ;\nMOV R13, R7 ;\n@P0 BRA `(.L) ;\nMOV R13, R9 ;\n.L:", True),
        ("MOV R12, R6 ;\nMOV R13, R9 ;\n@P0 BRA `(.L) ;\nMOV R13, R7 ;\n.L:", True),
    ],
)
def test_both_words_are_of_one_double(text: str, read: str, expected: bool) -> None:
    for tier in (False, True):
        assert _exact(f"{text}\n{read}", tier=tier) is expected


def test_a_word_of_the_turn_before() -> None:
    """The low word is that of the same instruction, one turn earlier."""
    text = (
        "MOV R12, RZ ;\nMOV R14, 0x10 ;\n.L:\nMOV R13, R7 ;\n{read}\n{kept}\nDADD R6, R6, R4 ;\n"
        "IADD3 R14, R14, -0x1, RZ ;\nISETP.GT.AND P0, PT, R14, RZ, PT ;\n@P0 BRA `(.L) ;"
    )
    assert _exact(text.format(read=_TESTED, kept="MOV R12, R6 ;"))
    assert not _exact(text.format(read=_TESTED, kept="MOV R12, R4 ;"))


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        ("SHFL.IDX PT, R12, R6, R10, 0x1f", "SHFL.IDX PT, R13, R7, R10, 0x1f", False),
        ("SHFL.BFLY PT, R12, R6, 0x1, 0x1f", "SHFL.BFLY PT, R13, R7, 0x1, 0x1f", False),
        ("MOV R12, R6", "SHFL.BFLY PT, R13, R7, 0x1, 0x1f", True),
        ("SHFL.BFLY PT, R12, R6, 0x2, 0x1f", "SHFL.BFLY PT, R13, R7, 0x1, 0x1f", True),
        ("SHFL.IDX PT, R12, R6, R10, 0x1f", "SHFL.IDX PT, R13, R7, R11, 0x1f", True),
    ],
)
def test_words_of_one_lane(low: str, high: str, expected: bool) -> None:
    for tier in (False, True):
        assert _exact(f"{low} ;\n{high} ;\n{_TESTED}", tier=tier) is expected
    changed = "IADD3 R10, R10, 0x1, RZ"
    if "R10" in high:
        assert _exact(f"{low} ;\n{changed} ;\n{high} ;\n{_TESTED}", tier=True)


@pytest.mark.parametrize("tier", [False, True])
def test_shuffled_words_are_read_later(tier: bool) -> None:
    both = "SHFL.BFLY PT, R12, R6, 0x1, 0x1f ;\nSHFL.BFLY PT, R13, R7, 0x1, 0x1f ;\n"
    assert not _exact(both + "STG.E.64 [R2.64], R12 ;", tier=tier)
    assert _exact(both + "LOP3.LUT R12, R12, 0x1, RZ, 0xc0, !PT ;\nSTG.E [R2.64], R12 ;", tier=tier)
    assert _exact(both + "MOV R13, 0x7ff00000 ;\n" + _TESTED, tier=tier)


_SKIPPED = "@P0 BRA `(.L) ;\nMOV R13, R7 ;\n.L:\n"


@pytest.mark.parametrize("tier", [False, True])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("F2F.F32.F64 R10, R6 ;\nFADD R10, R10, R4 ;\nSTG.E [R2.64], R10 ;", False),
        ("F2F.F32.F64 R13, R6 ;\nMOV R12, R4 ;\n" + _TESTED, True),
        ("F2F.F32.F64 R13, R6 ;\nMOV R12, R4 ;\n" + _SKIPPED + _TESTED, True),
        ("F2F.F32.F64 R9, R6 ;\nMOV R7, R9 ;\n" + _SKIPPED + "MUFU.RCP64H R9, R7 ;", True),
        (_SKIPPED + "MUFU.RCP64H R9, R7 ;", False),
    ],
)  # fmt: skip
def test_a_float_as_a_high_word(text: str, expected: bool, tier: bool) -> None:
    """A NaN of binary32 is the high word of a large double."""
    assert _exact(text, tier=tier) is expected


_KERNEL = """
S2R R0, SR_TID.X ;
ULDC.64 UR6, c[0x0][0x208] ;
ULDC.64 UR4, c[0x0][0x210] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
IMAD.WIDE R2, R0, 0x8, R2 ;
LDG.E.64 R8, desc[UR6][R2.64] ;
ULDC.64 UR4, c[0x0][0x218] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
IMAD.WIDE R2, R0, 0x8, R2 ;
LDG.E.64 R10, desc[UR6][R2.64] ;
ULDC.64 UR4, c[0x0][0x220] ;
MOV R4, UR4 ;
MOV R5, UR5 ;
IMAD.WIDE R4, R0, 0x4, R4 ;
{form} ;
MOV R7, 0x7ff00000 ;
DSETP.GT.AND P0, PT, R6, 1, PT ;
SEL R12, RZ, 0x1, P0 ;
STG.E desc[UR6][R4.64], R12 ;
EXIT ;
"""


@pytest.mark.parametrize("form", ["DADD R6, R8, R10", "DFMA R6, R8, R10, R10", "DMUL R6, R8, -R10"])
@pytest.mark.parametrize("tier", [False, True])
def test_an_infinity_above_the_low_word_of_a_nan(form: str, tier: bool) -> None:
    """An infinity if the NaN that NVIDIA chooses has a low word of zero, and NaN otherwise."""
    some = (0x7FF8000000000000, 0x7FF8000000000007, 0xFFF8000000000000, 0x3FF0000000000000)
    pairs = np.array([(a, b) for a in some for b in some], np.uint64)
    first, second = (pairs[:, n].copy().view(np.uint32) for n in (0, 1))
    cubin = with_code(assembled(_KERNEL.format(form=form), 90), 90)
    inputs = first, second, np.zeros(len(pairs), np.uint32)
    launch = Prepared(cubin, "divergent_if", (1, 1, 1), (len(pairs), 1, 1), inputs, len(pairs))
    ours, theirs = launch.interpreted(), launch.translated(tier=tier)
    assert ours.tolist() == theirs.tolist()
    assert len(set(theirs.tolist())) == 2


def _same(seed: int, arch: int) -> None:
    prepared = generated_nans.of_seed(seed, arch, generated_nans.Doubles)
    ours = prepared.interpreted()
    for tier in (False, True):
        theirs = prepared.translated(tier=tier)
        wrong = np.flatnonzero(ours != theirs)
        assert [(tier, int(i), hex(ours[i]), hex(theirs[i])) for i in wrong[:4]] == []


@pytest.mark.parametrize(("seed", "arch"), [(1, 80), (2, 90)])
def test_random_doubles(seed: int, arch: int) -> None:
    _same(seed, arch)


@pytest.mark.sweep
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("seed", range(400))
def test_more_random_doubles(seed: int, arch: int) -> None:
    _same(seed, arch)
