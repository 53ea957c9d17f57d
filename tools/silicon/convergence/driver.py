"""Launches kernels on an NVIDIA GPU; needs numpy and the driver, and nothing of this package.

``python driver.py PACK.npz OUT`` (with ``supervised.py`` beside it): processes share the kernels of
the file that ``python -m tools.silicon.convergence pack`` writes; hanging kernels are ended.  OUT
gets ``events.jsonl.gz``, a line per kernel: verdict, and the events ([number, lanes by vote, lanes
by what they stored, B0 to B3, R16, clock] in the order of the clock); and ``cuda.npz``, the words
of CUDA kernels.
"""

from __future__ import annotations

import collections
import ctypes
import gzip
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from supervised import supervised  # type: ignore

OUT = 4 << 20  # bytes
TIMES = 3  # that each is launched
PROCESSES, SECONDS, PATIENCE = 14, 58.0, 1.5
STACK = 8192
Words = NDArray[np.uint32]


class Bad(Exception):
    """A call of the driver failed."""


class Device:
    """One context, and memory for a, b and out."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        context = c_void_p()
        self.call("cuInit", c_uint(0))
        self.call("cuDevicePrimaryCtxRetain", byref(context), c_int(0))
        self.call("cuCtxSetCurrent", context)
        self.call("cuCtxSetLimit", c_int(0), c_size_t(STACK))
        self.out, self.a, self.b = (self._allocate(n) for n in (OUT, 1 << 16, 1 << 16))
        assert (self.out.value or 0) % (1 << 20) == 0  # the kernels add to its low half alone

    def call(self, name: str, *args: object) -> None:
        status = int(getattr(self._cuda, name)(*args))
        if status:
            raise Bad(f"{name}: {status}")

    def _allocate(self, size: int) -> c_void_p:
        at = c_void_p()
        self.call("cuMemAlloc_v2", byref(at), c_size_t(size))
        return at

    def put(self, at: c_void_p, x: Words) -> None:
        self.call("cuMemcpyHtoD_v2", at, x.ctypes.data_as(c_void_p), c_size_t(x.nbytes))

    def get(self, at: c_void_p, x: Words) -> None:
        self.call("cuMemcpyDtoH_v2", x.ctypes.data_as(c_void_p), at, c_size_t(x.nbytes))

    def launched(self, cubin: bytes, kernel: str, grid: int, block: int, a: Words, b: Words,
                 size: int) -> list[Words]:  # fmt: skip
        """``out`` after each of several launches."""
        module, function = c_void_p(), c_void_p()
        self.call("cuModuleLoadData", byref(module), c_char_p(cubin))
        self.call("cuModuleGetFunction", byref(function), module, c_char_p(kernel.encode()))
        values = [self.a, self.b, self.out, c_int(0)]
        table = (c_void_p * 4)(*(ctypes.cast(byref(v), c_void_p) for v in values))
        shape = (c_uint(n) for n in (grid, 1, 1, block, 1, 1, 0))
        numbers = list(shape)
        self.put(self.a, a)
        runs: list[Words] = []
        for _ in range(TIMES):
            self.put(self.b, b)
            left = np.zeros(size, np.uint32)
            self.put(self.out, left)
            self.call("cuLaunchKernel", function, *numbers, None, table, None)
            self.call("cuCtxSynchronize")
            self.get(self.out, left)
            runs.append(left)
        self.call("cuModuleUnload", module)
        return runs


def events(words: Words, heavy: bool) -> list[list[Any]]:
    """``words``: over (32 lanes, 64 events, 8)."""
    found: dict[tuple[int, int, int], dict[int, tuple[list[int], int]]] = {}
    for lane in range(32):
        for row in words[lane].tolist():
            if row[0] == 0:
                break
            event = found.setdefault((row[2], row[0], row[1]), {})
            event[lane] = (row[3:7], row[7]) if heavy else ([], row[3])
    clocks = [clock for clock, _, _ in found]
    start = min(clocks, default=0)
    if max(clocks, default=0) - start > 1 << 31:  # it has wrapped
        start = min(clock for clock in clocks if clock >= 1 << 31)
    out: list[list[Any]] = []
    for (clock, number, vote), lanes in found.items():
        rows = list(lanes.values())
        every = [b for b, _ in rows]
        same = all(b == every[0] for b in every)
        barriers = every[0] if same else {str(n): b for n, (b, _) in lanes.items()}
        values = {v for _, v in rows}
        value = rows[0][1] if len(values) == 1 else {str(n): v for n, (_, v) in lanes.items()}
        mask = sum(1 << lane for lane in lanes)
        out.append([number, vote, mask, barriers, value, (clock - start) & 0xFFFFFFFF])
    return sorted(out, key=lambda event: event[5])


def _worker(pack: dict[str, Any], names: list[list[Any]], numbers: Sequence[int], out: str) -> None:
    device = Device()
    kept: dict[str, Words] = {}
    template, at, room = bytes(pack["template"]), int(pack["at"]), int(pack["room"])

    def save() -> None:
        if kept:
            np.savez_compressed(f"{out}.{os.getpid()}.npz", **kept)  # type: ignore[arg-type]

    with Path(out).open("a") as lines:

        def put(line: dict[str, object]) -> None:
            print(json.dumps(line, separators=(",", ":")), file=lines, flush=True)

        for n in numbers:
            name, kind, kernel, grid, block, size = names[n]
            put({"n": n, "verdict": "hung"})  # unless another line follows
            code = bytes(pack["c:" + name])
            if kind != "cuda":
                code += bytes(pack["nop"]) * ((room - len(code)) // 16)
                code = template[:at] + code + template[at + room :]
            a, b = (pack.get(x + name, np.zeros(64, np.uint32)) for x in ("a:", "b:"))
            try:
                runs = device.launched(code, kernel, grid, block, a, b, size)
            except Bad as error:
                put({"n": n, "verdict": "failed", "why": str(error)})
                save()
                lines.close()
                os._exit(0)  # the context is spoiled
            if kind == "cuda":
                steady = all((run == runs[0]).all() for run in runs)
                kept[name] = runs[0]
                put({"n": n, "verdict": "steady" if steady else "unsteady"})
                continue
            shape = (32, 64, 8)
            logs = [events(r[: 32 * 512].reshape(shape), kind == "heavy") for r in runs]
            bare = [[event[:5] for event in log] for log in logs]
            steady = all(log == bare[0] for log in bare)
            put({"n": n, "verdict": "steady" if steady else "unsteady", "log": logs[0]})
        save()


def main() -> None:
    with np.load(sys.argv[1]) as file:  # all before any fork, or its position is shared
        pack = {key: file[key] for key in file.files}
    names: list[list[Any]] = json.loads(bytes(pack["names"]).decode())
    shares = [range(p, len(names), PROCESSES) for p in range(min(PROCESSES, len(names)))]
    into = Path(sys.argv[2])
    into.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Words] = {}
    with tempfile.TemporaryDirectory() as folder:
        worker = partial(_worker, pack, names)
        found: list[dict[str, Any]] = supervised(worker, shares, Path(folder), SECONDS, PATIENCE)
        for path in Path(folder).glob("*.npz"):
            with np.load(path) as data:
                arrays |= dict(data.items())
    np.savez_compressed(into / "cuda.npz", **arrays)  # type: ignore[arg-type]
    count: collections.Counter[str] = collections.Counter()
    with gzip.open(into / "events.jsonl.gz", "wt") as lines:
        for line, about in zip(found, names, strict=True):
            count[f"{about[0].split()[0]} {line['verdict']}"] += 1
            print(json.dumps(line | {"name": about[0]}, separators=(",", ":")), file=lines)
    print(*(f"{key} {value}" for key, value in sorted(count.items())), sep="\n")


if __name__ == "__main__":
    main()
