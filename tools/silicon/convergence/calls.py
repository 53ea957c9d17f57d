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
LIMIT = 120_000
Words = NDArray[np.uint32]


def inputs(seed: int) -> tuple[Words, Words, Words]:
    """``a``, ``b`` and ``out`` before the launch."""
    threads = generated.GRID * generated.BLOCK
    a, b = hashed(1000 + seed, 2, threads).astype(np.uint32)
    return a, b, np.zeros(2 * generated.WORDS * threads, np.uint32)


def build(seed: int, arch: int = 90, *, clock: bool = False) -> bytes:
    """With nvcc; ``clock``: as :func:`generated.source`.  Raises OSError, CalledProcessError."""
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name) / "calls.cu", Path(name) / "calls.cubin"
        source.write_text(generated.source(seed, clock=clock))
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


def order_of(out: Words) -> NDArray[np.uint16]:
    """When the words of each thread were written, of ``out`` with clocks: a number per warp and
    time, from 1; 0 for words that were not."""
    clocks = out.reshape(-1, 32, 2, generated.WORDS)[:, :, 1]
    order = np.zeros(clocks.shape, np.uint16)
    for at, warp in zip(order, clocks, strict=True):
        written = warp != 0
        first = warp[written].min()
        if warp.max() - first > 1 << 31:  # it has wrapped
            first = warp[warp >= 1 << 31].min()
        at[written] = np.unique(warp[written] - first, return_inverse=True)[1] + 1
    return order.reshape(-1, generated.WORDS)


def keep(
    verdicts: Mapping[int, str], outs: Mapping[int, Words], clocked: Mapping[int, Words]
) -> list[int]:
    """Writes ``calls.txt`` and ``open_calls.npz``; gives how many are steady, equal in
    Order.WARPS, and in Order.SILICON."""
    lines, count = [ABOUT], [0, 0, 0]
    arrays: dict[str, NDArray[np.uint32] | NDArray[np.uint16]] = {}
    for seed, verdict in sorted(verdicts.items()):
        left = words_digest(outs[seed]) if seed in outs and verdict == "steady" else "-"
        if verdict == "steady" and left == "-":
            continue
        plain, silicon = (interpreted(seed, order) for order in (Order.WARPS, Order.SILICON))
        hung = verdict == "hung" and silicon == "SX0214"
        known = "explained" if hung or silicon == left else "open"
        same = "equal" if plain == left else "apart"
        lines.append(f"{verdict} {left} {known} {same} {seed}\n")
        if known == "open" and left != "-":
            words = arrays[f"words {seed}"] = _words(outs[seed])
            if seed in clocked and (_words(clocked[seed]) == words).all():
                arrays[f"order {seed}"] = order_of(clocked[seed])
        count = [n + x for n, x in zip(count, (left != "-", plain == left, silicon == left),
                                       strict=True)]  # fmt: skip
    (FOLDER / "calls.txt").write_text("".join(lines))
    np.savez_compressed(FOLDER / "open_calls.npz", **arrays)  # type: ignore[arg-type]
    return count


def _words(out: Words) -> Words:
    return out.reshape(-1, 2, generated.WORDS)[:, 0]


def results(folders: Sequence[Path]) -> tuple[dict[int, str], dict[int, Words], dict[int, Words]]:
    """The output of ``driver.py`` in these folders: verdicts and words, by seed, and the words
    of the kernels with clocks."""
    verdicts: dict[int, str] = {}
    outs: dict[int, Words] = {}
    clocked: dict[int, Words] = {}
    for folder in folders:
        with gzip.open(folder / "events.jsonl.gz", "rt") as texts:
            for text in texts:
                line = json.loads(text)
                kind, _, seed = line["name"].partition(" ")
                if kind == "cudac" and line["verdict"] != "late":
                    verdicts[int(seed)] = line["verdict"]
        with np.load(folder / "cuda.npz") as data:
            for name in (n for n in data.files if ":" not in n):
                kind, _, seed = name.partition(" ")
                (clocked if kind == "cudak" else outs)[int(seed)] = data[name]
    return verdicts, outs, clocked
