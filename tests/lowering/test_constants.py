"""Constants in the upper half of a bank of 64 KiB, which are printed as negative offsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from sassxlate.disasm.containers import parse_cubin
from sassxlate.disasm.rdna3.codec.decode.instruction import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.errors import LoweringError
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.pipeline import translate_kernel

KERNEL = Path(__file__).resolve().parents[2] / "fixtures/kernels/sm_80/early_exit.cubin"
AT = 0x30


@pytest.mark.parametrize(
    "text",
    ["IADD3 R2, R2, c[0x0][-0x6880], RZ", "LDC R2, c[0x0][-0x6880]", "ULDC UR5, c[0x0][-0x6880]"],
    ids=lambda t: t.split(" ")[0],
)
def test_upper_half(text: str) -> None:
    """The load goes to 0x9780, not below the kernel's arguments."""
    data = KERNEL.read_bytes()
    (kernel,) = parse_cubin(data).kernels
    place = data.index(kernel.code) + AT
    word = assemble(text, 80, AT).to_bytes(16, "little")
    changed = parse_cubin(data[:place] + word + data[place + 16 :])
    done = read(translate_kernel(changed, kernel.name).code_object)
    at, places = done.kernels[0].entry, set[int]()
    while at < len(done.text):
        inst, size = decode(done.text, at)
        if inst.op.startswith("s_load"):
            places.add(inst.imm)
        if inst.op == "s_endpgm":
            break
        at += size
    assert all(p >= 0 for p in places)
    if not text.startswith("ULDC"):  # its result is not used
        assert any(p <= 0x9780 < p + 64 for p in places)


@pytest.mark.parametrize("text", ["IADD3 R2, R2, c[0x0][0x5c], RZ", "LDC R2, c[0x0][0x3c]"])
def test_unknown_words_of_the_driver_are_refused(text: str) -> None:
    """The launcher does not write them: a kernel would read 0."""
    data = KERNEL.read_bytes()
    (kernel,) = parse_cubin(data).kernels
    place = data.index(kernel.code) + AT
    word = assemble(text, 80, AT).to_bytes(16, "little")
    changed = parse_cubin(data[:place] + word + data[place + 16 :])
    with pytest.raises(
        LoweringError, match=r"the driver's word 0x\w+ of constant bank 0"
    ) as caught:
        translate_kernel(changed, kernel.name)
    assert caught.value.code == "SX0413"
