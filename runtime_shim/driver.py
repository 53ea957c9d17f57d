"""libcuda by ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]


class CudaError(Exception):
    """A driver call that failed."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: error {code}")
        self.call = call
        self.code = code


class Driver:
    """The dozen driver calls that a launch needs."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """One call; CudaError unless it succeeds."""
        status = int(getattr(self.library, name)(*arguments))
        if status:
            raise CudaError(name, status)

    def device_name(self) -> str:
        """The name of the device."""
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, 256, 0)
        return text.value.decode(errors="replace")

    def function(self, cubin: bytes, name: str) -> ctypes.c_void_p:
        """A kernel of a cubin."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def upload(self, words: Words) -> ctypes.c_uint64:
        """Device memory with a copy of the words."""
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(words.nbytes))
        self.write(pointer, words)
        return pointer

    def write(self, pointer: ctypes.c_uint64, words: Words) -> None:
        """Copies the words to device memory."""
        size = ctypes.c_size_t(words.nbytes)
        self.call("cuMemcpyHtoD_v2", pointer, words.ctypes.data_as(ctypes.c_void_p), size)

    def read(self, pointer: ctypes.c_uint64, count: int) -> Words:
        """``count`` words of device memory."""
        words = np.empty(count, dtype=np.uint32)
        size = ctypes.c_size_t(words.nbytes)
        self.call("cuMemcpyDtoH_v2", words.ctypes.data_as(ctypes.c_void_p), pointer, size)
        return words
