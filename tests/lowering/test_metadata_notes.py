"""Code objects whose kernels have a note of metadata each, as the linker leaves those of several
assembled files (rocBLAS's)."""

from __future__ import annotations

import struct

import pytest

from sassxlate.errors import EncodeError
from sassxlate.lowering.codeobject.code_object import KernelImage, metadata_note, read, write
from sassxlate.lowering.target import target_named

GFX1100 = target_named("gfx1100")
_NOTE_SEGMENT = 4
END = bytes.fromhex("0000b0bf")  # s_endpgm


def with_notes(code_object: bytes, described: list[bytes]) -> bytes:
    """The code object with these notes of metadata at its end, in place of its own."""
    notes = b"".join(
        struct.pack("<III", 7, len(d), 32) + b"AMDGPU\0\0" + d + bytes(-len(d) % 4)
        for d in described
    )
    out = bytearray(code_object + bytes(-len(code_object) % 4))
    place = len(out)
    out += notes
    table, count = struct.unpack_from("<Q", out, 32)[0], struct.unpack_from("<H", out, 56)[0]
    (at,) = (
        table + 56 * n
        for n in range(count)
        if struct.unpack_from("<I", out, table + 56 * n)[0] == _NOTE_SEGMENT
    )
    struct.pack_into("<Q", out, at + 8, place)
    struct.pack_into("<QQ", out, at + 32, len(notes), len(notes))
    return bytes(out)


def test_each_kernel_has_its_own() -> None:
    kernels = [KernelImage(name, END, 8, 16, 64 * size, 0, 8) for size, name in enumerate("abc", 1)]
    whole = write(kernels, GFX1100)
    parted = read(with_notes(whole, [metadata_note([k], GFX1100) for k in kernels]))
    for name in "abc":
        metadata = parted.kernel(name).metadata
        assert metadata == read(whole).kernel(name).metadata
        assert metadata[".name"] == name


def test_a_later_note_that_is_no_map() -> None:
    kernel = KernelImage("a", END, 8, 16, 0, 0, 8)
    broken = with_notes(write([kernel], GFX1100), [metadata_note([kernel], GFX1100), b"\x01"])
    with pytest.raises(EncodeError, match="SX0534"):
        read(broken)
