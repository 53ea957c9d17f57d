"""Fatbin containers: compressions, kinds, and every way in which a header can lie."""

from __future__ import annotations

import struct
from pathlib import Path

import lz4.block
import pytest
import zstandard

from sassxlate.disasm.containers import find_fatbins, load, parse_cubin, parse_fatbin
from sassxlate.errors import ContainerError

from .conftest import DATA, container, entry

PTX = b".version 9.0\n.target sm_80\n" + b"// padding\n" * 200
LZ4 = lz4.block.compress(PTX, store_size=False)
ZSTD = zstandard.ZstdCompressor().compress(PTX)


def unpacked(data: bytes) -> list[bytes]:
    """The contents of the entries, which are unpacked on access."""
    return [e.payload for e in parse_fatbin(data).entries]


def refused(data: bytes) -> ContainerError:
    with pytest.raises(ContainerError) as caught:
        unpacked(data)
    assert caught.value.where.offset is not None
    return caught.value


def test_three_compressions_hold_the_same() -> None:
    none, speed, size = (
        parse_fatbin((DATA / f"{m}.fatbin").read_bytes()).entries for m in ("none", "speed", "size")
    )
    assert [(e.kind, e.arch, e.variant) for e in none] == [
        ("elf", 75, ""),
        ("ptx", 75, ""),
        ("elf", 90, "a"),
    ]
    assert {e.compression for e in none} == {"none"}
    assert [e.compression for e in speed] == ["none", "lz4", "none"]  # LZ4 gains nothing on cubins
    assert {e.compression for e in size} == {"zstd"}
    for stored, fast, small in zip(none, speed, size, strict=True):
        plain = stored.payload.rstrip(b"\0")
        assert fast.payload.rstrip(b"\0") == plain
        assert small.payload.rstrip(b"\0") == plain
        assert small.stored < stored.stored
        assert (len(small.payload), len(fast.payload)) == (small.size, fast.size)
    for e in (none[0], speed[0], size[0]):
        assert len(parse_cubin(e.payload).kernels) == 3


def test_entries_have_names_and_places() -> None:
    data = (DATA / "named.fatbin").read_bytes()
    fatbin = parse_fatbin(data, module=3, offset=64)
    assert (fatbin.module, fatbin.offset) == (3, 64)
    assert {e.name for e in fatbin.entries} == {"linked_b.cu"}
    for e in fatbin.entries:
        (header,) = struct.unpack_from("<I", data, e.offset + 4)
        there = data[e.offset + header :][: e.stored]
        assert there.startswith(bytes(e.packed.body))


def test_ptx_alone() -> None:
    (e,) = parse_fatbin((DATA / "ptx.fatbin").read_bytes()).entries
    assert e.kind == "ptx"
    assert b".target sm_80" in e.payload


def test_device_link() -> None:
    (e,) = parse_fatbin((DATA / "linked.fatbin").read_bytes()).entries
    cubin = parse_cubin(e.payload)
    assert {k.demangled for k in cubin.kernels} == {"first(int*)", "second(int*)"}
    assert {f.demangled for f in cubin.functions} == {"twice(int)", "own(int)"}
    first = next(k for k in cubin.kernels if k.name.startswith("_Z5first"))
    assert "_Z5twicei" in {r.symbol for r in first.relocs}


def test_bytes_after_the_container_are_ignored() -> None:
    data = container(entry(PTX, kind=1))
    assert parse_fatbin(data + b"rubbish").entries == parse_fatbin(data).entries


def test_kinds() -> None:
    data = container(*(entry(b"x" * 8, kind=k) for k in (1, 2, 8, 64)))
    assert [e.kind for e in parse_fatbin(data).entries] == ["ptx", "elf", "ltoir", "other"]


def test_compressed_by_hand() -> None:
    data = container(
        entry(LZ4, kind=1, flags=0x2011, compressed=len(LZ4), plain=len(PTX)),
        entry(ZSTD, kind=1, flags=0x8011, compressed=len(ZSTD), plain=len(PTX)),
    )
    assert [e.payload for e in parse_fatbin(data).entries] == [PTX, PTX]
    assert [e.compression for e in parse_fatbin(data).entries] == ["lz4", "zstd"]


def test_empty_container() -> None:
    assert parse_fatbin(container()).entries == ()


def test_find_fatbins() -> None:
    one = container(entry(PTX, kind=1))
    false = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 40)  # announces more than there is
    data = bytes(16) + one + bytes(8) + false + one
    first, second = find_fatbins(data)
    assert first == 16
    assert data[second:] == one
    assert list(find_fatbins(b"\0" + one)) == []
    assert list(find_fatbins(b"\0" + one, step=1)) == [1]


