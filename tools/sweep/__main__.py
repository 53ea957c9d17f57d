"""A random differential test against an NVIDIA GPU: programs of ours, by seed.

::

    python -m tools.sweep run RESULTS [--arch 90 ...] [--flags O3 ...] [--limit S]   # resumable
    python -m tools.sweep table RESULTS                    # what became of them, beside the truth
    python -m tools.sweep source KERNEL [--group]          # CUDA C++ of a kernel
    python -m tools.sweep keep TRUTH --about LINE ...      # the fixture, from what job.py brought

Other kernels than those of the fixture: ``job.py OUT --seed 2`` on the GPU, ``keep OUT --seed 2 --to
TRUTH``, ``run RESULTS --seed 2``, and ``table RESULTS --seed 2 --truth TRUTH``.

Inputs of a block, which nvcc keeps in uniform registers: ``run RESULTS --uniform all --arch 80
--flags O0``, the same with ``--arch 100 120 --flags O3``, and ``table RESULTS --uniform all --beside
80.O0``, which compares with the first instead of a GPU.

``run`` needs nvcc, on PATH or in NVIDIA's wheels; ``table`` needs nothing but RESULTS.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from sassxlate import toolchain
from sassxlate.executors import Place
from tools.sweep import plan, table, truth

from .kernel import SEED, Group
from .run import Settings, run_all
from .uniform import KINDS, of_blocks

RUNNER = (sys.executable, "-m", "sassxlate", "run", "--keep-status")


def _run(given: argparse.Namespace) -> int:
    nvcc = toolchain.nvcc()
    if nvcc is None:
        print("sweep: there is no nvcc, neither on PATH nor in a wheel", file=sys.stderr)
        return 2
    deadline = time.monotonic() + given.limit
    made = plan.groups(given.seed, given.shape or None)
    groups = plan.in_turn([g for g in made if int(g.name[-3:]) % given.every == given.every - 1])
    if given.uniform:
        # A block's inputs are given for the usual launch alone.
        usual = [group for group in groups if not group.name.startswith("launches")]
        groups = [of_blocks(group, given.uniform) for group in usual]
    work = [
        (group, Settings(given.results.absolute(), nvcc, arch, flags, RUNNER, engine=given.engine))
        for group in groups
        for flags in given.flags
        for arch in given.arch
        if plan.wanted(group, flags)
    ]
    place = Place(given.jobs, given.cluster)
    run_all(work, deadline, lambda text: print(text, flush=True), place)
    return 0


def _table(given: argparse.Namespace) -> int:
    if given.beside:
        return table.beside(given.results, given.beside, given.list, given.seed, given.uniform)
    return table.show(given.results, given.list, given.seed, given.truth)


def _keep(given: argparse.Namespace) -> int:
    print(truth.keep(given.truth, given.about, given.to, given.seed))
    return 0


def _seed(command: argparse.ArgumentParser) -> None:
    command.add_argument("--seed", type=int, default=SEED, help="of the kernels (1: the kept)")


def _uniform(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--uniform", default="", choices=("", *KINDS), help="inputs of a block, or most of them"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="The random differential test.")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="run kernels on our device")
    run.add_argument("results", type=Path)
    run.add_argument("--arch", type=int, nargs="+", default=[90], choices=plan.ARCHES)
    run.add_argument("--flags", nargs="+", default=["O3"], choices=tuple(plan.FLAGS))
    run.add_argument("--shape", nargs="+", default=[])
    _uniform(run)
    run.add_argument("--every", type=int, default=1, help="one group in so many of a shape")
    run.add_argument("--limit", type=float, default=1e9, help="seconds")
    run.add_argument("--jobs", type=int, default=1, help="groups at a time")
    run.add_argument("--cluster", help="a Dask scheduler whose workers do them: tcp://HOST:PORT")
    run.add_argument("--engine", default="", choices=("", "llvm", "best"), help="writes the code")
    _seed(run)
    run.set_defaults(do=_run)
    shown = commands.add_parser("table", help="compare results with the truth")
    shown.add_argument("results", type=Path)
    shown.add_argument("--list", action="store_true", help="name what is not the same")
    shown.add_argument("--beside", metavar="ARCH.FLAGS", help="instead of a GPU's truth: 80.O0")
    _uniform(shown)
    shown.add_argument("--truth", type=Path, default=truth.FOLDER, help="as `keep` wrote it")
    _seed(shown)
    shown.set_defaults(do=_table)
    source = commands.add_parser("source", help="a kernel's CUDA C++")
    source.add_argument("kernel")
    source.add_argument("--arch", type=int, default=90)
    source.add_argument("--group", action="store_true", help="its whole group")
    _seed(source)
    source.set_defaults(do=_source)
    kept = commands.add_parser("keep", help="write the fixture")
    kept.add_argument("truth", type=Path)
    kept.add_argument("--about", nargs="+", required=True)
    kept.add_argument("--to", type=Path, default=truth.FOLDER, help="the folder to write")
    _seed(kept)
    kept.set_defaults(do=_keep)
    given = parser.parse_args()
    return int(given.do(given))


def _source(given: argparse.Namespace) -> int:
    for group in plan.groups(given.seed):
        for kernel in group.kernels:
            if kernel.name == given.kernel:
                chosen = group if given.group else Group(group.name, (kernel,))
                print(chosen.source(given.arch))
                return 0
    print(f"sweep: no kernel {given.kernel}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
