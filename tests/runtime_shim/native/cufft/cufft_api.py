"""cuFFT and the driver by ctypes: plans, device memory, streams."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref, c_int, c_longlong, c_size_t, c_uint64, c_void_p
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

Array = NDArray[Any]

SUCCESS, INVALID_PLAN, ALLOC_FAILED, INVALID_VALUE, EXEC_FAILED = 0, 1, 2, 4, 6
INVALID_SIZE, NOT_SUPPORTED = 8, 16
FORWARD, INVERSE = -1, 1
R2C, C2R, C2C, D2Z, Z2D, Z2Z = 0x2A, 0x2C, 0x29, 0x6A, 0x6C, 0x69
CUDA_TYPES = {"R32": 0, "R64": 1, "R16": 2, "C32": 4, "C64": 5, "C16": 6, "RB16": 14, "CB16": 15}


def library_folder() -> Path:
    """The folder of the native libraries; SASSXLATE_LIB names those of a sanitizer."""
    if own := os.environ.get("SASSXLATE_LIB"):
        return Path(own)
    with resources.as_file(resources.files("sassxlate.runtime_shim") / "lib") as folder:
        return folder


class CufftError(Exception):
    """A call that failed, with its result code."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: {code}")
        self.code = code


_LOCK = threading.Lock()  # of the environment


class Cuda:
    """The driver: memory and streams of the emulated device."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(str(library_folder() / "libcuda.so.1"))
        context = c_void_p()
        # A process has one emulated device: all tests that share the process give it this memory.
        with _LOCK, pytest.MonkeyPatch.context() as patch:
            patch.setenv("SASSXLATE_DEVICE_MEMORY", "256M")
            self.call("cuInit", 0)
            self.call("cuDevicePrimaryCtxRetain", byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """One call; AssertionError unless it succeeds."""
        status = int(getattr(self.library, name)(*arguments))
        assert status == 0, (name, status)

    def allocate(self, size: int) -> int:
        """Device memory of so many bytes."""
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        return pointer.value

    def free(self, *pointers: int) -> None:
        """Frees device memory."""
        for pointer in pointers:
            self.call("cuMemFree_v2", c_uint64(pointer))

    def upload(self, data: Array, size: int = 0) -> int:
        """Device memory with a copy of the array, and room for ``size`` bytes in all."""
        pointer = self.allocate(max(size, data.nbytes))
        self.write(pointer, data)
        return pointer

    def write(self, pointer: int, data: Array) -> None:
        """Copies an array to the device."""
        flat = np.ascontiguousarray(data)
        self.call("cuMemcpyHtoD_v2", c_uint64(pointer), flat.ctypes.data_as(c_void_p),
                  c_size_t(flat.nbytes))  # fmt: skip

    def read(self, pointer: int, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array from the device."""
        out = np.empty(shape, dtype)
        self.call("cuMemcpyDtoH_v2", out.ctypes.data_as(c_void_p), c_uint64(pointer),
                  c_size_t(out.nbytes))  # fmt: skip
        return out

    def stream(self) -> c_void_p:
        """A new stream."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), 1)
        return stream


class Cufft:
    """One of our libraries."""

    def __init__(self, major: int) -> None:
        path = library_folder() / "cufft" / f"libcufft.so.{major}"
        self.library = ctypes.CDLL(str(path))

    def code(self, name: str, *arguments: Any) -> int:
        """One call's result code."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """One call; CufftError unless it succeeds."""
        status = self.code(name, *arguments)
        if status:
            raise CufftError(name, status)

    def create(self) -> c_int:
        """An empty handle."""
        handle = c_int()
        self.call("cufftCreate", byref(handle))
        return handle

    def plan_many(
        self,
        lengths: tuple[int, ...],
        kind: int,
        batch: int = 1,
        inside: tuple[tuple[int, ...], int, int] | None = None,
        outside: tuple[tuple[int, ...], int, int] | None = None,
    ) -> c_int:
        """A plan by cufftPlanMany; the layouts are storage lengths, stride and distance."""
        handle = c_int()
        self.call("cufftPlanMany", byref(handle), len(lengths), ints(lengths),
                  ints(inside[0]) if inside else None, *(inside[1:] if inside else (1, 0)),
                  ints(outside[0]) if outside else None, *(outside[1:] if outside else (1, 0)),
                  kind, batch)  # fmt: skip
        return handle

    def plan_xt(self, lengths: tuple[int, ...], types: tuple[str, str, str], batch: int) -> c_int:
        """A plan by cufftXtMakePlanMany: types of input, output and execution."""
        handle = self.create()
        size = c_size_t()
        one = c_longlong(1)
        dense = (None, one, c_longlong(0))
        self.call("cufftXtMakePlanMany", handle, len(lengths), longs(lengths), *dense,
                  CUDA_TYPES[types[0]], *dense, CUDA_TYPES[types[1]], c_longlong(batch),
                  byref(size), CUDA_TYPES[types[2]])  # fmt: skip
        return handle

    def run(self, name: str, handle: c_int, source: int, target: int, *more: int) -> None:
        """An execution."""
        self.call(name, handle, c_void_p(source), c_void_p(target), *more)

    def destroy(self, handle: c_int) -> None:
        """Destroys a plan."""
        self.call("cufftDestroy", handle)


def ints(numbers: tuple[int, ...]) -> Any:
    """A C array of int."""
    return (c_int * len(numbers))(*numbers)


def longs(numbers: tuple[int, ...]) -> Any:
    """A C array of long long."""
    return (c_longlong * len(numbers))(*numbers)
