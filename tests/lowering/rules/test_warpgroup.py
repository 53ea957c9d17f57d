"""Products of warpgroups and stores that arrive, as nvcc compiles them, on the emulated device.

``tests/disasm/sass/semantics/test_matrices.py`` compares the meanings with an H100.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass.instruction import Instruction
from sassxlate.errors import EmulatorError
from sassxlate.lowering import pipeline
from tests.disasm.sass.interpreter.launches import Prepared

SOURCE = Path(__file__).with_name("warpgroup.cu")
Words = NDArray[np.uint32]
# Registers of each thread, and the type of the elements (None: bytes).
_KERNELS = {
    "halves": (8, np.float16), "turned": (8, np.float16), "rows": (8, np.uint16),
    "short_sums": (4, np.float16), "tensor_floats": (4, np.float32), "small_floats": (4, None),
    "small_halves": (4, None), "bytes": (8, None),
}  # fmt: skip
_SHORT = {"turned", "small_floats"}


@cache
def _cubin(folder: Path) -> Cubin:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    made = folder / "warpgroup.cubin"
    flags = ["-O3", "-std=c++17", "-gencode", "arch=compute_90a,code=sm_90a", "-cubin"]
    subprocess.run([nvcc, *flags, SOURCE, "-o", made], check=True, capture_output=True)
    return parse_cubin(made.read_bytes())


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> Cubin:
    return _cubin(tmp_path_factory.mktemp("warpgroup"))


def _descriptor(address: int, leading: int, stride: int, swizzle: int) -> int:
    return address >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | swizzle << 62


# For each round the tiles of A and B of both warpgroups: every swizzle.
_TILES = [
    _descriptor(0, 128, 256, 0), _descriptor(8192, 256, 128, 0),
    _descriptor(1024, 512, 1024, 1), _descriptor(9216, 512, 512, 2),
    _descriptor(4096, 256, 512, 3), _descriptor(12288, 128, 256, 1),
    _descriptor(2048, 1024, 256, 2), _descriptor(8192, 256, 256, 3),
]  # fmt: skip


def _image(name: str) -> Words:
    """16 KiB of numbers whose sums lose bits; of bytes, with few NaN."""
    rng = np.random.default_rng(len(name))
    kind = _KERNELS[name][1]
    if kind is None:
        made = rng.integers(0, 256, 16384).astype(np.uint8)
        if name.startswith("small"):
            special = (made & 0x7F >= 0x7C) & (rng.random(made.size) < 0.98)
            made = np.where(special, made & 0x83, made).astype(np.uint8)
        return made.view(np.uint32)
    count = 16384 // np.dtype(kind).itemsize
    wide = rng.standard_normal(count) * 2.0 ** rng.integers(-5, 6, count)
    if kind is np.uint16:
        return (wide.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)
    return wide.astype(kind).view(np.uint32)


def _prepared(cubin: Cubin, name: str, tiles: list[int]) -> Prepared:
    out = np.zeros(256 * _KERNELS[name][0], np.uint32)
    words = np.array(tiles, np.uint64).view(np.uint32)
    shapes = (1, 1, 1), (256, 1, 1)
    return Prepared(cubin, name, *shapes, (_image(name), words, out), 2)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in _SHORT else [pytest.mark.sweep]) for n in _KERNELS],
)
def test_as_interpreted(cubin: Cubin, name: str) -> None:
    """Two warpgroups, two rounds, the second of which adds."""
    prepared = _prepared(cubin, name, _TILES)
    ours, theirs = prepared.interpreted(), prepared.translated()
    assert np.flatnonzero(ours != theirs).tolist() == []
    assert np.unique(ours).size > 100


def test_a_base_offset_traps(cubin: Cubin) -> None:
    tiles = [_TILES[0], _TILES[1] | 1 << 49, *_TILES[2:]]
    with pytest.raises(EmulatorError, match=r"trap|0x54|SX066"):
        _prepared(cubin, "short_sums", tiles).translated()


def _ring(cubin: Cubin) -> tuple[Prepared, Words]:
    rng, rounds = np.random.default_rng(3), 3
    a = rng.integers(-8, 9, (64, 16)).astype(np.float16)
    b = rng.integers(-8, 9, (rounds, 8, 16)).astype(np.float16)
    # Eight rows of eight halves follow one another.
    left = a.reshape(8, 8, 2, 8).transpose(0, 2, 1, 3)
    right = b.reshape(rounds, 8, 2, 8).transpose(0, 2, 1, 3)
    inputs = [np.ascontiguousarray(m).reshape(-1).view(np.uint32) for m in (left, right)]
    want = (a.astype(np.float32) @ b.astype(np.float32).sum(axis=0).T).reshape(8, 8, 8)
    lanes = want.reshape(4, 2, 8, 4, 2).transpose(0, 2, 3, 1, 4)  # warp, g, t, half, column
    out = np.zeros(128 * 4, np.uint32)
    made = Prepared(cubin, "ring", (1, 1, 1), (160, 1, 1), (inputs[0], inputs[1], out), rounds)
    return made, np.ascontiguousarray(lanes).reshape(-1).view(np.uint32)


def test_one_thread_frees_a_tile_for_four_warps(cubin: Cubin) -> None:
    prepared, want = _ring(cubin)
    assert np.array_equal(prepared.interpreted(), want)
    assert np.array_equal(prepared.translated(), want)


@pytest.mark.sources
@pytest.mark.sweep
def test_the_warps_of_a_group_must_meet(cubin: Cubin, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without that, the ring's tiles are overwritten before the last warp has read them."""

    def apart(ins: Instruction) -> Instruction:
        if ins.mnemonic != "WARPGROUP":
            return ins
        return replace(ins, mnemonic="NOP", modifiers=(), operands={})

    monkeypatch.setattr(pipeline, "meeting", apart)
    prepared, want = _ring(cubin)
    assert not np.array_equal(prepared.translated(), want)


@pytest.mark.parametrize("lanes", [pytest.param(32, marks=pytest.mark.sweep), 19])
def test_stores_arrive(cubin: Cubin, lanes: int) -> None:
    words = np.arange(32, dtype=np.uint32) * 1000
    out = np.zeros(3 * 128, np.uint32)
    prepared = Prepared(cubin, "stores", (1, 1, 1), (32, 1, 1), (words, words, out), lanes)
    ours, theirs = prepared.interpreted(), prepared.translated()
    assert np.array_equal(ours, theirs)
    want = np.repeat(np.where(np.arange(32) < lanes, words + 1, 0), 2).reshape(32, 2)
    want[:lanes, 1] += 1
    sent = want[np.arange(32) ^ 1].reshape(-1)
    got = theirs[128:192]
    assert np.array_equal(got[sent != 0], sent[sent != 0])
