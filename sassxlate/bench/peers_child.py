"""One side of `bench peers`: runs the ten kernels, by libcuda or by OpenCL, when it is told to.

``python -m sassxlate.bench.peers_child cuda|opencl FILE``.  On standard input a line ``KERNEL
TIMES`` each; the answer is a line of JSON: processor and wall seconds of that many launches, all
threads counted, and the digest of what was checked.  A first line names the device.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sassxlate.bench.peers_kernels import Array, PeerKernel, peer_kernel

_GPU_OR_CPU = 0xFFFFFFFF
_CL_NAME, _CL_VERSION = 0x102B, 0x102F
_CL_BUILD_LOG = 0x1183


class Side(Protocol):
    """A device that runs kernels."""

    name: str

    def prepare(self, kernel: PeerKernel) -> Callable[[], None]:
        """What launches a kernel and waits for its end; its buffers are filled."""
        ...

    def result(self) -> Array:
        """The output of the kernel prepared last."""
        ...


class Cuda:
    """By libcuda, ours under `run`."""

    def __init__(self, file: Path) -> None:
        from sassxlate.runtime_shim.driver import Driver

        self._driver = Driver()
        self._image = file.read_bytes()
        self.name = self._driver.device_name()
        self._kept: list[list[Any]] = []
        self._output: tuple[ctypes.c_uint64, Array] | None = None

    def prepare(self, kernel: PeerKernel) -> Callable[[], None]:
        driver, function = self._driver, self._driver.function(self._image, kernel.name)
        values: list[Any] = []
        for argument in kernel.arguments:
            if isinstance(argument, int):
                values.append(ctypes.c_int(argument))
                continue
            values.append(driver.upload(argument.view(np.uint32).ravel()))
        self._output = values[kernel.output], kernel.arrays[kernel.output]
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values)
        )

        def launch() -> None:
            driver.call(
                "cuLaunchKernel",
                function,
                *kernel.grid,
                1,
                *kernel.block,
                1,
                0,
                None,
                pointers,
                None,
            )
            driver.call("cuCtxSynchronize")

        self._kept.append(values)
        return launch

    def result(self) -> Array:
        assert self._output is not None
        pointer, like = self._output
        return self._driver.read(pointer, like.nbytes // 4).view(like.dtype)


class OpenCl:
    """By libOpenCL, the first platform whose name is PoCL's."""

    def __init__(self, file: Path) -> None:
        self._library = ctypes.CDLL("libOpenCL.so.1")
        self._kept: list[list[Any]] = []
        for name in (
            "clCreateContext", "clCreateCommandQueue", "clCreateProgramWithSource",
            "clCreateKernel", "clCreateBuffer",
        ):  # fmt: skip
            getattr(self._library, name).restype = ctypes.c_void_p
        platforms = (ctypes.c_void_p * 16)()
        count = ctypes.c_uint()
        self._call("clGetPlatformIDs", 16, platforms, ctypes.byref(count))
        self._device = ctypes.c_void_p()
        for platform in platforms[: count.value]:
            text = ctypes.create_string_buffer(256)
            self._call("clGetPlatformInfo", ctypes.c_void_p(platform), 0x0902, 256, text, None)
            if b"Portable Computing Language" in text.value:
                self._call(
                    "clGetDeviceIDs", ctypes.c_void_p(platform), ctypes.c_uint64(_GPU_OR_CPU), 1,
                    ctypes.byref(self._device), None,
                )  # fmt: skip
        if not self._device:
            raise OSError("no platform of PoCL")
        self.name = f"{self._info(_CL_NAME)}, {self._info(_CL_VERSION)}"
        error = ctypes.c_int()
        self._context = self._made(
            "clCreateContext", None, 1, ctypes.byref(self._device), None, None, error=error
        )
        self._queue = self._made(
            "clCreateCommandQueue", self._context, self._device, ctypes.c_uint64(0), error=error
        )
        source = ctypes.c_char_p(file.read_bytes())
        self._program = self._made(
            "clCreateProgramWithSource", self._context, 1, ctypes.byref(source), None, error=error
        )
        if self._library.clBuildProgram(
            self._program, 1, ctypes.byref(self._device), b"", None, None
        ):
            log = ctypes.create_string_buffer(1 << 14)
            self._library.clGetProgramBuildInfo(
                self._program, self._device, _CL_BUILD_LOG, 1 << 14, log, None
            )
            raise OSError(f"PoCL does not compile {file}: {log.value.decode(errors='replace')}")
        self._output: tuple[ctypes.c_void_p, Array] | None = None

    def _call(self, name: str, *arguments: Any) -> None:
        status = int(getattr(self._library, name)(*arguments))
        if status:
            raise OSError(f"{name}: error {status}")

    def _made(self, name: str, *arguments: Any, error: ctypes.c_int) -> ctypes.c_void_p:
        made = getattr(self._library, name)(*arguments, ctypes.byref(error))
        if error.value or not made:
            raise OSError(f"{name}: error {error.value}")
        return ctypes.c_void_p(made)

    def _info(self, what: int) -> str:
        text = ctypes.create_string_buffer(256)
        self._call("clGetDeviceInfo", self._device, what, 256, text, None)
        return text.value.decode(errors="replace").strip()

    def prepare(self, kernel: PeerKernel) -> Callable[[], None]:
        error = ctypes.c_int()
        one = self._made("clCreateKernel", self._program, kernel.name.encode(), error=error)
        kept: list[Any] = [one]
        for number, argument in enumerate(kernel.arguments):
            if isinstance(argument, int):
                value: Any = ctypes.c_int(argument)
            else:
                value = self._made(
                    "clCreateBuffer", self._context, ctypes.c_uint64(1 | 32),
                    ctypes.c_size_t(argument.nbytes), argument.ctypes.data_as(ctypes.c_void_p),
                    error=error,
                )  # fmt: skip
                if number == kernel.output:
                    self._output = value, argument
            self._call(
                "clSetKernelArg", one, number, ctypes.c_size_t(ctypes.sizeof(value)),
                ctypes.byref(value),
            )  # fmt: skip
            kept.append(value)
        local = (ctypes.c_size_t * 2)(*kernel.block)
        whole = (ctypes.c_size_t * 2)(
            *(g * b for g, b in zip(kernel.grid, kernel.block, strict=True))
        )

        def launch() -> None:
            self._call(
                "clEnqueueNDRangeKernel", self._queue, one, 2, None, whole, local, 0, None, None
            )
            self._call("clFinish", self._queue)

        self._kept.append(kept)
        return launch

    def result(self) -> Array:
        assert self._output is not None
        buffer, like = self._output
        made: NDArray[Any] = np.empty_like(like)
        self._call(
            "clEnqueueReadBuffer", self._queue, buffer, 1, ctypes.c_size_t(0),
            ctypes.c_size_t(made.nbytes), made.ctypes.data_as(ctypes.c_void_p), 0, None, None,
        )  # fmt: skip
        return made


def main() -> None:
    """The loop over commands."""
    kind, file = sys.argv[1], Path(sys.argv[2])
    side: Side = Cuda(file) if kind == "cuda" else OpenCl(file)
    print(json.dumps({"device": side.name}), flush=True)
    launches: dict[str, Callable[[], None]] = {}
    for line in sys.stdin:
        name, times = line.split()
        if name not in launches:
            launches[name] = side.prepare(peer_kernel(name))
            launches[name]()  # compiled now
            wrong = peer_kernel(name).wrong(side.result())
            if wrong:
                print(json.dumps({"error": f"{name} on {side.name}: {wrong}"}), flush=True)
                return
        processor, wall = time.process_time(), time.perf_counter()
        for _ in range(int(times)):
            launches[name]()
        answer = {"cpu": time.process_time() - processor, "wall": time.perf_counter() - wall}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
