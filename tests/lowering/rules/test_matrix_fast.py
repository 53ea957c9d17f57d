"""``--matrix fast``: HMMA by v_wmma, within a bound of the product in binary64.

The bound holds for every order in which sixteen products and an addend may be added with a rounding
to nearest after each: 17 * 2**-24 of the sum of the magnitudes, and of a result in binary16 half of
its last place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from sassxlate.cli import cli
from sassxlate.disasm.amdgpu_machines import spelled
from sassxlate.disasm.containers.values import Cubin
from sassxlate.errors import EmulatorError, LoweringError
from sassxlate.lowering.pipeline import translate_kernel
from sassxlate.lowering.target import DEFAULT, target_named
from sassxlate.runtime_shim.cache.tag import cache_tag
from tests.disasm.sass.interpreter.launches import KERNELS, Prepared, assembled, with_code

FAST = target_named(spelled(DEFAULT.name, "fast"))
_LANES = np.arange(32)
_QUAD, _T = _LANES // 4, _LANES % 4
_UNIT = 2.0**-24
Words = NDArray[np.uint32]
Fragments = tuple[Words, Words, Words]  # of A, B and C: 4, 2 and 4 words per lane

# Lane l has words 4 l to 4 l + 3 of A (R4), 2 l and 2 l + 1 of B (R8), and its words of C (R12).
_SASS = """
S2R R0, SR_TID.X ;
MOV R2, c[0x0][0x160] ;
MOV R3, c[0x0][0x164] ;
IMAD.WIDE.U32 R2, R0, 0x10, R2 ;
LDG.E.128 R4, [R2.64] ;
MOV R2, c[0x0][0x168] ;
MOV R3, c[0x0][0x16c] ;
IMAD.WIDE.U32 R2, R0, 0x8, R2 ;
LDG.E.64 R8, [R2.64] ;
MOV R2, c[0x0][0x170] ;
MOV R3, c[0x0][0x174] ;
IMAD.WIDE.U32 R2, R0, 0x10, R2 ;
LDG.E.128 R12, [R2.64] ;
{product} ;
STG.E.128 [R2.64], {result} ;
EXIT ;
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """An instruction's factors and addends, by name."""

    text: str
    depth: int
    bfloat: bool = False
    half: bool = False
    sign: float = 1.0
    result: str = "R16"


SHAPES = {
    "f32_f16": Shape("HMMA.16816.F32 R16, R4, R8, R12", 16),
    "in_place": Shape("HMMA.16816.F32 R12, R4, R8, R12", 16, result="R12"),
    "f32_f16_8": Shape("HMMA.1688.F32 R16, R4, R8, R12", 8),
    "f16_f16": Shape("HMMA.16816.F16 R16, R4, R8, R12", 16, half=True),
    "f16_f16_8": Shape("HMMA.1688.F16 R16, R4, R8, R12", 8, half=True),
    "bf16": Shape("HMMA.16816.F32.BF16 R16, R4, R8, R12", 16, bfloat=True),
    "bf16_8": Shape("HMMA.1688.F32.BF16 R16, R4, R8, R12", 8, bfloat=True),
    "negative": Shape("HMMA.16816.F32 R16, -R4, R8, R12", 16, sign=-1.0),
}


def _bits(values: NDArray[np.float64], bfloat: bool) -> NDArray[np.uint16]:
    if bfloat:
        return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(np.float16).view(np.uint16)


def _numbers(bits: NDArray[np.uint16], bfloat: bool) -> NDArray[np.float64]:
    if bfloat:
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(np.float16).astype(np.float64)


def _pairs(low: NDArray[np.uint16], high: NDArray[np.uint16]) -> NDArray[np.uint32]:
    return low.astype(np.uint32) | high.astype(np.uint32) << np.uint32(16)


