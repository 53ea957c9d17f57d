"""Each wait of a translated kernel is removed in turn: strict mode finds each that matters.

A wait that is not found is shown to be superfluous by a second, independent analysis.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from sassxlate.cfg.rdna3_flow import DecodedStep, Flow, discover
from sassxlate.disasm.containers import load
from sassxlate.disasm.rdna3.instruction import Inst
from sassxlate.errors import SassxlateError
from sassxlate.lowering.codeobject import source_map
from sassxlate.lowering.codeobject.code_object import read
from sassxlate.lowering.emulate import strict_hazards
from sassxlate.lowering.pipeline import translate_kernel

from .waits import WAITS, walk

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
PROGRAMS = FIXTURES / "programs"
CUBINS = sorted((FIXTURES / "kernels").glob("sm_*/*.cubin"))
WALKS, STEPS = 8, 1000


Fences = frozenset[int]


def kernels(path: Path) -> Iterator[tuple[str, Flow, Fences]]:
    """The translated kernels of an executable; other tests cover refused ones."""
    for _, cubin in load(path).cubins():
        for kernel in cubin.kernels:
            try:
                done = translate_kernel(cubin, kernel.name)
            except SassxlateError:
                continue
            code = read(done.code_object)
            fences = source_map.offsets(source_map.find(done.code_object), kernel.name, "fence")
            flow = discover(code.text, code.kernels[0].entry)
            yield f"sm_{cubin.arch} {kernel.name}", flow, fences


def mutants(flow: Flow) -> Iterator[DecodedStep]:
    """The waits, each removed from the flow while it is checked."""
    for block in flow.blocks.values():
        for i, step in enumerate(block.steps):
            if step.inst.op in WAITS:
                block.steps[i] = DecodedStep(step.pc, step.next, Inst("s_nop"))
                yield step
                block.steps[i] = step


def sample(places: list[int], most: int | None, seed: str) -> list[int]:
    if most is None or len(places) <= most:
        return places
    return random.Random(seed).sample(places, most)


def judge(name: str, flow: Flow, fences: Fences, most: int | None = None) -> Counter[str]:
    """The number of waits, and the results of removing them (at most `most`)."""
    counts: Counter[str] = Counter()
    assert strict_hazards.findings(flow, fences) == [], name
    assert walk(flow, fences, random.Random(name), STEPS) is None, name
    chosen = set(sample([step.pc for step in mutants(flow)], most, name))
    for step in mutants(flow):
        if step.pc not in chosen:
            continue
        found = {f.pc for f in strict_hazards.findings(flow, fences)}
        counts["waits"] += 1
        counts["found" if found else "superfluous"] += 1
        rng = random.Random(f"{name} {step.pc}")
        seen = {walk(flow, fences, rng, STEPS) for _ in range(1 if found else WALKS)} - {None}
        assert seen <= found, (name, f"{step.pc:#x} {step.inst.op}")
        counts["seen on a walk"] += bool(seen)
    return counts


@pytest.mark.parametrize("name", ["saxpy", "reduction", "collatz"])
def test_waits_of_the_committed_programs(name: str) -> None:
    total: Counter[str] = Counter()
    for kernel, flow, fences in kernels(PROGRAMS / name):
        total += judge(kernel, flow, fences, 25)
    print(f"{name}: {dict(total)}")
    assert total["found"] > 0
    assert total["superfluous"] <= 1 + total["waits"] // 8


@pytest.mark.sweep
@pytest.mark.parametrize("path", CUBINS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_waits_of_the_kept_kernels(path: Path) -> None:
    total: Counter[str] = Counter()
    for kernel, flow, fences in kernels(path):
        total += judge(kernel, flow, fences, 40)
    print(f"{path.stem} {path.parent.name}: {dict(total)}")
    assert total["found"] > 0
