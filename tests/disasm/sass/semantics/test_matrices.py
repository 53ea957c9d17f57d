"""Matrix products as an H100 computed them: doubles, and products of warpgroups, to the bit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.disasm.sass import decode
from sassxlate.disasm.sass.codec.encode import assemble
from sassxlate.disasm.sass.instruction import PredFile, RegFile, RegRef, Special
from sassxlate.disasm.sass.semantics.rows import NoSemantics
from sassxlate.disasm.sass.semantics.warp_state import (
    Addresses,
    Bytes,
    Mask,
    Space,
    Update,
    Words,
)
from sassxlate.disasm.sass.semantics.whole_warps import evaluate_warp

FIXTURE = Path(__file__).parents[4] / "fixtures" / "silicon" / "sm_90" / "matrices.npz"
_IMAGE = 0x400  # where the kernel's image of shared memory was


@cache
def _kept() -> Mapping[str, NDArray[Any]]:
    with np.load(FIXTURE) as kept:
        return dict(kept)


class _Warp:
    """Warp ``number`` of a block of 128 threads, or several with one set of uniform registers."""

    def __init__(
        self, general: Mapping[int, Words], uniform: Mapping[int, int], memory: Bytes, number: int
    ) -> None:
        self.general, self.uniform, self.memory, self.number = general, uniform, memory, number
        self.active: Mask = np.ones(next(iter(general.values())).shape, np.bool_)

    def reg(self, file: RegFile, index: int) -> Words:
        if file == "UR":
            return np.array([self.uniform[index]], np.uint32)
        return self.general[index]

    def pred(self, file: PredFile, index: int) -> Mask:
        return np.array([bool(self.uniform[-1])])

    def special(self, operand: Special) -> Words:
        lanes = np.arange(32, dtype=np.uint32)
        return lanes + np.uint32(32 * self.number) if operand.name == "SR_TID.X" else 0 * lanes

    def constant(self, bank: int, offset: Words, size: int) -> Bytes:
        shape = np.array([128, 1, 1], "<u4")[offset // 4]
        return np.ascontiguousarray(shape)[..., None].view(np.uint8)

    def load(self, space: Space, address: Addresses, size: int, mask: Mask) -> Bytes:
        at = address.astype(np.int64)[..., None] + np.arange(size)
        return self.memory[at]

    def store(self, space: Space, address: Addresses, data: Bytes, mask: Mask) -> None:
        raise AssertionError("a product does not write to memory")

    def update(
        self, space: Space, address: Addresses, size: int, mask: Mask, change: Update
    ) -> Bytes:
        raise AssertionError("a product does not write to memory")


@pytest.mark.parametrize(
    ("number", "shape", "a", "b", "c"),
    [
        (0, "8x8x4", 1, 1, 2),
        (1, "16x8x4", 2, 1, 4),
        (2, "16x8x8", 4, 2, 4),
        (3, "16x8x16", 8, 4, 4),
    ],
)
def test_doubles(number: int, shape: str, a: int, b: int, c: int) -> None:
    """Infinities, NaN with their payloads, denormals, and sums that round at every step."""
    given, want = _kept()["doubles"], _kept()["double_sums"][number][..., :c]
    general: dict[int, Words] = {}
    for place, first, count in ((32, 0, a), (64, 8, b), (96, 12, c)):
        words = np.ascontiguousarray(given[..., first : first + count]).view(np.uint32)
        general |= {place + i: words[..., i] for i in range(2 * count)}
    ins = decode(assemble(f"DMMA.{shape} R16, R32, R64, R96 ;", 90, 0), 0, 90)
    done = evaluate_warp(ins, _Warp(general, {}, np.zeros(0, np.uint8), 0))
    got = np.stack([done[RegRef("R", 16 + i)] for i in range(2 * c)], axis=-1)
    assert np.array_equal(np.ascontiguousarray(got).view(np.uint64), want)


def _product(case: str, number: int) -> tuple[Words, NDArray[Any]]:
    """What the four warps leave in their registers, (128, registers), and what the H100 left, or
    the SHA-256 of that."""
    kept = _kept()
    text, image, a, b, scale = case.split("|")
    memory = np.zeros(1 << 18, np.uint8)
    memory[_IMAGE : _IMAGE + kept[image].size] = kept[image]
    words = [int(v, 16) >> shift & 0xFFFFFFFF for v in (a, b) for shift in (0, 32)]
    uniform = {4 + i: word for i, word in enumerate(words)} | {-1: int(scale)}
    ins = decode(assemble(f"{text} ;", 90, 0), 0, 90)
    count = int(text.split("x")[1]) // (4 if ".F16" in text else 2)
    rows: list[Words] = []
    for warp in range(4):
        own = slice(32 * warp, 32 * warp + 32)
        before = kept.get(f"c{number}", np.zeros((128, count), np.uint32))[own]
        left = kept.get(f"a{number}", np.zeros((128, 4), np.uint32))[own]
        general = {64 + i: before[:, i] for i in range(count)}
        general |= {32 + i: left[:, i] for i in range(4)}
        done = evaluate_warp(ins, _Warp(general, uniform, memory, warp))
        rows.append(np.stack([done[RegRef("R", 64 + i)] for i in range(count)], axis=-1))
    return np.concatenate(rows), kept[f"out{number}"]


def test_warpgroups() -> None:
    """Every type, swizzle and transposition, A in shared memory and in registers."""
    wrong: list[str] = []
    for number, case in enumerate(_kept()["cases"].tolist()):
        got, want = _product(case, number)
        if want.dtype == np.uint8:
            digest = hashlib.sha256(got.astype("<u4").tobytes()).digest()
            got = np.frombuffer(digest, np.uint8)
        if not np.array_equal(got, want):
            wrong.append(case)
    assert wrong == []


def test_a_base_offset_is_not_described() -> None:
    """What an H100 does with one was measured to be something else than without, not what."""
    case = str(_kept()["cases"][0])
    text, image, a, b, scale = case.split("|")
    offset = f"{int(b, 16) | 1 << 49:#x}"
    with pytest.raises(NoSemantics, match="base offset"):
        _product("|".join((text, image, a, offset, scale)), 0)
