"""Offload bundles and code objects that say more than they hold: refused in little memory."""

from __future__ import annotations

import resource
import struct
from pathlib import Path

import pytest
import zstandard

from sassxlate.disasm.containers import code_object, offload_bundle
from sassxlate.errors import EncodeError

BENCH = Path(__file__).resolve().parents[3] / "fixtures" / "bench" / "alu.hsaco"


def compressed(plain: bytes, whole: int) -> bytes:
    """A compressed bundle that declares ``whole`` bytes."""
    body = zstandard.ZstdCompressor(write_content_size=False).compress(plain)
    return b"CCOB" + struct.pack("<HHIIQ", 2, 1, 24 + len(body), whole, 0) + body


def bundle(count: int, each: int) -> bytes:
    """A bundle of so many entries, all of the same bytes."""
    name = b"hipv4-amdgcn-amd-amdhsa--gfx1100"
    head = 32 + count * (24 + len(name))
    entries = (struct.pack("<QQQ", head, each, len(name)) + name) * count
    return b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", count) + entries + bytes(each)


@pytest.mark.parametrize(
    "data",
    [
        compressed(bytes(1 << 20), 0xFFFFFFFF),
        compressed(bytes(1 << 20), 1 << 29),
        bundle(2000, 1 << 20),
    ],
    ids=["four gigabytes", "half a gigabyte", "shared bytes"],
)
def test_bundles(data: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EncodeError, match=r"SX0532.*are left for the file"):
        offload_bundle.unbundle(data)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10


def test_a_frame_that_says_another_size() -> None:
    """Its header is not believed: memory would be taken for it."""
    body = zstandard.ZstdCompressor().compress(bytes(300))
    data = b"CCOB" + struct.pack("<HHIIQ", 2, 1, 24 + len(body), 200, 0) + body
    with pytest.raises(EncodeError, match="holds 300 bytes, not 200"):
        offload_bundle.unbundle(data)


def test_many_bundles_have_one_room() -> None:
    """As a host program has them."""
    room = offload_bundle.Room.of(1000)
    data = compressed(b"__CLANG_OFFLOAD_BUNDLE__" + bytes((100 << 20) - 24), 100 << 20)
    for _ in range(2):
        assert offload_bundle.unbundle(data, room) == ()
    with pytest.raises(EncodeError, match="SX0532"):
        offload_bundle.unbundle(data, room)


def test_sections_that_share_bytes() -> None:
    data = bytearray(BENCH.read_bytes())
    (at,) = struct.unpack_from("<Q", data, 40)
    (number,) = struct.unpack_from("<H", data, 60)
    for i in range(1, number):
        struct.pack_into("<QQ", data, at + 64 * i + 24, 0, len(data))
    with pytest.raises(EncodeError, match=r"SX0532.* share bytes"):
        code_object.read(bytes(data))


@pytest.mark.parametrize(("kind", "what"), [(1, "segments"), (4, "notes")])
def test_segments_that_share_bytes(kind: int, what: str) -> None:
    """65,535 program headers may each name the whole file."""
    data = bytearray(BENCH.read_bytes())
    size, count = 1 << 20, 2000
    struct.pack_into("<Q", data, 32, size)
    struct.pack_into("<H", data, 56, count)
    data += bytes(size - len(data))
    data += struct.pack("<IIQQQQQQ", kind, 4, 0, 0, 0, size, size, 4096) * count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EncodeError, match=f"SX0532.*its {what} share bytes"):
        code_object.read_image(bytes(data))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10


def test_section_names_that_share_bytes() -> None:
    """Each of many sections may be named by the same long string."""
    data = bytearray(BENCH.read_bytes())
    data += bytes(-len(data) % 8)
    names_at, length, count = len(data), 60000, 2000
    data += b"\0" + b"n" * length + b"\0"
    data += bytes(-len(data) % 8)
    row = struct.Struct("<IIQQQQIIQQ")
    table = row.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    table += row.pack(1, 3, 0, 0, names_at, length + 2, 0, 0, 1, 0)
    table += row.pack(1, 1, 2, 0, 0, 0, 0, 0, 1, 0) * count
    struct.pack_into("<Q", data, 40, len(data))
    struct.pack_into("<HH", data, 60, count + 2, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(EncodeError, match=r"SX0532.*names share bytes"):
        code_object.read(bytes(data + table))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10
