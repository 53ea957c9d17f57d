"""The CUDA kernels of ``tests/disasm/sass/interpreter/generated_calls.py``, on an H200 and in the
interpreter."""

from __future__ import annotations

import gzip
import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sassxlate.disasm.containers.cubin import parse_cubin
from sassxlate.disasm.sass.interpreter import Order, ScheduleOptions
from sassxlate.errors import InterpretError
from tests.disasm.sass.interpreter import generated_calls as generated
from tests.disasm.sass.interpreter.launches import Prepared
from tools.silicon.warps.inputs import hashed

from .kept import ABOUT, FOLDER, words_digest

SEEDS = 160
LIMIT = 60_000
Words = NDArray[np.uint32]


def inputs(seed: int) -> tuple[Words, Words, Words]:
    """``a``, ``b`` and ``out`` before the launch."""
    threads = generated.GRID * generated.BLOCK
    a, b = hashed(1000 + seed, 2, threads).astype(np.uint32)
    return a, b, np.zeros(2 * generated.WORDS * threads, np.uint32)


def build(seed: int, arch: int = 90) -> bytes:
    """With nvcc.  Raises OSError, CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name) / "calls.cu", Path(name) / "calls.cubin"
        source.write_text(generated.source(seed))
        command = ["nvcc", *generated.flags(seed), "-std=c++17", f"-arch=sm_{arch}", "-cubin", "-w"]
        subprocess.run([*command, str(source), "-o", str(made)], check=True)
        return made.read_bytes()


def prepared(seed: int, arch: int = 90) -> Prepared:
    """A launch, of the kept cubin if there is one."""
    path = FOLDER / f"calls{seed}.sm_{arch}.cubin"
    cubin = parse_cubin(path.read_bytes() if path.exists() else build(seed, arch))
    shape = (generated.GRID, 1, 1), (generated.BLOCK, 1, 1)
    return Prepared(cubin, f"calls{seed}", *shape, inputs(seed), 0)


def interpreted(seed: int, order: Order, arch: int = 90) -> str:
    """The digest of ``out``, or the code of the error."""
    try:
        return words_digest(prepared(seed, arch).interpreted(ScheduleOptions(order, LIMIT)))
    except InterpretError as error:
        return error.code


def keep(verdicts: Mapping[int, str], outs: Mapping[int, Words]) -> list[int]:
    """Writes ``calls.txt``; gives how many are steady, equal in Order.WARPS, and in
    Order.SILICON."""
    lines, count = [ABOUT], [0, 0, 0]
    for seed, verdict in sorted(verdicts.items()):
        left = words_digest(outs[seed]) if seed in outs and verdict == "steady" else "-"
        if verdict == "steady" and left == "-":
            continue
        plain, silicon = (interpreted(seed, order) for order in (Order.WARPS, Order.SILICON))
        hung = verdict == "hung" and silicon == "SX0214"
        known = "explained" if hung or silicon == left else "open"
        same = "equal" if plain == left else "apart"
        lines.append(f"{verdict} {left} {known} {same} {seed}\n")
        count = [n + x for n, x in zip(count, (left != "-", plain == left, silicon == left),
                                       strict=True)]  # fmt: skip
    (FOLDER / "calls.txt").write_text("".join(lines))
    return count


def results(folders: Sequence[Path]) -> tuple[dict[int, str], dict[int, Words]]:
    """The output of ``driver.py`` in these folders: verdicts and words, by seed."""
    verdicts: dict[int, str] = {}
    outs: dict[int, Words] = {}
    for folder in folders:
        with gzip.open(folder / "events.jsonl.gz", "rt") as texts:
            for text in texts:
                line = json.loads(text)
                kind, _, seed = line["name"].partition(" ")
                if kind == "cudac" and line["verdict"] != "late":
                    verdicts[int(seed)] = line["verdict"]
        with np.load(folder / "cuda.npz") as data:
            outs |= {int(n.split()[1]): data[n] for n in data.files
                     if n.startswith("cudac ") and ":" not in n}  # fmt: skip
    return verdicts, outs
