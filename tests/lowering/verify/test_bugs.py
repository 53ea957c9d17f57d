"""Translations that were wrong until the verifier refuted them; each was confirmed on an H200."""

from __future__ import annotations

import pytest

pytest.importorskip("z3", reason="z3-solver is not installed")

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.lowering.verify import Proved, Refuted, Unknown, verify
from sassxlate.lowering.verify.rules.verify import RuleCheckSettings, verify_word

from .one import block_of

# The silicon template's scheduling information.
_CONTROL = "[B------:R-:W-:Y:S15] "


@pytest.mark.parametrize("text", ["MUFU.RCP R10, R2", "MUFU.RSQ R10, R2"])
def test_odd_results_of_denormals(text: str) -> None:
    """0x007fffff and 0x006e9372 count as 0: infinite, not a NaN."""
    assert not isinstance(verify(block_of(assemble(f"{_CONTROL}{text} ;", 90))), Refuted)


@pytest.mark.parametrize(
    "text",
    [
        "F2FP.BF16.F32.PACK_AB.RZ R10, R4, R2",  # a NaN with a low payload became infinite
        "MUFU.RCP64H R10, R2",  # a denormal result was kept
        "FCHK P3, R4, R2",  # took the slow path too often
    ],
)
def test_proved_since(text: str) -> None:
    assert isinstance(verify(block_of(assemble(f"{_CONTROL}{text} ;", 90))), Proved)


def test_second_word_of_a_uniform_pair() -> None:
    """CS2UR of 64 bits left the upper register as it was."""
    word = 0x000FDE000001FF0000000000001078CB  # CS2UR UR16, SRZ
    assert verify_word(decode(word, 0, 120), RuleCheckSettings(arch=120)) == ("proved", "")


@pytest.mark.parametrize("text", ["F2I.FTZ.F64.FLOOR R10, R2", "F2I.FTZ.S64.F64.CEIL R10, R2"])
def test_flushed_doubles(text: str) -> None:
    """.FTZ flushes denormal doubles, too; once forgotten: proved, or equal on random inputs."""
    verdict = verify(block_of(assemble(f"{_CONTROL}{text} ;", 90)))
    assert isinstance(verdict, Proved | Unknown)
    assert isinstance(verdict, Proved) or "random inputs agree" in verdict.reason
