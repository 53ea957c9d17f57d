"""Atomics on 128 bits: other accesses in the same kernel (for their results see tests/e2e)."""

from __future__ import annotations

import pytest

from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from tests.disasm.sass.interpreter.launches import assembled, with_code

_KERNEL = """
ULDC.64 UR4, c[0x0][0x220] ;
ULDC.64 UR6, c[0x0][0x208] ;
MOV R2, UR4 ;
MOV R3, UR5 ;
{first} ;
ATOMG.E.EXCH.128.STRONG.GPU PT, R8, desc[UR6][R2.64], R4 ;
{last} ;
EXIT ;
"""


def _translate(first: str, last: str) -> None:
    code = assembled(_KERNEL.format(first=first, last=last), 90)
    translate_kernel(with_code(code, 90), "divergent_if")


def test_plain_accesses() -> None:
    _translate("LDG.E.128 R4, desc[UR6][R2.64]", "STG.E.128 desc[UR6][R2.64+0x10], R8")


@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("LDG.E.128.STRONG.GPU R4, desc[UR6][R2.64]", "NOP"),
        ("LD.E.128.STRONG.SYS R4, desc[UR6][R2.64]", "NOP"),
        ("NOP", "STG.E.128.STRONG.GPU desc[UR6][R2.64], R8"),
        ("NOP", "ST.E.128.STRONG.GPU desc[UR6][R2.64], R8"),
    ],
)
def test_strong_accesses_that_may_come_in_parts(first: str, last: str) -> None:
    with pytest.raises(LoweringError, match=r"SX0410.*strong 128-bit access"):
        _translate(first, last)
