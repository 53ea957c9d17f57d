"""Quotients and roots that nvcc computes in software, as single operations."""

from __future__ import annotations

import random
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate import toolchain
from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.sass.instruction import Imm, Instruction
from sassxlate.disasm.sass.traits import QUOTIENTS, traits
from sassxlate.lowering.emulate.options import CompileOptions
from sassxlate.lowering.emulate.runner import EmulatedDevice, run_code_object
from sassxlate.lowering.idioms.known import known
from sassxlate.lowering.idioms.replaced import rebuilt, replaced
from sassxlate.lowering.idioms.sites import Finder
from sassxlate.lowering.pipeline import build_cfg, link, translate_kernel
from sassxlate.lowering.select.stages import Source
from sassxlate.lowering.target import DEFAULT
from sassxlate.lowering.tier.translate import by_tier

SOURCE = Path(__file__).with_name("quotients.cu")
ONE = ("f_div", "f_rcp", "f_sqrt", "d_div", "d_rcp", "d_sqrt")
Bits = NDArray[Any]

pytestmark = pytest.mark.skipif(toolchain.nvcc() is None, reason="no nvcc, no NVIDIA wheels")


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Cubin]:
    return {arch: _built(tmp_path_factory.mktemp("quotients"), arch, "-O3") for arch in (80, 120)}


def _built(folder: Path, arch: int, *flags: str) -> Cubin:
    nvcc = toolchain.nvcc()
    assert nvcc is not None
    out = folder / "quotients.cubin"
    command = [*nvcc.command, f"-arch=sm_{arch}", *flags, "-cubin", "-o", str(out), str(SOURCE)]
    subprocess.run(command, check=True, capture_output=True)
    return parse_cubin(out.read_bytes())


def _graph(cubin: Cubin, name: str) -> tuple[Cfg, Kernel]:
    graphed = build_cfg(link(Source(cubin, name, DEFAULT)))
    return graphed.cfg, graphed.kernel


def count_of(cfg: Cfg, *mnemonics: str) -> int:
    return sum(i.mnemonic in mnemonics for b in cfg.blocks for i in b.instructions)


# --- which code is recognised --------------------------------------------------------------------


@pytest.mark.parametrize("arch", [80, 120])
@pytest.mark.parametrize("name", [*ONE, "d_mixed", "f_mixed"])
def test_each_is_one_instruction(cubins: dict[int, Cubin], name: str, arch: int) -> None:
    cfg, kernel = _graph(cubins[arch], name)
    calls = count_of(cfg, "CALL")
    after, count = replaced(cfg, kernel)
    assert count == calls > 0
    assert count_of(after, "CALL") == 0
    assert count_of(after, *QUOTIENTS) == count


def test_code_of_two_functions(cubins: dict[int, Cubin]) -> None:
    """The branch around the call belongs to another function, which shares its code: once a
    KeyError."""
    cfg, _ = _graph(cubins[80], "f_mixed")
    before = {cfg.predecessors[b.index][0].src for b in cfg.blocks if b.last.mnemonic == "CALL"}
    shared = max(before)  # not the entry
    blocks = tuple(
        replace(b, function=cfg.functions[1]) if b.index == shared else b for b in cfg.blocks
    )
    sites = list(Finder(replace(cfg, blocks=blocks)).sites())
    assert len(sites) < len(before) == len(list(Finder(cfg).sites()))


_MOVES = ("MOV", "IMAD", "HFMA2")  # they make return addresses, too


def mutations(cfg: Cfg) -> Iterator[dict[int, Instruction]]:
    """Changes of one instruction of the function that is called: its immediate, its guard, a
    modifier."""
    for block in cfg.blocks:
        for ins in block.instructions if block.function else ():
            if not traits(ins).pure or not ins.writes or ins.text.startswith(_MOVES):
                continue
            for role, operand in ins.operands.items():
                if isinstance(operand, Imm) and role in ("Ra", "Rb", "Rc"):
                    other = replace(operand, value=operand.value ^ 1 << operand.bits - 2)
                    yield {ins.offset: replace(ins, operands={**ins.operands, role: other})}
            if not ins.guard.is_true:
                guard = replace(ins.guard, inv=not ins.guard.inv)
                yield {ins.offset: replace(ins, guard=guard)}
            for modifier in set(ins.modifiers) & {"RM", "RP", "RZ"}:
                kept = tuple(m for m in ins.modifiers if m != modifier)
                yield {ins.offset: replace(ins, modifiers=kept)}


