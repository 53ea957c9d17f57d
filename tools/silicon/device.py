"""NVIDIA's driver API through ctypes: load a cubin, launch its kernel, copy.  One context."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, int, int]


def _shape(size: int | Shape) -> Shape:
    return (size, 1, 1) if isinstance(size, int) else size


class DeviceError(Exception):
    """A call failed; ``status`` is CUDA's."""

    def __init__(self, call: str, status: int) -> None:
        super().__init__(f"{call}: {status}")
        self.status = status


class Device:
    """The first device.  Raises DeviceError; OSError where there is no driver."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        context = c_void_p()
        self._call("cuInit", c_uint(0))
        self._call("cuDevicePrimaryCtxRetain", byref(context), c_int(0))
        self._call("cuCtxSetCurrent", context)

    def _call(self, name: str, *args: object) -> None:
        status = int(getattr(self._cuda, name)(*args))
        if status:
            raise DeviceError(name, status)

    def describe(self) -> dict[str, str]:
        """Name and driver version."""
        name = ctypes.create_string_buffer(100)
        version = c_int()
        self._call("cuDeviceGetName", name, c_int(100), c_int(0))
        self._call("cuDriverGetVersion", byref(version))
        return {"device": name.value.decode(), "cuda": str(version.value)}

    def allocate(self, size: int) -> c_void_p:
        at = c_void_p()
        self._call("cuMemAlloc_v2", byref(at), c_size_t(size))
        return at

    def free(self, at: c_void_p) -> None:
        self._call("cuMemFree_v2", at)

    def put(self, at: c_void_p, data: NDArray[np.uint32]) -> None:
        self._call("cuMemcpyHtoD_v2", at, data.ctypes.data_as(c_void_p), c_size_t(data.nbytes))

    def get(self, at: c_void_p, into: NDArray[np.uint32]) -> None:
        self._call("cuMemcpyDtoH_v2", into.ctypes.data_as(c_void_p), at, c_size_t(into.nbytes))

    def run(self, cubin: bytes, name: str, blocks: int | Shape, threads: int | Shape,
            *arguments: int | bytes, shared: int = 0) -> None:  # fmt: skip
        """Loads, launches and waits; arguments are pointers, or bytes by value; ``shared`` are
        bytes of dynamic shared memory."""
        module, function = c_void_p(), c_void_p()
        self._call("cuModuleLoadData", byref(module), c_char_p(cubin))
        try:
            self._call("cuModuleGetFunction", byref(function), module, c_char_p(name.encode()))
            values = [
                ctypes.create_string_buffer(a, len(a)) if isinstance(a, bytes) else c_void_p(a)
                for a in arguments
            ]
            table = (c_void_p * len(values))(*(ctypes.cast(byref(v), c_void_p) for v in values))
            self._call(
                "cuLaunchKernel", function, *map(c_uint, (*_shape(blocks), *_shape(threads))),
                c_uint(shared), None, table, None,
            )  # fmt: skip
            self._call("cuCtxSynchronize")
        finally:
            self._cuda.cuModuleUnload(module)
