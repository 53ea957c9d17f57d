"""Clusters of single blocks: barriers are BAR.SYNC 0 at the wait, and constants say one block.

Kernels for larger clusters are refused, by the interpreter, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sassxlate.disasm.containers.values import Attribute
from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from tests.disasm.sass.interpreter.launches import Prepared, assembled, with_code

# Each thread leaves 3 t in shared memory, and reads what the thread from the other end left there.
_KERNEL = """
ULDC.64 UR4, c[0x0][0x220] ;
ULDC.64 UR6, c[0x0][0x208] ;
S2R R0, SR_TID.X ;
IMAD R4, R0, 0x3, RZ ;
IMAD.SHL R5, R0, 0x4, RZ ;
STS [R5+0x400], R4 ;
UCGABAR_ARV ;
{guard}UCGABAR_WAIT ;
IADD3 R6, -R0, 0x5f, RZ ;
IMAD.SHL R6, R6, 0x4, RZ ;
LDS R8, [R6+0x400] ;
MOV R10, UR4 ;
MOV R11, UR5 ;
IMAD.WIDE.U32 R2, R0, 0x4, R10 ;
STG.E desc[UR6][R2.64], R8 ;
EXIT ;
"""


def _prepared(guard: str = "") -> Prepared:
    cubin = with_code(assembled(_KERNEL.format(guard=guard), 90), 90, 4 * 96)
    words = np.zeros(96, np.uint32)
    return Prepared(cubin, "divergent_if", (1, 1, 1), (96, 1, 1), (words, words, words), 96)


def test_a_wait_is_a_barrier_of_the_block() -> None:
    prepared = _prepared()
    want = 3 * np.arange(95, -1, -1)
    assert prepared.interpreted().tolist() == want.tolist()
    assert prepared.translated(strict=True).tolist() == want.tolist()


def test_a_guarded_one_is_refused() -> None:
    with pytest.raises(LoweringError, match="SX040"):
        translate_kernel(_prepared("@UP0 ").cubin, "divergent_if")


def _of(prepared: Prepared, *blocks: int) -> Prepared:
    """The same, compiled for clusters of so many blocks."""
    size = Attribute(0x3D, "EIATTR_CTA_PER_CLUSTER", np.array(blocks, "<u4").tobytes())
    given = Attribute(0x3E, "EIATTR_EXPLICIT_CLUSTER", b"", "NVAL")
    kernels = [replace(k, attributes=(*k.attributes, given, size)) for k in prepared.cubin.kernels]
    return replace(prepared, cubin=replace(prepared.cubin, kernels=tuple(kernels)))


def test_larger_clusters_are_refused() -> None:
    """Once they ran as single blocks, with zeros for the shape of the cluster."""
    prepared = _of(_prepared(), 2, 1, 1)
    with pytest.raises(LoweringError, match="clusters of 2x1x1 blocks") as caught:
        translate_kernel(prepared.cubin, "divergent_if")
    assert caught.value.code == "SX0428"
    with pytest.raises(LoweringError, match="clusters of 2x1x1 blocks"):
        prepared.interpreted()


# Each thread stores the word of constant bank 0 at 0x140 + 4 t; grid.x is 3.
_WORDS = """
ULDC.64 UR4, c[0x0][0x220] ;
ULDC.64 UR6, c[0x0][0x208] ;
S2R R0, SR_TID.X ;
LDC R9, c[0x0][0x144] ;
IMAD.SHL R5, R0, 0x4, RZ ;
LDC R8, c[0x0][R5+0x140] ;
MOV R10, UR4 ;
MOV R11, UR5 ;
IMAD.WIDE.U32 R2, R0, 0x4, R10 ;
STG.E desc[UR6][R2.64], R8 ;
EXIT ;
"""


@pytest.mark.parametrize("explicit", [False, True])
def test_words_of_single_blocks(explicit: bool) -> None:
    cubin = with_code(assembled(_WORDS, 90), 90, 0)
    words = np.zeros(32, np.uint32)
    prepared = Prepared(cubin, "divergent_if", (3, 1, 1), (32, 1, 1), (words, words, words), 32)
    if explicit:
        prepared = _of(prepared, 1, 1, 1)
    want = np.zeros(32, np.uint32)
    want[0], want[1:4], want[4:7], want[7:10], want[18] = explicit, 1, 0x3F800000, (3, 1, 1), 1
    for got in (prepared.interpreted(), prepared.translated(strict=True)):
        assert got[:10].tolist() == want[:10].tolist()
        assert got[18] == 1
