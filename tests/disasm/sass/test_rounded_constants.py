"""FRND of an immediate, up to sm_89: the row of halves took the type of floats, and that of floats
was not there, so that neither was read (a kernel with floorf of a constant was refused)."""

from __future__ import annotations

import pytest

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.codec.legality import CONTROL_BITS
from sassxlate.disasm.sass.tables.spec import GENERATIONS

# As nvcc 13.0 wrote the first; the texts are nvdisasm 13.1's for sm_75 to sm_89.
WORDS = {
    0x000EA20000205000_7F800000000D7907: "FRND.FLOOR R13, +INF",
    0x000EA20000104800_00003C00000D7907: "FRND.F16.FLOOR R13, 1",
    0x000EA20000201000_BF000000000D7907: "FRND R13, -0.5",
}


@pytest.mark.parametrize("arch", [a for a in GENERATIONS if a < 90])
@pytest.mark.parametrize("word", WORDS)
def test_rounding_an_immediate(arch: int, word: int) -> None:
    inst = decode(word, 0, arch)
    assert inst.text == WORDS[word]
    assert not (assemble(inst.text, arch) ^ word) & ~CONTROL_BITS
