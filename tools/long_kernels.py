"""What translating long kernels takes: CPU time and memory by their size.

One line for each of the longest kernels of some files, or of some that a seed draws: SASS and
RDNA3 instructions, CPU microseconds a SASS instruction, and the most memory that a translation held
at a time in bytes a SASS instruction (as ``tracemalloc`` counts it: with the result, and the caches
that it filled).

    python -m tools.long_kernels --least 10000 LIB.so...
    python -m tools.long_kernels --least 10000 --seed 20 --most 36 LIB.so...
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sassxlate import collector
from sassxlate.disasm.containers import Cubin
from sassxlate.errors import UsageError
from sassxlate.executors import in_own_process
from sassxlate.lowering.pipeline import translate_code
from tools.kernel_digests import kernels

_WORD = 16  # bytes of an instruction
_chosen: list[tuple[Cubin, str]] = []  # forked processes find the cubins in memory


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a kernel: ``cpu`` in seconds, ``peak`` in bytes."""

    kernel: str
    sass: int
    rdna3: int
    cpu: float
    peak: int

    def line(self) -> str:
        """The row as text."""
        us, held = self.cpu / self.sass * 1e6, self.peak / self.sass
        return f"{self.sass:7} {self.rdna3:7} {us:7.0f} {held:7.0f}  {self.kernel}"


def _translate(task: tuple[int, bool]) -> tuple[int, int, float, int]:
    number, traced = task
    with collector.paused():
        if traced:
            tracemalloc.start()
        started = time.process_time()
        made = translate_code(*_chosen[number]).report
        used = time.process_time() - started
        peak = tracemalloc.get_traced_memory()[1] if traced else 0
        tracemalloc.stop()
    return made.sass_instructions, made.rdna_instructions, used, peak


def costs(chosen: Sequence[tuple[Cubin, str]]) -> Iterator[Cost]:
    """Each in two processes of its own, for the time and for the memory, which tracing slows."""
    _chosen[:] = chosen
    for number, (_, name) in enumerate(chosen):
        timed, traced = (_in_process((number, traced)) for traced in (False, True))
        yield Cost(name, *timed[:3], traced[3])


def _in_process(task: tuple[int, bool]) -> tuple[int, int, float, int]:
    done = in_own_process(_translate, task)
    if done.result is None:
        raise UsageError("SX0888", f"the process that translated {_chosen[task[0]][1]} died")
    return done.result


def main(argv: Sequence[str] | None = None) -> int:
    """1 if there is no such kernel."""
    parser = argparse.ArgumentParser(prog="tools.long_kernels", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--least", type=int, default=10_000, help="instructions")
    parser.add_argument("--most", type=int, default=8, help="kernels")
    parser.add_argument("--seed", type=int, help="draws them, instead of the longest")
    given = parser.parse_args(argv)
    sizes: list[tuple[int, int, Cubin, str]] = []
    shortest: tuple[int, int, Cubin, str] | None = None
    for number, (_, cubin, name) in enumerate(kernels(given.files)):
        size = len(next(k for k in cubin.kernels if k.name == name).code) // _WORD
        one = size, number, cubin, name
        if shortest is None or size < shortest[0]:
            shortest = one
        if size >= given.least:  # of the others no cubin is kept
            sizes.append(one)
    if given.seed is not None:
        sizes = random.Random(given.seed).sample(sizes, min(given.most, len(sizes)))
    sizes.sort(key=lambda some: (-some[0], some[1]))
    found = [(cubin, name) for _, _, cubin, name in sizes][: given.most]
    if not found or shortest is None:
        print(f"no kernel of {given.least} instructions")
        return 1
    translate_code(*shortest[2:])  # tables and rules, which every process has from its start
    print("   SASS   RDNA3      us   bytes  kernel")
    for cost in costs(found):
        print(cost.line(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
