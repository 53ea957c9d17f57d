"""Loads under a guard from constant places of the kernel's own shared memory need no branch."""

from __future__ import annotations

import numpy as np
import pytest

from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import module_text
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code

_TEXT = """
S2R R0, SR_TID.X ;
ULDC.64 UR4, c[0x0][0x118] ;
MOV R6, 0x4 ;
SHF.L.U32 R7, R0, 0x2, RZ ;
IMAD.WIDE R2, R0, R6, c[0x0][0x160] ;
LDG.E R4, [R2.64] ;
IMAD.WIDE R2, R0, R6, c[0x0][0x170] ;
STS [R7], R4 ;
BAR.SYNC.DEFER_BLOCKING 0x0 ;
ISETP.GT.AND P0, PT, R4, RZ, PT ;
MOV R8, R4 ;
{load} ;
STG.E [R2.64], R8 ;
EXIT ;
"""
_THREADS = 64
_SHARED = 4 * _THREADS


@pytest.mark.parametrize(
    ("load", "branches"),
    [
        ("@P0 LDS R8, [0x10]", False),
        ("@P0 LDS.U16 R8, [0x22]", False),
        ("@!P0 LDS R8, [0xfc]", False),
        ("@P0 LDS R8, [R7+0x10]", True),  # which may be beyond the end where it is not asked for
    ],
)
def test_what_is_there_is_loaded_without_a_branch(load: str, *, branches: bool) -> None:
    cubin = with_code(assembled(_TEXT.format(load=load), 80), 80, _SHARED)
    text = module_text(translate_kernel(cubin, "divergent_if"), DEFAULT)
    assert ("br i1" in text) == branches
    words = np.arange(_THREADS, dtype=np.uint32) * 0x01010203 ^ np.uint32(0x55AA55AA)
    words[-4:] ^= 0x80000000
    prepared = Prepared(
        cubin, "divergent_if", (2, 1, 1), (_THREADS, 1, 1), (words, words, words), 0
    )
    if not branches:
        assert np.array_equal(prepared.translated(tier=True), prepared.interpreted())


def test_a_constant_beyond_the_end_is_loaded_by_the_lanes_that_ask_for_it() -> None:
    """Those of dynamic shared memory, too: the launch says how much there is."""
    for place, branches in ((_SHARED - 4, False), (_SHARED, True), (_SHARED - 2, True)):
        load = f"@P0 LDS R8, [{place:#x}]"
        cubin = with_code(assembled(_TEXT.format(load=load), 80), 80, _SHARED)
        text = module_text(translate_kernel(cubin, "divergent_if"), DEFAULT)
        assert ("br i1" in text) == branches, place
