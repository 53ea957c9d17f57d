"""Quotients and remainders of 32-bit integers that nvcc computes in line, as one operation."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sassxlate import toolchain
from sassxlate.cfg import Cfg
from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.containers.values import Cubin, Kernel
from sassxlate.disasm.sass.instruction import Imm, Instruction
from sassxlate.disasm.sass.traits import INLINE_QUOTIENTS, traits
from sassxlate.lowering.idioms.inline import inline_quotients, replaced_inline
from sassxlate.lowering.idioms.replaced import rebuilt
from sassxlate.lowering.pipeline import build_cfg, link
from sassxlate.lowering.select.stages import Source
from sassxlate.lowering.target import DEFAULT
from tests.lowering.tier.test_quotients import count_of, results
from tools.generate.idioms import divided32, words32

SOURCE = Path(__file__).with_name("inline_quotients.cu")
NAMES = {"udiv": "UDIV32", "urem": "UREM32", "sdiv": "SDIV32", "srem": "SREM32"}
LEAST = {"sums": 3, "mixed": 10}  # nvcc computes one remainder by its quotient, and unrolls loops

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


def _graph(cubin: Cubin, name: str) -> tuple[Cfg, Kernel]:
    graphed = build_cfg(link(Source(cubin, name, DEFAULT)))
    return graphed.cfg, graphed.kernel


@pytest.mark.parametrize("arch", [80, 120])
@pytest.mark.parametrize("name", [*NAMES, *LEAST])
def test_each_is_one_instruction(cubins: dict[int, Cubin], name: str, arch: int) -> None:
    cfg, kernel = _graph(cubins[arch], name)
    after, count = replaced_inline(cfg, kernel)
    assert count_of(after, *INLINE_QUOTIENTS) == count
    if name in NAMES:
        assert count_of(after, NAMES[name]) == count == 1
    else:
        assert count >= LEAST[name]


@pytest.mark.parametrize("arch", [80, 120])
def test_a_reciprocal_stays_before_its_loop(cubins: dict[int, Cubin], arch: int) -> None:
    """LLVM would compute it in each pass."""
    cfg, kernel = _graph(cubins[arch], "hoisted")
    assert any(q.dividends for q in inline_quotients(cfg)[1])
    assert replaced_inline(cfg, kernel) == (cfg, 0)


@pytest.mark.parametrize("arch", [80, 120])
def test_a_similar_algorithm_is_not_recognised(cubins: dict[int, Cubin], arch: int) -> None:
    cfg, kernel = _graph(cubins[arch], "own")
    assert replaced_inline(cfg, kernel) == (cfg, 0)


def _changes(cfg: Cfg) -> Iterator[dict[int, Instruction]]:
    """Changes of one instruction of the division: its immediate, its guard, a modifier."""
    every = [i for b in cfg.blocks for i in b.instructions]
    first = next(n for n, i in enumerate(every) if i.mnemonic == "I2F")
    last = next(n for n, i in enumerate(every) if i.mnemonic == "STG")
    for ins in every[first:last]:
        if not traits(ins).pure or not ins.writes or ins.has("WIDE"):
            continue
        for role, operand in ins.operands.items():
            if isinstance(operand, Imm) and role in ("Ra", "Rb", "Rc"):
                other = replace(operand, value=operand.value ^ 1)
                yield {ins.offset: replace(ins, operands={**ins.operands, role: other})}
        if not ins.guard.is_true:
            guard = replace(ins.guard, inv=not ins.guard.inv)
            yield {ins.offset: replace(ins, guard=guard)}
        for modifier in set(ins.modifiers) & {"RP", "GE", "GT"}:
            kept = tuple("EQ" if m != "RP" else "RZ" for m in [modifier])
            rest = tuple(m for m in ins.modifiers if m != modifier)
            yield {ins.offset: replace(ins, modifiers=(*kept, *rest))}


@pytest.mark.parametrize("name", NAMES)
def test_code_that_differs_in_one_instruction_is_not_recognised(
    cubins: dict[int, Cubin], name: str
) -> None:
    cfg, kernel = _graph(cubins[80], name)
    some = list(_changes(cfg))
    assert len(some) >= 7
    for change in some:
        _, count = replaced_inline(rebuilt(cfg, kernel, change), kernel)
        assert count == 0, next(iter(change.values())).text


@pytest.mark.parametrize("name", NAMES)
def test_results(cubins: dict[int, Cubin], name: str) -> None:
    """By 0, too, and the least number by -1."""
    a, b = (words32(1 << 14, seed) for seed in (1, 2))
    b[::7] = 0
    a[3::8], b[3::8] = 1 << 31, (1 << 32) - 1
    wanted = divided32(NAMES[name], a, b)
    narrow = [x.astype(np.uint32) for x in (a, b)]
    for arch, seed in ((80, None), (120, None), (80, 1), (80, 2)):
        assert np.array_equal(results(cubins[arch], name, *narrow, seed=seed), wanted), (arch, seed)


@pytest.mark.parametrize("arch", [80, 120])
@pytest.mark.parametrize("name", ["sums", "mixed", "own"])
def test_results_within_other_code(cubins: dict[int, Cubin], name: str, arch: int) -> None:
    """Operands that an operation reads later than nvcc's code are kept until then: once what made
    one was replaced by another operation."""
    a, b = (words32(1 << 11, seed).astype(np.uint32) for seed in (3, 4))
    mine = results(cubins[arch], name, a, b)
    assert np.array_equal(mine, results(cubins[arch], name, a, b, by_rules=True))


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_many_numbers(cubins: dict[int, Cubin], name: str) -> None:
    """2**28 pairs by the tier's code, 2**26 by the rules', which is nvcc's own algorithm."""
    step = 1 << 22
    for seed in range((1 << 28) // step):
        wide = [words32(step, 2 * seed + i) for i in (0, 1)]
        wanted = divided32(NAMES[name], *wide)
        a, b = (x.astype(np.uint32) for x in wide)
        assert np.array_equal(results(cubins[80], name, a, b), wanted), seed
        if seed < 16:
            assert np.array_equal(results(cubins[80], name, a, b, by_rules=True), wanted), seed