BROKEN: dict[str, tuple[str, bytes]] = {
    "empty": ("SX0112", b""),
    "header cut off": ("SX0112", container()[:12]),
    "magic": ("SX0111", container(magic=0xBA55ED51)),
    "version": ("SX0111", container(version=2)),
    "longer than the data": ("SX0112", container(entry(PTX))[:-1]),
    "size near 2**64": ("SX0112", container(entry(PTX), size=(1 << 64) - 16)),
    "entry cut off": ("SX0113", container(b"\1" * 63)),
    "entry version": ("SX0113", container(entry(PTX, version=0x0201))),
    "entry header too small": ("SX0113", container(entry(PTX, header=63))),
    "entry header too large": ("SX0113", container(entry(PTX, header=1 << 30))),
    "entry of 2**63 bytes": ("SX0113", container(entry(PTX, stored=1 << 63))),
    "compressed beyond stored": ("SX0113", container(entry(PTX, compressed=len(PTX) + 64))),
    "name outside": ("SX0113", container(entry(PTX, name=(60, 32)))),
    "name near 2**32": ("SX0113", container(entry(PTX, name=(0xFFFFFFF0, 32)))),
    "two compressions": (
        "SX0114",
        container(entry(ZSTD, flags=0xA011, compressed=len(ZSTD), plain=len(PTX))),
    ),
    "no compressed size": ("SX0114", container(entry(ZSTD, flags=0x8011, plain=len(PTX)))),
    "no Zstandard": ("SX0114", container(entry(PTX, flags=0x8011, compressed=100, plain=200))),
    "no LZ4": ("SX0114", container(entry(b"\xff" * 64, flags=0x2011, compressed=64, plain=200))),
    "LZ4 declares too much": (
        "SX0115",
        container(entry(LZ4, flags=0x2011, compressed=len(LZ4), plain=1 << 30)),
    ),
    "Zstandard declares too much": (
        "SX0115",
        container(entry(ZSTD, flags=0x8011, compressed=len(ZSTD), plain=1 << 30)),
    ),
    "declares 2**64 - 1": (
        "SX0115",
        container(entry(ZSTD, flags=0x8011, compressed=len(ZSTD), plain=(1 << 64) - 1)),
    ),
    "LZ4 too long": (
        "SX0114",
        container(entry(LZ4, flags=0x2011, compressed=len(LZ4), plain=len(PTX) - 1)),
    ),
    "LZ4 too short": (
        "SX0116",
        container(entry(LZ4, flags=0x2011, compressed=len(LZ4), plain=len(PTX) + 1)),
    ),
    "Zstandard too long": (
        "SX0116",
        container(entry(ZSTD, flags=0x8011, compressed=len(ZSTD), plain=len(PTX) - 1)),
    ),
    "Zstandard too short": (
        "SX0116",
        container(entry(ZSTD, flags=0x8011, compressed=len(ZSTD), plain=len(PTX) + 1)),
    ),
    "Zstandard cut off": (
        "SX0116",
        container(entry(ZSTD[:-6], flags=0x8011, compressed=len(ZSTD) - 6, plain=len(PTX))),
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken(case: str) -> None:
    code, data = BROKEN[case]
    assert refused(data).code == code


def test_a_bomb_is_not_decompressed() -> None:
    """64 MiB of zeros in 2 kB: the declared size is believed only as far as it is plausible."""
    bomb = zstandard.ZstdCompressor(level=19).compress(bytes(1 << 27))
    assert len(bomb) < 1 << 15
    data = container(entry(bomb, flags=0x8011, compressed=len(bomb), plain=1 << 27))
    assert refused(data).code == "SX0115"
    honest = container(entry(bomb, flags=0x8011, compressed=len(bomb), plain=4096))
    assert refused(honest).code == "SX0116"


def test_error_offsets_count_from_the_file(tmp_path: Path) -> None:
    data = container(entry(PTX), entry(PTX, version=7))
    with pytest.raises(ContainerError) as caught:
        parse_fatbin(data, offset=1000)
    second = 16 + len(entry(PTX))
    assert caught.value.where.offset == 1000 + second
    path = tmp_path / "broken.fatbin"
    path.write_bytes(data)
    with pytest.raises(ContainerError) as caught:
        load(path)
    assert (caught.value.where.file, caught.value.where.offset) == (str(path), second)
