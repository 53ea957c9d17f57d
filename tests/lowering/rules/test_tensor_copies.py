"""Copies of tiles by tensor maps, against NumPy."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import EmulatorError
from sassxlate.lowering.rules.memory.tensor.box import MAGIC
from tests.disasm.sass.interpreter.launches import Prepared

SOURCE = Path(__file__).with_name("tensor_copies.cu")
Words = NDArray[np.uint32]
TILE = 8192  # bytes of shared memory


@dataclass(frozen=True, slots=True)
class _Map:
    """A tensor of elements of ``size`` bytes, and a box; ``swizzle``: bytes, or 16 for none."""

    size: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes, from dimension 1 on
    box: tuple[int, ...]
    at: tuple[int, ...]
    swizzle: int = 16

    @property
    def bytes(self) -> int:
        return int(np.prod(self.box)) * self.size

    def words(self) -> Words:
        """The map, the coordinates and the bytes of the box."""
        out = np.zeros(40, np.uint32)
        rank = len(self.shape)
        unit = min(self.size, 4)
        twice = int(self.size == 8)
        out[2] = MAGIC + rank
        out[3] = unit.bit_length() - 1 | twice << 2 | (self.swizzle.bit_length() - 1) << 4
        out[4 : 4 + rank], out[9 : 9 + rank] = self.shape, self.box
        out[14 : 14 + 2 * len(self.strides)] = np.array(self.strides, np.uint64).view(np.uint32)
        out[32 : 32 + rank] = np.array(self.at, np.int32).view(np.uint32)
        out[37] = self.bytes
        return out

    def moves(self, unit: int = 1) -> list[tuple[int, int | None]]:
        """For each element its byte in shared memory and in the tensor; None: outside.  A row of
        the tensor ends at a whole ``unit`` bytes."""
        row = -(-self.shape[0] * self.size // unit) * unit // self.size
        out: list[tuple[int, int | None]] = []
        steps = (self.size, *self.strides)
        places = itertools.product(*(range(n) for n in self.box[::-1]))
        for number, place in enumerate(places):
            near = number * self.size
            near ^= near >> 3 & self.swizzle - 16
            where = [c + i for c, i in zip(self.at, place[::-1], strict=True)]
            inside = all(0 <= w < n for w, n in zip(where, (row, *self.shape[1:]), strict=True))
            far = sum(w * s for w, s in zip(where, steps, strict=True))
            out.append((near, far if inside else None))
        return out


MAPS = [
    _Map(1, (45,), (), (64,), (-16,)),
    _Map(2, (40, 9), (96,), (16, 5), (24, -2)),
    _Map(8, (12, 5, 4), (96, 512), (6, 3, 4), (-2, 3, 1)),
    _Map(4, (7, 7, 4, 3), (32, 256, 1024), (8, 3, 5, 2), (4, -1, -1, 2)),
    _Map(2, (9, 4, 3, 3, 3), (32, 144, 432, 1312), (8, 3, 2, 2, 3), (8, 2, 1, 0, -1)),
    _Map(2, (70, 40), (144,), (64, 37), (8, 6), 128),
    _Map(4, (9, 20, 3), (48, 960), (8, 9, 2), (4, -3, 1), 32),
    _Map(1, (64, 33), (64,), (64, 33), (0, 0), 64),
]


@cache
def _cubin(folder: Path) -> Cubin:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    made = folder / "tensor_copies.cubin"
    flags = ["-O3", "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-cubin"]
    subprocess.run([nvcc, *flags, SOURCE, "-o", made], check=True, capture_output=True)
    return parse_cubin(made.read_bytes())


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    return _cubin(tmp_path_factory.mktemp("tensor_copies"))


def _prepared(cubin: Cubin, name: str, map_: Words, tensor: Words, out: Words) -> Prepared:
    shapes = (1, 1, 1), (32, 1, 1)
    return Prepared(cubin, name, *shapes, (tensor, map_, out), TILE // 4)


def _id(map_: _Map) -> str:
    return f"{len(map_.shape)}d-{map_.size}-{map_.swizzle}"


_FEW = MAPS[4:6]


@pytest.mark.parametrize(
    "map_",
    [pytest.param(m, id=_id(m), marks=[] if m in _FEW else [pytest.mark.sweep]) for m in MAPS],
)
def test_loads(cubin: Cubin, map_: _Map) -> None:
    """Zeros outside of the tensor; the barrier's bytes are those of the whole box."""
    tensor = np.random.default_rng(1).integers(0, 1 << 32, 2048, dtype=np.uint32)
    want = np.full(TILE // 4, 0x25A5A5A5, np.uint32).view(np.uint8)
    for near, far in map_.moves():
        data = np.zeros(map_.size, np.uint8)
        if far is not None:
            data = tensor.view(np.uint8)[far : far + map_.size]
        want[near : near + map_.size] = data
    name = f"load{len(map_.shape)}"
    out = np.zeros(TILE // 4, np.uint32)
    got = _prepared(cubin, name, map_.words(), tensor, out).translated()
    assert np.flatnonzero(got.view(np.uint8) != want).tolist() == []


def test_multicast(cubin: Cubin) -> None:
    """In a cluster of one block: to that block; the mask is in the operand's upper half."""
    tensor = np.random.default_rng(1).integers(0, 1 << 32, 2048, dtype=np.uint32)
    got: list[Words] = []
    for name, mask in (("load2", 0), ("multicast2", 1)):
        words, out = MAPS[1].words(), np.zeros(TILE // 4, np.uint32)
        words[38] = mask
        got.append(_prepared(cubin, name, words, tensor, out).translated())
    assert (got[0] == got[1]).all()
    words[38] = 3
    with pytest.raises(EmulatorError, match="0x55"):
        _prepared(cubin, "multicast2", words, tensor, out).translated()


@pytest.mark.parametrize(
    "map_",
    [pytest.param(m, id=_id(m), marks=[] if m is MAPS[5] else [pytest.mark.sweep]) for m in MAPS],
)
def test_stores(cubin: Cubin, map_: _Map) -> None:
    """What is outside of the tensor is not stored, but for the rest of a row's last 16 bytes."""
    map_ = replace(map_, at=tuple(max(at, 0) for at in map_.at))
    tile = np.arange(TILE // 4, dtype=np.uint32) + np.uint32(0x80000000)
    out = np.full(2048, 0x11223344, np.uint32)
    want = out.copy().view(np.uint8)
    for near, far in map_.moves(16):
        if far is not None:
            want[far : far + map_.size] = tile.view(np.uint8)[near : near + map_.size]
    name = f"store{len(map_.shape)}"
    got = _prepared(cubin, name, map_.words(), tile, out).translated()
    assert np.flatnonzero(got.view(np.uint8) != want).tolist() == []


@pytest.mark.parametrize(
    "change",
    [(2, MAGIC + 3), pytest.param((2, 0), marks=pytest.mark.sweep)],
    ids=["another rank", "no map"],
)
def test_another_map_traps(cubin: Cubin, change: tuple[int, int]) -> None:
    words = MAPS[1].words()
    words[change[0]] = change[1]
    blank = np.zeros(2048, np.uint32)
    with pytest.raises(EmulatorError, match=r"trap|0x55|SX066"):
        _prepared(cubin, "load2", words, blank, blank).translated()


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("store2", (8, -1)),
        *(pytest.param(n, (4, 0), marks=pytest.mark.sweep) for n in ("load2", "store2")),
    ],
)
def test_boxes_that_a_gpu_refuses_trap(cubin: Cubin, name: str, at: tuple[int, int]) -> None:
    """Those that begin within 16 bytes of a row, and stores at a negative coordinate."""
    words, blank = replace(MAPS[1], at=at).words(), np.zeros(2048, np.uint32)
    with pytest.raises(EmulatorError, match="0x55"):
        _prepared(cubin, name, words, blank, blank).translated()
