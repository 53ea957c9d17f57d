"""Which results are flushed: those below the normal numbers after rounding to their precision.

0x80800000 * 0x3f7fffff = -0x1.fffffep-127 is -0 on an H100 with .FTZ, although rounding among the
denormal numbers would make it the least normal one.  The LLVM domain and the integers kept it, and
so did AMD's pseudocode as the tests read it; NumPy's lanes, the interpreter of SASS, flushed it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sassxlate.disasm.rdna3.semantics import semantics_table
from sassxlate.domain.integers import Bits, Reference
from sassxlate.domain.interface import Fp, Round, mantissa_bits
from sassxlate.domain.numpy_lanes import Vectors, vec
from sassxlate.lowering.emulate.options import CompileOptions
from tools.witness.pcode import softfloat

from .harness import LANES, Case, run_cases, vector_case
from .test_meanings import MODES, close, expected

ROWS = semantics_table()
OPS = ("v_mul_f32", "v_fma_f32", "v_mul_f16", "v_fma_f16", "v_cvt_f16_f32", "v_cvt_f32_f64")
BORDERS = {16: -14, 32: -126}  # exponents of the least normal numbers


def _bits(x: Fraction, w: int) -> int:
    return int({16: np.float16, 32: np.float32, 64: np.float64}[w](float(x)).view(f"u{w // 8}"))


def _near(rng: random.Random, op: str) -> tuple[int, ...]:
    """Operands whose exact result is a few last places from the least normal number."""
    to = 16 if "f16" in op else 32
    m, least = mantissa_bits(to), Fraction(2) ** BORDERS[to]
    sign = rng.choice((1, -1))
    if op.startswith("v_cvt"):
        source = 64 if op == "v_cvt_f32_f64" else 32
        steps = Fraction(rng.randrange(-24, 8), 8)
        return (_bits(sign * least * (1 - steps * Fraction(1, 2 ** (m + 1))), source),)
    small = rng.randrange(0, 4)  # (1 + i u) * (1 - j u), u a unit of the last place of one
    power = rng.randrange(-6, 1)
    a = least * Fraction(2) ** -power * (1 + Fraction(small, 2**m))
    b = Fraction(2) ** power * (1 - Fraction(rng.randrange(0, 5), 2 ** (m + 1)))
    if "mul" in op:
        return _bits(sign * a, to), _bits(b, to)
    c = least * rng.choice((0, 0, 1, -1, 2, Fraction(-1, 2)))
    return _bits(sign * a, to), _bits(b, to), _bits(c, to)


@pytest.mark.parametrize("mode", ["flush", "zero_flush"])
def test_results_around_the_least_normal_number(mode: str) -> None:
    bits, static = MODES[mode]
    cases: list[Case] = []
    for op in OPS:
        rng = random.Random(f"{op} {mode}")
        inputs = tuple(_near(rng, op) for _ in range(LANES))
        cases.append(replace(vector_case(ROWS[op], rng), inputs=inputs))
    results = run_cases(cases, CompileOptions(float_mode=bits))
    decided = 0
    for op, case, lanes in zip(OPS, cases, results, strict=True):
        for lane, got in enumerate(lanes):
            (want,) = expected(ROWS[op], static, case.inputs[lane], lane)
            assert close(ROWS[op].dst[0], got[0], want, 0), (op, case.inputs[lane], got, want)
            (kept,) = expected(ROWS[op], MODES["ieee"][1], case.inputs[lane], lane)
            decided += want & 0x7FFFFFFF == 0 and kept & (kept - 1) & 0x7FFF == 0 and kept != 0
    assert decided > 10, "too few results at the border"


FLUSHED = Fp(Round.NEAREST, True, True)


def test_the_product_of_an_h100() -> None:
    a, b = 0x80800000, 0x3F7FFFFF
    assert Reference().fmul(Bits(a, 32), Bits(b, 32), FLUSHED).n == 0x80000000
    product = Vectors().fmul(vec([a], 32), vec([b], 32), FLUSHED)
    assert int(product.v[0]) == 0x80000000
    rules = softfloat.Rules(flush_in=True, flush_out=True)
    assert softfloat.mul(softfloat.FORMATS[32], a, b, rules) == 0x80000000


@pytest.mark.parametrize("how", list(Round))
@pytest.mark.parametrize("w", [16, 32])
def test_integers_and_numpy_agree(w: int, how: Round) -> None:
    rng, fp = random.Random(w), Fp(how, True, True)
    name = "v_fma_f16" if w == 16 else "v_fma_f32"
    rows = [_near(rng, name) for _ in range(400)]
    columns = [vec(list(column), w) for column in zip(*rows, strict=True)]
    for got, values in zip(
        Vectors().ffma(columns[0], columns[1], columns[2], fp).v, rows, strict=True
    ):
        a, b, c = (Bits(v, w) for v in values)
        assert int(got) == Reference().ffma(a, b, c, fp).n, [hex(v) for v in values]
