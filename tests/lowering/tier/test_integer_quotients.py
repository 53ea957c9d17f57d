"""Quotients and remainders of 64-bit integers that nvcc computes in software, as one operation."""

from __future__ import annotations

import random
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from sassxlate import toolchain
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin
from sassxlate.disasm.sass.traits import INTEGER_QUOTIENTS
from sassxlate.lowering.idioms.known import known
from sassxlate.lowering.idioms.replaced import rebuilt, replaced
from sassxlate.lowering.idioms.sites import Finder
from sassxlate.lowering.pipeline import build_cfg, link
from sassxlate.lowering.select.stages import Source
from sassxlate.lowering.target import DEFAULT
from tests.lowering.tier.test_quotients import count_of, mutations, results
from tools.generate.idioms import divided, whole_numbers, words32

SOURCE = Path(__file__).with_name("integer_quotients.cu")
NAMES = {
    "udiv": "UDIV64", "urem": "UREM64", "sdiv": "SDIV64", "srem": "SREM64",
    "udiv_word": "UDIV64", "urem_word": "UREM64",
}  # fmt: skip
WORD = np.uint64(0xFFFFFFFF)
Words = npt.NDArray[np.uint64]

pytestmark = pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Cubin]:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    out = tmp_path_factory.mktemp("integers") / "k.cubin"
    made: dict[int, Cubin] = {}
    for arch in (80, 120):
        command = [*nvcc.command, f"-arch=sm_{arch}", "-cubin", "-o", str(out), str(SOURCE)]
        subprocess.run(command, check=True, capture_output=True)
        made[arch] = parse_cubin(out.read_bytes())
    return made


@pytest.mark.parametrize("arch", [80, 120])
@pytest.mark.parametrize("name", [*NAMES, "sums"])
def test_each_is_one_instruction(cubins: dict[int, Cubin], name: str, arch: int) -> None:
    graphed = build_cfg(link(Source(cubins[arch], name, DEFAULT)))
    calls = count_of(graphed.cfg, "CALL")
    after, count = replaced(graphed.cfg, graphed.kernel)
    assert count == calls > 0
    assert count_of(after, "CALL") == 0
    assert count_of(after, NAMES.get(name, "UDIV64")) == count
    assert count_of(after, *INTEGER_QUOTIENTS) == count


def test_functions_of_code_that_is_linked_later(tmp_path: Path) -> None:
    """Of -rdc: they are called, and return, by absolute places."""
    nvcc, out = toolchain.nvcc(), tmp_path / "k.cubin"
    assert nvcc is not None
    flags = ["-arch=sm_80", "-rdc=true", "-dlink", "-cubin"]
    subprocess.run([*nvcc.command, *flags, "-o", str(out), str(SOURCE)], check=True)
    graphed = build_cfg(link(Source(parse_cubin(out.read_bytes()), "udiv_word", DEFAULT)))
    texts = [ins.text for block in graphed.cfg.blocks for ins in block.instructions]
    assert any("RET.ABS" in text for text in texts)
    assert replaced(graphed.cfg, graphed.kernel)[1] == 1


@pytest.mark.parametrize("name", NAMES)
def test_code_that_differs_in_one_instruction_is_not_recognised(
    cubins: dict[int, Cubin], name: str
) -> None:
    graphed = build_cfg(link(Source(cubins[80], name, DEFAULT)))
    some = list(mutations(graphed.cfg))
    assert len(some) >= 4
    for change in random.Random(1).sample(some, min(len(some), 8)):
        finder = Finder(rebuilt(graphed.cfg, graphed.kernel, change))
        names = {known().get(d) for s in finder.sites() for d, _ in s.digests()}
        assert names <= {None}, next(iter(change.values())).text


def _pairs(name: str, count: int, seed: int) -> tuple[Words, Words, Words]:
    """Dividends, divisors, and what nvcc's code gives."""
    a, b = (whole_numbers(count, seed + i) for i in (0, 1))
    if name.endswith("_word"):  # those of all sizes below 2**32, and multiples of them
        b = words32(count, seed + 1)
        a[::5] = b[::5] * (a[::5] >> np.uint64(32))
        a[1::5] = b[1::5] * (a[1::5] >> np.uint64(32)) - np.uint64(1)
    b[::7] = 0
    a[3::8], b[3::8] = 1 << 63, WORD if name.endswith("_word") else (1 << 64) - 1
    return a, b, divided(NAMES[name], a, b)


@pytest.mark.parametrize("name", NAMES)
def test_results(cubins: dict[int, Cubin], name: str) -> None:
    """By 0, too, and the least number by -1."""
    a, b, wanted = _pairs(name, 1 << 14, 1)
    for seed in (None, 1, 2):
        assert np.array_equal(results(cubins[80], name, a, b, seed=seed), wanted), seed


def test_a_quotient_by_32_bits_for_every_reciprocal() -> None:
    """Estimates from a reciprocal that is 2**-23 too large or too small, as AMD's may be, are the
    quotient or 1 less."""
    chance = random.Random(2)
    less_than_one = float(Fraction(1) - Fraction(1, 1 << 45))
    for _ in range(3000):
        b = chance.getrandbits(chance.randrange(1, 33)) or 1
        q = chance.choice((chance.getrandbits(32), (1 << 32) - 1 - chance.getrandbits(4)))
        a = min(q * b + chance.choice((0, b - 1, chance.randrange(b))), (b << 32) - 1)
        near = 1 / b * (1 + chance.choice((-1, 1, chance.uniform(-1, 1))) * 2.0**-23)
        error = float(Fraction(less_than_one) - Fraction(near) * b)
        y = float(Fraction(near) * Fraction(error) + Fraction(near))
        estimate = int(float(a) * y)
        assert estimate in (a // b, a // b - 1), (a, b, near)


@pytest.mark.parametrize("name", ["sums", "mixed"])
def test_results_within_other_code(cubins: dict[int, Cubin], name: str) -> None:
    a, b = (whole_numbers(1 << 11, seed) for seed in (3, 4))
    mine = results(cubins[80], name, a, b)
    assert np.array_equal(mine, results(cubins[80], name, a, b, by_rules=True))


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_many_numbers(cubins: dict[int, Cubin], name: str) -> None:
    """2**30 pairs by the tier's code, 2**26 by the rules', which is nvcc's own algorithm."""
    step = 1 << 22
    for seed in range((1 << 30) // step):
        a, b, wanted = _pairs(name, step, 2 * seed)
        assert np.array_equal(results(cubins[80], name, a, b), wanted), seed
        if seed < 16:
            assert np.array_equal(results(cubins[80], name, a, b, by_rules=True), wanted), seed
