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


@pytest.mark.parametrize(
    "words",
    [["IADD3 R2, R2, c[0x0][0x124], RZ"], ["MOV R2, 0x124", "LDC R2, c[0x0][R2]"]],
)
def test_memory_of_tiles_of_several_warps(words: list[str]) -> None:
    """Its place, read as it stands or at an index, is after dynamic shared memory, in LDS of its
    own, which the kernel clears before anything else (it was read as 0: the block's own)."""
    data = KERNEL.read_bytes()
    (kernel,) = parse_cubin(data).kernels
    place = data.index(kernel.code) + AT
    code = b"".join(
        assemble(text, 80, AT + 16 * n).to_bytes(16, "little") for n, text in enumerate(words)
    )
    changed = parse_cubin(data[:place] + code + data[place + len(code) :])
    plain = translate_kernel(parse_cubin(data), kernel.name)
    done = translate_kernel(changed, kernel.name)
    launch = done.selected.launch
    fills = {fill.offset: fill for fill in launch.fills}
    static = (kernel.shared_size + 15) & ~15
    assert str(fills[0x124]) == f"fill {0x124} reserved_shared {static}"
    assert launch.lds_static >= plain.selected.launch.lds_static + 288
    image = launch.kernarg(b"", (32, 1, 1), (1, 1, 1), dynamic_shared=20)
    assert int.from_bytes(image[0x124:0x128], "little") == static + 32
    first, *_ = done.assembly.split("s_barrier")
    assert first.count("ds_store_b32") == 3
