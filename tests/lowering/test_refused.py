"""Instructions that are decoded but not translated are refused by name, with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import LoweringError
from sassxlate.lowering.pipeline import translate_kernel

KERNEL = Path(__file__).resolve().parents[2] / "fixtures/kernels/sm_80/early_exit.cubin"
AT = 0x30

REFUSED = [
    "TXQ.B RZ, R9, R8, TEX_HEADER_DIMENSION, 0x1",
    "SULD.D.BA.2D.128.STRONG.SM.TRAP R8, [R2], 0x0, 0x58",
    "SURED.D.BA.1D.ADD.STRONG.SYS [R4], R0, R7",
    "ALD R4, a[0x40]",
    "IPA.PASS R5, a[0x40]",
    "FSWZADD R5, R8, R16, PPPNNPZP",
    "RPCMOV.32 R5, Rpc.LO",
    "PMTRIG 0x1",
    "KILL",
    "JMP 0x40",
]


@pytest.mark.parametrize("text", REFUSED, ids=lambda t: t.split(" ")[0])
def test_by_name_and_place(text: str) -> None:
    """The mnemonic and the offset are in the error; nothing is translated."""
    data = KERNEL.read_bytes()
    (kernel,) = parse_cubin(data).kernels
    place = data.index(kernel.code) + AT
    word = assemble(text, 80, AT).to_bytes(16, "little")
    changed = parse_cubin(data[:place] + word + data[place + 16 :])
    with pytest.raises(LoweringError) as caught:
        translate_kernel(changed, kernel.name)
    assert caught.value.code == "SX0403"
    assert text.split(" ")[0].split(".")[0] in str(caught.value)
    assert f"{AT:04x}" in str(caught.value)