def _fragments(
    shape: Shape, a: NDArray[np.uint16], b: NDArray[np.uint16], c: NDArray[Any]
) -> Fragments:
    """The lanes' words, as PTX lays mma.m16n8k16 and k8 out."""
    left, right = np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32)
    for part in range(shape.depth // 8):
        k = 8 * part + 2 * _T
        for tall in (0, 1):
            row = _QUAD + 8 * tall
            left[:, 2 * part + tall] = _pairs(a[row, k], a[row, k + 1])
        right[:, part] = _pairs(b[k, _QUAD], b[k + 1, _QUAD])
    last = np.zeros((32, 4), np.uint32)
    for tall in (0, 1):
        words = [c[_QUAD + 8 * tall, 2 * _T + i] for i in (0, 1)]
        if shape.half:
            last[:, tall] = _pairs(*(w.view(np.uint16) for w in words))
        else:
            for i, word in enumerate(words):
                last[:, 2 * tall + i] = word.view(np.uint32)
    return left, right, last


def _bits_of(shape: Shape, words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """The matrix of a warp's results, as bits."""
    out = np.zeros((16, 8), np.uint32)
    words = words.reshape(32, 4)
    for tall in (0, 1):
        for i in (0, 1):
            word = words[:, tall] >> 16 * i & 0xFFFF if shape.half else words[:, 2 * tall + i]
            out[_QUAD + 8 * tall, 2 * _T + i] = word
    return out


def _result(shape: Shape, words: NDArray[np.uint32]) -> NDArray[np.float64]:
    bits = _bits_of(shape, words)
    found = bits.astype(np.uint16).view(np.float16) if shape.half else bits.view(np.float32)
    return found.astype(np.float64)


def _cubin(shape: Shape) -> Cubin:
    return with_code(assembled(_SASS.format(product=shape.text, result=shape.result), 80), 80)


def _prepared(shape: Shape, *warps: Fragments, lanes: int | None = None) -> Prepared:
    """One launch of a block, each of whose warps has matrices of its own."""
    a, b, c = (np.concatenate([w[i].reshape(-1) for w in warps]) for i in range(3))
    block = (lanes or 32 * len(warps), 1, 1)
    return Prepared(_cubin(shape), "divergent_if", (1, 1, 1), block, (a, b, c), 32)


def _inputs(shape: Shape, seed: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16], NDArray[Any]]:
    """Matrices whose sums lose bits, denormal numbers and zeros among them."""
    rng = np.random.default_rng(seed)
    spread = 3 if shape.half else 12

    def some(*size: int) -> NDArray[np.float64]:
        values = rng.standard_normal(size) * 2.0 ** rng.integers(-spread, spread, size)
        return np.where(rng.random(size) < 0.05, 2.0**-20 * rng.integers(-9, 9, size), values)

    limit = 60.0 if shape.half else 60000.0
    a, b = (_bits(np.clip(some(*s), -limit, limit), shape.bfloat) for s in
            ((16, shape.depth), (shape.depth, 8)))  # fmt: skip
    return a, b, some(16, 8).astype(np.float16 if shape.half else np.float32)


def _errors(shape: Shape, got: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """The distance from the exact results, in units of the stated bound."""
    a, b, c = _inputs(shape, seed)
    left, right = shape.sign * _numbers(a, shape.bfloat), _numbers(b, shape.bfloat)
    exact = left @ right + c.astype(np.float64)
    size = np.abs(left) @ np.abs(right) + np.abs(c.astype(np.float64))
    bound = 17 * _UNIT * size + 2.0**-145
    if shape.half:
        bound += np.maximum(np.abs(exact) * 2.0**-11, 2.0**-25)
    return np.abs(got - exact) / bound


@pytest.mark.parametrize("name", SHAPES)
def test_within_the_bound(name: str) -> None:
    shape = SHAPES[name]
    seeds = range(8)
    prepared = _prepared(shape, *(_fragments(shape, *_inputs(shape, seed)) for seed in seeds))
    words = prepared.translated(target=FAST, strict=name == "in_place")
    for seed, warp in zip(seeds, words.reshape(8, -1), strict=True):
        got = _result(shape, warp)
        assert np.isfinite(got).all()
        assert _errors(shape, got, seed).max() <= 1


def test_integers_are_exact() -> None:
    """Every element has a product of its own: a word in the wrong place changes the result."""
    shape = SHAPES["f32_f16"]
    rng = np.random.default_rng(1)
    a, b = (rng.permuted(np.arange(size) % 61 - 30.0).reshape(s) for size, s in
            ((256, (16, 16)), (128, (16, 8))))  # fmt: skip
    c = rng.permuted(np.arange(128.0)).reshape(16, 8)
    words = _fragments(shape, _bits(a, False), _bits(b, False), c.astype(np.float32))
    got = _result(shape, _prepared(shape, words).translated(target=FAST))
    assert np.array_equal(got, a @ b + c)


@pytest.mark.parametrize("name", ["f32_f16", "f16_f16", "bf16"])
def test_infinities_and_nan(name: str) -> None:
    """As the exact code's, bit for bit, where a NaN or an infinity decides."""
    shape = SHAPES[name]
    a, b, c = _inputs(shape, 5)
    infinite, nan = (0x7F80, 0x7FC1) if shape.bfloat else (0x7C00, 0x7E01)
    a[3, 4], a[12, 1], a[5, 6] = infinite, nan, infinite | 0x8000
    b[6, 2] = 0  # times an infinity
    c[9, 3], c[0, 0] = np.inf, np.nan
    prepared = _prepared(shape, _fragments(shape, a, b, c))
    ours, exact = prepared.translated(target=FAST), prepared.translated()
    special = ~np.isfinite(_result(shape, exact))
    assert special.sum() > 24
    mine, theirs = (_bits_of(shape, words)[special] for words in (ours, exact))
    assert np.array_equal(mine, theirs)


def test_only_where_it_is_asked_for() -> None:
    """The target says it; others, and other elements, have the exact code."""
    cubin = _cubin(SHAPES["f32_f16"])
    exact = translate_kernel(cubin, "divergent_if")
    assert "v_wmma" not in exact.assembly
    fast = translate_kernel(cubin, "divergent_if", target=FAST)
    assert fast.assembly.count("v_wmma_f32_16x16x16_f16") == 1
    assert ("hmma_fast" in dict(fast.report.rules), "hmma_fast" in dict(exact.report.rules)) == (
        True, False,
    )  # fmt: skip
    single = _cubin(Shape("HMMA.1688.F32.TF32 R16, R4, R8, R12", 8))
    assert translate_kernel(single, "divergent_if", target=FAST).code_object == (
        translate_kernel(single, "divergent_if").code_object
    )


def test_a_cache_of_its_own() -> None:
    """Neither finds the other's code, and a name that is no way of computing is refused."""
    assert cache_tag(spelled("gfx1100", "fast")) != cache_tag(spelled("gfx1100", "exact"))
    assert spelled("gfx1100", "exact") == "gfx1100"
    assert target_named("gfx1102:matrix-fast").name == "gfx1102"
    for name in ("gfx1100:matrix-quick", "gfx1100:fast", "gfx1100:", "gfx90a:matrix-fast"):
        with pytest.raises(LoweringError, match="SX0416"):
            target_named(name)


def test_the_command_says_it(tmp_path: Path) -> None:
    cubin = KERNELS / "sm_80" / "early_exit.cubin"
    made: list[bytes] = []
    for matrix in ("exact", "fast"):
        out = tmp_path / matrix
        words = ["translate", str(cubin), "-o", str(out), "--engine", "rules", "--matrix", matrix]
        assert CliRunner().invoke(cli, words).exit_code == 0
        assert json.loads((out / "report.json").read_text())["matrix"] == matrix
        made.append(next(out.glob("*.hsaco")).read_bytes())
    assert made[0] == made[1]  # it has no matrix instruction


def test_part_of_a_warp_traps() -> None:
    shape = SHAPES["f32_f16"]
    prepared = _prepared(shape, _fragments(shape, *_inputs(shape, 0)), lanes=31)
    with pytest.raises(EmulatorError, match=r"trap|0x53|SX066"):
        prepared.translated(target=FAST)
