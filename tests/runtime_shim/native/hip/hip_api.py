"""ctypes view of the emulated device's library, for tests and for the scripts that they start."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_void_p
from importlib import resources
from pathlib import Path
from typing import Any


def library() -> Path:
    """The path of the library, built or not."""
    own = os.environ.get("SASSXLATE_LIB")
    if own:
        return Path(own) / "libamdhip64.so"
    return Path(str(resources.files("sassxlate.runtime_shim").joinpath("lib", "libamdhip64.so")))


NOT_READY = 600
CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)
HOST_FUNCTION = ctypes.CFUNCTYPE(None, c_void_p)


class HipError(Exception):
    """A call that did not return 0; ``code`` is HIP's number."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"{name}: {code}")
        self.code = code


class Hip:
    """The library; attributes are its functions and return the error number."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL(str(library()))

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._lib, name)
        function.restype = c_int
        return function

    def ok(self, name: str, *args: Any) -> None:
        """Call and expect success."""
        code = getattr(self, name)(*args)
        if code:
            raise HipError(name, code)

    def malloc(self, size: int) -> int:
        pointer = c_void_p()
        self.ok("hipMalloc", byref(pointer), c_size_t(size))
        return pointer.value or 0

    def host_malloc(self, size: int) -> int:
        pointer = c_void_p()
        self.ok("hipHostMalloc", byref(pointer), c_size_t(size), 0)
        return pointer.value or 0

    def free(self, pointer: int) -> int:
        return int(self.hipFree(c_void_p(pointer)))

    def write(self, device: int, data: bytes) -> None:
        self.ok("hipMemcpyHtoD", c_void_p(device), data, c_size_t(len(data)))

    def read(self, device: int, size: int) -> bytes:
        buffer = ctypes.create_string_buffer(size)
        self.ok("hipMemcpyDtoH", buffer, c_void_p(device), c_size_t(size))
        return buffer.raw

    def words(self, device: int, count: int) -> list[int]:
        return list(memoryview(self.read(device, 4 * count)).cast("I"))

    def load(self, image: bytes) -> int:
        module = c_void_p()
        self.ok("hipModuleLoadData", byref(module), image)
        return module.value or 0

    def function(self, module: int, name: str) -> int:
        function = c_void_p()
        self.ok("hipModuleGetFunction", byref(function), c_void_p(module), name.encode())
        return function.value or 0

    def launch(
        self,
        function: int,
        grid: int | Iterable[int],
        block: int | Iterable[int],
        args: bytes = b"",
        *,
        shared: int = 0,
        stream: int = 0,
        cooperative: bool = False,
    ) -> int:
        """Launch with the bytes of the kernarg segment; gives the error number."""
        g = [grid] if isinstance(grid, int) else list(grid)
        b = [block] if isinstance(block, int) else list(block)
        dims = [c_uint(n) for n in (*g, 1, 1, 1)[:3]] + [c_uint(n) for n in (*b, 1, 1, 1)[:3]]
        if cooperative:
            buffer = ctypes.create_string_buffer(args, max(len(args), 64))
            params = (c_void_p * 1)(ctypes.addressof(buffer))
            return int(
                self.hipModuleLaunchCooperativeKernel(
                    c_void_p(function), *dims, c_uint(shared), c_void_p(stream), params
                )
            )
        buffer = ctypes.create_string_buffer(args, len(args))
        size = c_size_t(len(args))
        extra = (c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        return int(
            self.hipModuleLaunchKernel(
                c_void_p(function), *dims, c_uint(shared), c_void_p(stream), None, extra
            )
        )

    def stream(self, flags: int = 0) -> int:
        stream = c_void_p()
        self.ok("hipStreamCreateWithFlags", byref(stream), c_uint(flags))
        return stream.value or 0

    def event(self, flags: int = 0) -> int:
        event = c_void_p()
        self.ok("hipEventCreateWithFlags", byref(event), c_uint(flags))
        return event.value or 0

    def elapsed(self, start: int, stop: int) -> float:
        milliseconds = c_float()
        self.ok("hipEventElapsedTime", byref(milliseconds), c_void_p(start), c_void_p(stop))
        return milliseconds.value

    def error_name(self, code: int) -> str:
        function = self._lib.hipGetErrorName
        function.restype = c_char_p
        return bytes(function(code)).decode()
