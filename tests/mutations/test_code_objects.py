"""Damaged code objects and instructions: the emulated device's compiler, and the graph's entry."""

from __future__ import annotations

import os
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from sassxlate.disasm.containers import Cubin, Kernel, load
from sassxlate.errors import SassxlateError
from sassxlate.lowering import emulate
from sassxlate.lowering.emulate import compiler
from sassxlate.lowering.kernel_graph import kernel_cfg
from sassxlate.lowering.pipeline import translate_kernel

from .mutate import mutated

HERE = Path(__file__).resolve().parent


assert compiler  # imported once, before the processes fork

FIXTURES = HERE.parents[1] / "fixtures"
PROGRAMS = [FIXTURES / "programs" / name for name in ("saxpy", "collatz", "reduction")]
TIME_LIMIT_S = 10  # of CPU time
COMPILED, REFUSED, UNTYPED = 0, 3, 9


def kernels(*files: Path) -> list[tuple[Cubin, Kernel]]:
    """Every kernel of the files, with its cubin."""
    return [(cubin, k) for file in files for _, cubin in load(file).cubins() for k in cubin.kernels]


def compile_apart(code_object: bytes, kernel: str, strict: bool) -> int:
    """The exit status of a process that compiles it: LLVM may end the process that it is in."""
    child = os.fork()
    if child == 0:
        status = UNTYPED
        try:
            signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_S)
            signal.alarm(12 * TIME_LIMIT_S)
            emulate.compile_code_object(code_object, kernel, strict=strict)
            status = COMPILED
        except SassxlateError as error:
            status = REFUSED if "\n" not in str(error) else UNTYPED
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check(seeds: range) -> Counter[int]:
    """Compiles damaged code objects; fails the test on any end that is neither code nor typed."""
    objects = [(k.name, translate_kernel(c, k.name).code_object) for c, k in kernels(*PROGRAMS)]
    ends: Counter[int] = Counter()
    for seed in seeds:
        name, data = objects[seed % len(objects)]
        # Half of them in the middle, where code and descriptor are.
        spans = [] if seed % 2 else [(256, len(data) * 2 // 3)]
        end = compile_apart(mutated(data, seed, spans), name, strict=seed % 4 == 0)
        assert end in (COMPILED, REFUSED), f"seed {seed} of {name}: {end}"
        ends[end] += 1
    return ends


def test_damaged_code_objects() -> None:
    """A few seeds of the sweep below."""
    ends = check(range(12))
    assert min(ends[COMPILED], ends[REFUSED]) > 1


@pytest.mark.sweep
def test_many_damaged_code_objects() -> None:
    """Two thousand."""
    check(range(12, 2012))


@pytest.mark.parametrize(
    ("arch", "first", "step"),
    [
        # Other kernels of each architecture; the sweep has all.
        ("sm_80", 0, 12),
        ("sm_90", 6, 12),
        pytest.param("sm_80", 0, 1, marks=pytest.mark.sweep),
        pytest.param("sm_90", 0, 1, marks=pytest.mark.sweep),
    ],
)
def test_no_word_is_passed_over(arch: str, first: int, step: int) -> None:
    """A word that is not an instruction is refused at its offset wherever control can reach it."""
    files = sorted((FIXTURES / "kernels" / arch).glob("*.cubin"))[first::step]
    for _, kernel in kernels(*files, PROGRAMS[0]):
        try:
            graph = kernel_cfg(kernel)
        except SassxlateError:
            continue
        for offset in (i.offset for b in graph.blocks for i in b.instructions):
            code = kernel.code[:offset] + b"\xff" * 16 + kernel.code[offset + 16 :]
            with pytest.raises(SassxlateError) as caught:
                kernel_cfg(replace(kernel, code=code))
            assert caught.value.where.offset == offset, f"{kernel.name} {offset:#x}: {caught.value}"
