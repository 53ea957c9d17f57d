"""Launches one fixture kernel through our libcuda.so.1 and compares its output.

Run by ``sassxlate run``, in a separate process: a kernel that crashes or hangs affects only this
process.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from sassxlate.files import replace_file
from sassxlate.runtime_shim.driver import CudaError, Driver
from sassxlate.runtime_shim.selftest.contracts.contracts import CONTRACTS, Contract

_REPEATS = 5
_SHOWN = 16  # differing words listed per seed
Difference = list[int]  # index, actual, expected


def launch(driver: Driver, function: ctypes.c_void_p, contract: Contract, seed: int) -> Any:
    """Differences and times of one seed's launches, of which the worst counts; a kernel's first
    launch includes its translation."""
    inputs = contract.inputs(seed)
    start = np.full(contract.out_words, contract.start, dtype=np.uint32)
    a, b, out = (driver.upload(words) for words in (*inputs, start))
    n = ctypes.c_int(contract.n)
    pointers = (ctypes.c_void_p * 4)(
        *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in (a, b, out, n))
    )
    expected = contract.expected(*inputs)
    seconds: list[float] = []
    wrong: list[int] = []
    actual = start
    for _ in range(1 + _REPEATS):
        driver.write(out, start)
        begin = time.perf_counter()
        driver.call(
            "cuLaunchKernel",
            *(function, contract.grid, 1, 1, contract.block, 1, 1, contract.shared_bytes),
            *(None, pointers, None),
        )
        driver.call("cuCtxSynchronize")
        seconds.append(time.perf_counter() - begin)
        got = driver.read(out, contract.out_words)
        different = contract.differences(got, expected)
        if len(different) > len(wrong):
            wrong, actual = different, got
    for pointer in (a, b, out):
        driver.call("cuMemFree_v2", pointer)
    shown: list[Difference] = [[i, int(actual[i]), int(expected[i])] for i in wrong[:_SHOWN]]
    return {
        "seed": seed,
        "words": contract.out_words,
        "wrong": len(wrong),
        "first_wrong": shown,
        "first_launch_s": round(seconds[0], 6),
        "launch_s": round(statistics.median(seconds[1:]), 6),
    }


def main(arguments: list[str]) -> int:
    """CUBIN KERNEL RESULT SEEDS: writes the result as JSON after each seed."""
    cubin, name, result, seeds = arguments
    answer: dict[str, Any] = {"seeds": []}
    path = Path(result)
    try:
        driver = Driver()
        answer["device"] = driver.device_name()
        function = driver.function(Path(cubin).read_bytes(), name)
        for seed in range(int(seeds)):
            answer["seeds"].append(launch(driver, function, CONTRACTS[name], seed))
            replace_file(path, json.dumps(answer).encode())
    except CudaError as error:
        answer["error"] = {"call": error.call, "code": error.code}
    answer["complete"] = True
    replace_file(path, json.dumps(answer).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
