"""Launches one kernel of a cubin through our libcuda.so.1, with the arguments that a file lists.

Started by ``sassxlate run`` for ``sassxlate verify launches --grid``: the launch is recorded
there.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from sassxlate.runtime_shim.driver import CudaError, Driver


def main(arguments: list[str]) -> int:
    """SPEC: a JSON object of cubin, kernel, grid, block, shared, and values: hexadecimal bytes,
    or the path of a buffer's."""
    spec: dict[str, Any] = json.loads(Path(arguments[0]).read_text())
    try:
        driver = Driver()
        function = driver.function(Path(spec["cubin"]).read_bytes(), spec["kernel"])
        values: list[Any] = []
        for value in spec["values"]:
            if "file" in value:
                data = np.frombuffer(Path(value["file"]).read_bytes(), np.uint8)
                pointer = ctypes.c_uint64()
                size = ctypes.c_size_t(data.nbytes)
                driver.call("cuMemAlloc_v2", ctypes.byref(pointer), size)
                driver.call("cuMemcpyHtoD_v2", pointer, data.tobytes(), size)
                values.append(pointer)
            else:
                raw = bytes.fromhex(value["hex"])
                values.append(ctypes.create_string_buffer(raw, max(len(raw), 1)))
        pointers = (ctypes.c_void_p * max(len(values), 1))(
            *(ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values)
        )
        shape = (*spec["grid"], *spec["block"], spec["shared"])
        driver.call("cuLaunchKernel", function, *shape, None, pointers, None)
        driver.call("cuCtxSynchronize")
    except CudaError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