@pytest.mark.parametrize("name", ONE)
def test_code_that_differs_in_one_instruction_is_not_recognised(
    cubins: dict[int, Cubin], name: str
) -> None:
    cfg, kernel = _graph(cubins[80], name)
    some = list(mutations(cfg))
    assert len(some) > 5
    for change in random.Random(1).sample(some, min(len(some), 12)):
        wrong = rebuilt(cfg, kernel, change)
        names = {known().get(d) for s in Finder(wrong).sites() for d, _ in s.digests()}
        assert names <= {None}, next(iter(change.values())).text


def test_a_call_that_returns_elsewhere_is_not_recognised(cubins: dict[int, Cubin]) -> None:
    cfg, kernel = _graph(cubins[80], "f_div")
    caller = next(b for b in cfg.blocks if b.last.mnemonic == "CALL")
    back = caller.last.offset + 16
    (move,) = (i for i in caller.instructions
               if isinstance(o := i.get("Rb"), Imm) and o.value == back)  # fmt: skip
    other = {**move.operands, "Rb": Imm(back + 16)}
    wrong = rebuilt(cfg, kernel, {move.offset: replace(move, operands=other)})
    assert not list(Finder(wrong).sites())


# --- what its code computes ----------------------------------------------------------------------


def _numbers(width: int, count: int, seed: int) -> tuple[Bits, Bits]:
    """Dividends and divisors: all kinds, and quotients next to half of the least denormal number's
    odd multiples."""
    chance: Any = np.random.default_rng(seed)
    kind: Any = np.uint32 if width == 32 else np.uint64
    real: Any = np.float32 if width == 32 else np.float64
    size, top = (23, 255) if width == 32 else (52, 2047)
    ends = np.array([0, 1, 2, 3, size, top // 2, top // 2 + 1, top - 2, top - 1, top], kind)
    few = np.array([0, 1, (1 << size) - 1, 1 << (size - 1), 3], kind)

    def any_of() -> Bits:
        bits: Bits = chance.integers(0, (1 << width) - 1, count, dtype=kind, endpoint=True)
        picked: Bits = chance.choice(few, count)
        low: Bits = np.where(bits & kind(4), picked, bits & kind((1 << size) - 1))
        sign: Bits = bits >> kind(width - 1) << kind(width - 1)
        high: Bits = chance.choice(ends, count) << kind(size) | sign
        return np.where(bits & kind(3), high | low, bits).astype(kind)

    a, b = any_of(), any_of()
    # Half of an odd multiple times a divisor with few bits is exact; one last place more or less.
    some = chance.random(count) < 0.3
    half = (2 * chance.integers(0, 1 << chance.integers(1, size - 2), count) + 1).astype(real)
    divisor = chance.integers(1, 64, count).astype(real) * real(2) ** chance.integers(
        size, top // 2 - 8, count
    )  # fmt: skip
    least = real(2) ** real(-(size + top // 2 - 1) // 2)
    with np.errstate(all="ignore"):
        product = half * least * (divisor * least * real(2) ** real(-1))
    near = product.astype(real).view(kind) + chance.integers(-1, 2, count).astype(kind)
    return np.where(some, near, a), np.where(some, divisor.astype(real).view(kind), b)


def _expected(name: str, a: Bits, b: Bits) -> Bits:
    """The correctly rounded result; NVIDIA's code has one NaN of binary32, and passes on that of a
    double."""
    kind = a.dtype.type
    real: Any = np.float32 if kind is np.uint32 else np.float64
    x, y = a.view(real), b.view(real)
    with np.errstate(all="ignore"):
        out = x / y if name.endswith("div") else real(1) / x if "rcp" in name else np.sqrt(x)
    if real is np.float32:
        nan = np.full_like(a, 0x7FFFFFFF)
    else:
        quiet = kind(1 << 51)
        nan = np.full_like(a, 0xFFF8 << 48)
        if name.endswith("div"):
            nan = np.where(np.isnan(y), b | quiet, nan)
        nan = np.where(np.isnan(x), a | quiet, nan)
    return np.where(np.isnan(out), nan, out.view(kind))


def results(
    cubin: Cubin, name: str, a: Bits, b: Bits, *, by_rules: bool = False, seed: int | None = None
) -> Bits:
    """With a seed in strict mode: its approximations differ from the exact function by up to AMD's
    bound."""
    made = translate_kernel(cubin, name)
    if not by_rules:
        made = by_tier(made, DEFAULT)
    device = EmulatedDevice((3 * a.nbytes + (1 << 16)) // 4096 * 4096)
    places = [device.alloc(side.tobytes()) for side in (a, b)] + [device.alloc(a.nbytes)]
    grid = len(a) // 256
    segment = made.launch.kernarg(struct.pack("<QQQ", *places), (256, 1, 1), (grid, 1, 1), {}, 0)
    run_code_object(
        made.code_object, name, grid, 256, segment, device,
        CompileOptions(strict=seed is not None), strict_seed=seed or 0,
    )  # fmt: skip
    return np.frombuffer(device.read(places[2], a.nbytes), a.dtype)


@pytest.mark.parametrize("name", ONE)
def test_results_are_correctly_rounded(cubins: dict[int, Cubin], name: str) -> None:
    a, b = _numbers(64 if name[0] == "d" else 32, 1 << 15, 1)
    wanted = _expected(name, a, b)
    assert np.array_equal(results(cubins[80], name, a, b), wanted)


def _hard(width: int) -> tuple[Bits, Bits]:
    """Divisors whose mantissas have all bits set, or nearly, and dividends: the quotients of powers
    of two lie next to the middle of two numbers."""
    chance: Any = np.random.default_rng(5)
    kind: Any = np.uint32 if width == 32 else np.uint64
    size, count = (23, 1 << 13) if width == 32 else (52, 1 << 13)
    ones = (1 << size) - 1
    low = chance.choice(np.array([ones, ones, ones - 1, ones - 2, 1, 2, ones >> 1], kind), count)
    middle = 127 if width == 32 else 1023
    high = chance.integers(middle - 60, middle + 60, count).astype(kind) << kind(size)
    tops = chance.choice(np.array([0, 0, 1, ones, ones - 1], kind), count)
    roots = [x & ones for x in _squares_near_middles(size + 1, 2000)]
    low[-len(roots) :] = roots
    for n, (top, bottom) in enumerate(_near_middles(size + 1, count // 2)):
        tops[n], low[n] = top & ones, bottom & ones
    return (tops | kind(middle) << kind(size)).astype(kind), (low | high).astype(kind)


def _near_middles(bits: int, count: int) -> Iterator[tuple[int, int]]:
    """Mantissas whose quotient is as close to the middle m of two numbers as any can be: the
    dividend times a power of two is m times the divisor, but for a few.  Many divisors have nearly
    all bits set: their reciprocals are close to a middle, too."""
    chance = random.Random(bits)
    while count:
        near = (1 << bits) - chance.randrange(1, 128, 2)
        divisor = chance.choice([near, near, 1 << bits - 1 | chance.getrandbits(bits) | 1])
        divisor &= (1 << bits) - 1
        power = 1 << chance.choice([bits, bits + 1])
        few = chance.choice([-3, -2, -1, -1, 1, 1, 2, 3])
        middle = -few * pow(divisor, -1, power) % power
        if middle < 1 << bits:
            middle += power
        dividend = (middle * divisor + few) // power
        if middle & 1 and middle >> bits == 1 and dividend >> bits - 1 == 1:
            count -= 1
            yield dividend, divisor


def _squares_near_middles(bits: int, most: int) -> Iterator[int]:
    """Mantissas whose root is close to the middle of two numbers: times a power of two they are an
    odd square, but for at most so much."""
    for power in (bits + 1, bits + 2):
        for few in range(-most + most % 8 - 1, most, 8):
            root = 1  # of -few modulo the power of two: two of its four
            for n in range(3, power):
                root |= ((root * root + few) >> n & 1) << n - 1
            for middle in (root, (1 << power) - root):
                middle |= 1 << bits
                number = middle * middle + few >> power
                exact = number << power == middle * middle + few
                if exact and middle >> bits == 1 and number >> bits - 1 == 1:
                    yield number


@pytest.mark.parametrize("name", ONE)
def test_any_approximation_within_its_bound_will_do(cubins: dict[int, Cubin], name: str) -> None:
    """1 / (2 - u) was 0.5 where the hardware's reciprocal is the lower one of its two choices, and
    quotients by 2 - 3 * u to 2 - 127 * u, and roots of doubles, were wrong where the hardware's
    approximation of a double was 2**28 away."""
    tops, divisors = _hard(64 if name[0] == "d" else 32)
    a, b = (tops, divisors) if name.endswith("div") else (divisors, tops)
    wanted = _expected(name, a, b)
    for seed in range(4):
        assert np.array_equal(results(cubins[80], name, a, b, seed=seed), wanted), seed


def test_the_rules_round_the_one_root_that_newton_does_not(cubins: dict[int, Cubin]) -> None:
    """The rule made the upper neighbour of MUFU.RSQ's result odd: one last place too much."""
    a = np.resize(np.array([0x3F6E9372, 0x406E9372, 0x416E9372, 0x40EE9372], np.uint32), 256)
    wanted = _expected("f_sqrt", a, a)
    for seed in range(4):
        got = results(cubins[80], "f_sqrt", a, a, by_rules=True, seed=seed)
        assert np.array_equal(got, wanted), seed


@pytest.mark.parametrize("name", ["d_mixed", "f_mixed"])
def test_results_within_other_code(cubins: dict[int, Cubin], name: str) -> None:
    a, b = _numbers(64 if name[0] == "d" else 32, 1 << 12, 2)
    mine = results(cubins[80], name, a, b)
    theirs = results(cubins[80], name, a, b, by_rules=True)
    real: Any = np.float32 if name[0] == "f" else np.float64
    nan = np.isnan(mine.view(real)) & np.isnan(theirs.view(real))  # a double's payload may differ
    assert np.array_equal(mine[~nan], theirs[~nan])
    assert real is np.float64 or np.array_equal(mine, theirs)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["f_rcp", "f_sqrt"])
def test_all_numbers(cubins: dict[int, Cubin], name: str) -> None:
    """All 2**32 operands, by the tier's code and by the rules'."""
    step = 1 << 24
    for start in range(0, 1 << 32, step):
        a = np.arange(start, start + step, dtype=np.uint64).astype(np.uint32)
        wanted = _expected(name, a, a)
        for by_rules in (False, True):
            got = results(cubins[80], name, a, a, by_rules=by_rules)
            assert np.array_equal(got, wanted), (hex(start), by_rules)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["f_div", "d_div", "d_rcp", "d_sqrt"])
def test_many_numbers(cubins: dict[int, Cubin], name: str) -> None:
    """2**30 operands, or pairs of them, by the tier's code; 2**26 by the rules'."""
    step = 1 << 22
    for seed in range((1 << 30) // step):
        a, b = _numbers(64 if name[0] == "d" else 32, step, seed)
        wanted = _expected(name, a, b)
        assert np.array_equal(results(cubins[80], name, a, b), wanted), seed
        if seed < 16:
            assert np.array_equal(results(cubins[80], name, a, b, by_rules=True), wanted), seed
