"""The table of the kernel descriptor's 64 bytes: each bit is one field's, or reserved."""

from __future__ import annotations

from dataclasses import fields as fields_of
from dataclasses import replace

import pytest

from sassxlate.disasm.rdna3.tables import kernel_descriptor
from sassxlate.errors import EncodeError
from sassxlate.lowering.codeobject.descriptor import Descriptor, unpack
from sassxlate.lowering.target import GFX1100

OURS = Descriptor(
    group_segment_size=1024, private_segment_size=16, kernarg_size=560, entry=-4096, vgprs=24,
    user_sgpr_count=13, float_mode=0xE4,
)  # fmt: skip
# As LLVM assembles the directives of these values, with the entry's place put in.
BYTES = bytes.fromhex(
    "00040000 10000000 30020000 00000000 00f0ffff ffffffff"
    "0000000000000000000000000000000000000000"
    "00000000 02402ec0 9a130000 0804 0000 00000000"
)


def bits(name: str) -> set[int]:
    """The bits of the 512 that a field or a word sets."""
    word = kernel_descriptor.WORDS[
        kernel_descriptor.FIELDS[name].word if name in kernel_descriptor.FIELDS else name
    ]
    if name in kernel_descriptor.FIELDS:
        field = kernel_descriptor.FIELDS[name]
        return {8 * word.offset + field.lo + i for i in range(field.width)}
    return {8 * word.offset + i for i in range(8 * word.size)}


def test_bytes() -> None:
    assert OURS.pack(GFX1100) == BYTES
    assert unpack(BYTES, GFX1100) == OURS
    assert unpack(BYTES + b"more", GFX1100) == OURS


def test_every_bit_has_one_owner() -> None:
    taken: set[int] = set()
    split = {field.word for field in kernel_descriptor.FIELDS.values()}
    for name in (*(kernel_descriptor.WORDS.keys() - split), *kernel_descriptor.FIELDS):
        assert not taken & bits(name), name
        taken |= bits(name)
    for bit in range(512):
        data = (1 << bit).to_bytes(64, "little")
        if bit in taken - bits(kernel_descriptor.PRELOAD):
            kernel_descriptor.fields(data)
        else:
            with pytest.raises(EncodeError, match=r"SX0533.*reserves"):
                kernel_descriptor.fields(data)


@pytest.mark.parametrize("name", kernel_descriptor.FIELDS)
def test_a_field_packs_where_it_is_read(name: str) -> None:
    field = kernel_descriptor.FIELDS[name]
    top = (1 << field.width) - 1
    data = kernel_descriptor.pack({name: top})
    assert {i for i in range(512) if data[i // 8] >> i % 8 & 1} == bits(name)
    assert kernel_descriptor.value(kernel_descriptor.words(data), field) == top
    with pytest.raises(EncodeError, match="SX0530"):
        kernel_descriptor.pack({name: top + 1})


@pytest.mark.parametrize("part", [f.name for f in fields_of(Descriptor) if f.name != "wave32"])
def test_each_value_comes_back(part: str) -> None:
    old = getattr(OURS, part)
    new = not old if isinstance(old, bool) else {"vgprs": 256, "workitem_id_dims": 1}.get(part, 7)
    changed = replace(OURS, **{part: new})
    assert changed.pack(GFX1100) != BYTES
    assert unpack(changed.pack(GFX1100), GFX1100) == changed


def test_the_count_of_scalar_registers_is_ignored() -> None:
    """GRANULATED_WAVEFRONT_SGPR_COUNT is gfx9's; AMD's compilers write it for gfx11 too."""
    gfx9 = bytearray(BYTES)
    gfx9[49] |= 1
    assert unpack(bytes(gfx9), GFX1100) == unpack(BYTES, GFX1100)


def test_refused() -> None:
    wide = replace(OURS, wave32=False).pack(GFX1100)
    for data in (BYTES[:63], wide, BYTES[:58] + b"\1" + BYTES[59:]):
        with pytest.raises(EncodeError, match="SX0533"):
            unpack(data, GFX1100)
    with pytest.raises(EncodeError, match="SX0530"):
        replace(OURS, vgprs=257).pack(GFX1100)
