"""How an NVIDIA GPU schedules the lanes of a warp.

::

    python -m tools.silicon.convergence pack PACK.npz     # what driver.py launches, on a GPU
    python -m tools.silicon.convergence keep RESULTS...   # fixtures, of the folders that it wrote
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from sassxlate.disasm.sass.codec.assembler import assemble_listing
from tests.disasm.sass.interpreter import generated_calls as generated
from tools.silicon.convergence import calls, drawn, kept, listing
from tools.silicon.launches.cases import template

from .kernels import SIZE, kernels

ROOT = Path(__file__).resolve().parents[3]


def _pack(path: Path) -> int:
    cubin, at, room = template()
    nop = assemble_listing(listing.scheduled(["NOP"]), 90)[""]
    parts: dict[str, Any] = {
        "template": np.frombuffer(cubin, np.uint8), "nop": np.frombuffer(nop, np.uint8),
        "at": np.array(at), "room": np.array(room),
    }  # fmt: skip
    names: list[list[object]] = []
    for kernel in kernels():
        code = kernel.code()
        if len(code) > room:
            continue
        parts["c:" + kernel.name] = np.frombuffer(code, np.uint8)
        parts["a:" + kernel.name] = np.array(drawn.data(kernel.name), np.uint32)
        kind = "heavy" if kernel.heavy else "light"
        names.append([kernel.name, kind, "launch_probe", 1, 32, SIZE // 4])
    for seed, clock in product(range(calls.SEEDS), (False, True)):
        name = f"cudak {seed}" if clock else f"cudac {seed}"
        parts["c:" + name] = np.frombuffer(calls.build(seed, clock=clock), np.uint8)
        a, b, out = calls.inputs(seed)
        parts |= {"a:" + name: a, "b:" + name: b}
        names.append([name, "cuda", f"calls{seed}", generated.GRID, generated.BLOCK, len(out)])
    parts["names"] = np.frombuffer(json.dumps(names).encode(), np.uint8)
    np.savez_compressed(path, **parts)
    return len(names)


def _keep(folders: list[Path]) -> None:
    for kind, (steady, explained) in kept.keep([f / "events.jsonl.gz" for f in folders]).items():
        print(f"{kind}: {explained} of {steady}")
    steady, plain, silicon = calls.keep(*calls.results(folders))
    print(f"CUDA: {steady} steady, {plain} as Order.WARPS leaves it, {silicon} as Order.SILICON")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("pack")
    command.add_argument("path", type=Path)
    command = commands.add_parser("keep")
    command.add_argument("results", type=Path, nargs="+")
    options = parser.parse_args()
    try:
        if options.command == "pack":
            print(_pack(options.path))
        else:
            _keep(options.results)
    except (OSError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
