"""Whole launches on the device, against the reference interpreter.

::

    python -m tools.silicon.launches run -o RESULTS     # the device's; needs no other tool
    python -m tools.silicon.launches keep RESULTS...    # fixtures, from results of an NVIDIA GPU
    python -m tools.silicon.launches giving [RESULTS]   # hints and BSYNC: docs/errata.md

``run`` prints a table, and writes RESULTS.jsonl (a line per case: verdict, digest of the memory,
the forms of control flow and hints that its warps executed and how) and RESULTS.npz (what ``out``
was). What there is below ``build/launches`` is launched too: random CUDA kernels, which ``cuda``
makes (nvcc), and launches of programs, which ``record`` keeps.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tools.silicon.launches import giving, kept
from tools.silicon.report import print_table

from .cases import CUDA, CUDA_SEEDS, cases
from .programs import record

ROOT = Path(__file__).resolve().parents[3]


VERDICTS = ("equal", "differ", "unsteady", "failed", "hung", "undescribed", "late", "approximate")


def _run(options: argparse.Namespace) -> int:
    from tools.silicon.device import Device

    from .measure import measure

    chosen = [c for c in cases() if re.search(options.only, c.name)][options.phase :: options.step]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        limits = options.processes, options.patience, options.seconds
        found = measure(chosen, folder, *limits)
        arrays: dict[str, object] = {}
        for path in folder.glob("*.npz"):
            with np.load(path) as data:
                arrays |= dict(data.items())
    np.savez_compressed(f"{options.output}.npz", **arrays)  # type: ignore[arg-type]
    verdicts: list[tuple[str, str]] = []
    with Path(f"{options.output}.jsonl").open("w") as lines:
        for case, line in zip(chosen, found, strict=True):
            name = case.where.partition(":")[0] if "#" not in case.name else "kernels"
            name = re.sub(r"\d+", "", case.name.split()[0]) if " " in case.name else name
            verdicts.append((name, str(line["verdict"])))
            print(json.dumps(line | {"name": case.name}), file=lines)
            if line["verdict"] != "equal":
                less = {k: v for k, v in line.items() if k not in ("forms", "n", "digest")}
                print(case.name, less)
    print(Device().describe())
    total = print_table(verdicts, VERDICTS)
    return int(total["equal"] < sum(total.values()))


def _cuda() -> int:
    from tests.disasm.sass.interpreter import generated_cuda

    CUDA.mkdir(parents=True, exist_ok=True)
    for seed in range(CUDA_SEEDS):
        source = CUDA / f"cuda{seed}.cu"
        source.write_text(generated_cuda.source(seed, 3))
        flags = ["-O3", "-std=c++17", "-arch=sm_90", "-cubin", "-w"]
        made = source.with_suffix(".cubin")
        subprocess.run(["nvcc", *flags, source, "-o", made], check=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("run")
    command.add_argument("-o", "--output", required=True)
    command.add_argument("--processes", type=int, default=14)
    command.add_argument("--patience", type=float, default=20, help="seconds of a case's launches")
    command.add_argument("--seconds", type=float, default=1e9, help="stop after that long")
    command.add_argument("--only", default="", help="cases whose name has this pattern")
    command.add_argument("--step", type=int, default=1)
    command.add_argument("--phase", type=int, default=0)
    command = commands.add_parser("keep")
    command.add_argument("results", type=Path, nargs="+", help="RESULTS.jsonl")
    command = commands.add_parser("giving")
    command.add_argument("results", type=Path, nargs="?", help="RESULTS.jsonl, to be kept")
    commands.add_parser("cuda")
    command = commands.add_parser("record")
    command.add_argument("programs", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "run":
        return _run(options)
    if options.command == "giving":
        if options.results is not None:
            giving.keep(options.results)
        giving.table()
        return 0
    if options.command == "cuda":
        return _cuda()
    if options.command == "record":
        print(record(options.programs, CUDA / "programs"))
        return 0
    print(kept.write(options.results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
