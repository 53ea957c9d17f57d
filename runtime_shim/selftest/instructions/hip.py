"""The part of HIP's C interface that the self-test needs, by name, and the device's properties."""

from __future__ import annotations

import ctypes
from typing import Any

from sassxlate.disasm.rdna3 import depctr_imm
from sassxlate.disasm.rdna3.instruction import Inst, Item, Sp

# hipDeviceProp_tR0600, ROCm 6 and 7 (hip_runtime_api.h): byte offsets of the reported members.
PROPERTIES_SIZE = 1472
PROPERTIES: dict[str, tuple[int, str]] = {
    "name": (0, "text"),
    "totalGlobalMem": (288, "size_t"),
    "sharedMemPerBlock": (296, "size_t"),
    "regsPerBlock": (304, "int"),
    "warpSize": (308, "int"),
    "maxThreadsPerBlock": (320, "int"),
    "clockRate": (348, "int"),
    "major": (360, "int"),
    "minor": (364, "int"),
    "multiProcessorCount": (388, "int"),
    "memoryClockRate": (608, "int"),
    "memoryBusWidth": (612, "int"),
    "l2CacheSize": (616, "int"),
    "gcnArchName": (1160, "text"),
}
_TEXT = 256  # bytes of a name


class HipError(Exception):
    """A HIP call that failed."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: error {code}")
        self.call = call
        self.code = code


class Hip:
    """The library, its first device made current."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.call("hipInit", 0)
        self.call("hipSetDevice", 0)

    def call(self, name: str, *arguments: Any) -> None:
        """One call; HipError unless it succeeds."""
        status = int(getattr(self.library, name)(*arguments))
        if status:
            raise HipError(name, status)

    def upload(self, data: bytes) -> ctypes.c_void_p:
        """Device memory with a copy of the data."""
        pointer, size = ctypes.c_void_p(), ctypes.c_size_t(len(data))
        self.call("hipMalloc", ctypes.byref(pointer), size)
        self.call("hipMemcpy", pointer, data, size, 1)
        return pointer

    def read(self, pointer: ctypes.c_void_p, size: int) -> bytes:
        """``size`` bytes of device memory."""
        data = ctypes.create_string_buffer(size)
        self.call("hipMemcpy", data, pointer, ctypes.c_size_t(size), 2)
        return data.raw

    def free(self, pointer: ctypes.c_void_p) -> None:
        """Frees device memory."""
        self.call("hipFree", pointer)

    def launch(self, code: bytes, kernel: str, blocks: int, threads: int, segment: bytes) -> None:
        """Loads a code object, runs one of its kernels to the end, and unloads it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("hipModuleLoadData", ctypes.byref(module), code)
        self.call("hipModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        size = ctypes.c_size_t(len(segment))
        buffer = ctypes.create_string_buffer(segment, len(segment))
        # HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END
        extra = (ctypes.c_void_p * 5)(
            *(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3),
        )
        self.call(
            "hipModuleLaunchKernel",
            *(function, blocks, 1, 1, threads, 1, 1, 0, None, None, extra),
        )
        self.call("hipDeviceSynchronize")
        self.call("hipModuleUnload", module)

    def facts(self) -> dict[str, Any]:
        """Versions and the device's properties; missing ones are left out."""
        found: dict[str, Any] = {}
        number = ctypes.c_int()
        for name in ("hipRuntimeGetVersion", "hipDriverGetVersion", "hipGetDeviceCount"):
            if hasattr(self.library, name):
                status = getattr(self.library, name)(ctypes.byref(number))
                found[name] = number.value if not status else f"error {status}"
        if hasattr(self.library, "hipGetDevicePropertiesR0600"):
            # Later releases may append members.
            data = ctypes.create_string_buffer(4 * PROPERTIES_SIZE)
            if not self.library.hipGetDevicePropertiesR0600(data, 0):
                found |= {name: _member(data.raw, *place) for name, place in PROPERTIES.items()}
        if "name" not in found:
            text = ctypes.create_string_buffer(_TEXT)
            if not self.library.hipDeviceGetName(text, _TEXT, 0):
                found["name"] = text.value.decode(errors="replace")
        return found


def wait_for_all() -> list[Item]:
    """Waits for memory and for the vector unit."""
    return [
        Inst("s_waitcnt", (), imm=0),
        Inst("s_waitcnt_vscnt", (Sp("null"),), imm=0),
        Inst("s_waitcnt_depctr", (), imm=depctr_imm(va_vdst=0)),
    ]


def _member(data: bytes, offset: int, kind: str) -> str | int:
    if kind == "text":
        return data[offset : offset + _TEXT].split(b"\0")[0].decode(errors="replace")
    return int.from_bytes(data[offset : offset + (8 if kind == "size_t" else 4)], "little")
