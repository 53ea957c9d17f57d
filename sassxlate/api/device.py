"""A device in this process: memory, and launches with NumPy arrays, in the style of cuda.core."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sassxlate.api.arguments import packed
from sassxlate.api.session import Kind, Session, Settings, open_session
from sassxlate.disasm.amdgpu_machines import RDNA3
from sassxlate.errors import SassxlateError, UsageError, Where

if TYPE_CHECKING:
    from sassxlate.api.binary import Kernel

Dim = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class LaunchConfig:
    """A launch's shape: blocks of the grid, threads of a block (up to three numbers each), and
    dynamic shared memory of a block in bytes."""

    grid: Dim = 1
    block: Dim = 32
    shared: int = 0

    def shape(self) -> tuple[int, ...]:
        """Six numbers.  UsageError SX0881 unless they are at least 1."""
        return (*_three("grid", self.grid), *_three("block", self.block))


def _three(what: str, dim: Dim) -> tuple[int, int, int]:
    numbers = (dim,) if isinstance(dim, int) else tuple(dim)
    if not 1 <= len(numbers) <= 3 or any(not 1 <= n < 1 << 31 for n in numbers):
        raise UsageError("SX0881", f"{what} {dim!r}: up to three numbers, each at least 1")
    x, y, z = (*(int(n) for n in numbers), 1, 1)[:3]
    return x, y, z


class Buffer:
    """Memory of a device; freed by ``close``, at the end of a ``with``, or when collected."""

    def __init__(self, session: Session, size: int) -> None:
        self._session = session
        self.size = size
        pointer = ctypes.c_uint64()
        session.here("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self._pointer: int | None = pointer.value

    @property
    def handle(self) -> int:
        """The address on the device.  UsageError SX0884 if it was freed."""
        if self._pointer is None:
            raise UsageError("SX0884", "the buffer was closed")
        return self._pointer

    def copy_from(self, array: NDArray[Any]) -> None:
        """Copies an array here.  UsageError SX0884 if it is larger than the buffer."""
        data = np.ascontiguousarray(array)
        if data.nbytes > self.size:
            raise UsageError("SX0884", f"{data.nbytes} bytes do not fit into {self.size}")
        address = ctypes.c_void_p(data.ctypes.data)
        size = ctypes.c_size_t(data.nbytes)
        self._session.here("cuMemcpyHtoD_v2", ctypes.c_uint64(self.handle), address, size)

    def copy_to(self, array: NDArray[Any]) -> None:
        """Fills an array from here.  UsageError SX0884 if it is larger than the buffer, not
        contiguous, or cannot be written."""
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise UsageError("SX0884", "the array must be contiguous and writable")
        if array.nbytes > self.size:
            raise UsageError("SX0884", f"{array.nbytes} bytes are asked for of {self.size}")
        address = ctypes.c_void_p(array.ctypes.data)
        size = ctypes.c_size_t(array.nbytes)
        self._session.here("cuMemcpyDtoH_v2", address, ctypes.c_uint64(self.handle), size)

    def to_numpy(self, dtype: DTypeLike, shape: int | Sequence[int] | None = None) -> NDArray[Any]:
        """A new array with the buffer's contents: of this shape, or as many elements as fit."""
        element = np.dtype(dtype)
        array = np.empty(self.size // element.itemsize if shape is None else shape, element)
        self.copy_to(array)
        return array

    def close(self) -> None:
        """Frees it."""
        if self._pointer is not None:
            pointer, self._pointer = self._pointer, None
            self._session.here("cuMemFree_v2", ctypes.c_uint64(pointer))

    def __enter__(self) -> Buffer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_pointer", None) is not None:
            with suppress(SassxlateError):  # after a fault nothing can be freed
                self.close()


class Device:
    """The device of this process, emulated or an AMD GPU.

    A process has one: a second Device with the same settings is the same, with others an error
    (UsageError SX0883).  Kernels are translated when they are first launched, as by
    `sassxlate run`, with its cache and its translation service.

    ``kind``: emulator, hip (an AMD GPU), or auto: a GPU if there is one.  ``strict``: emulate with
    deferred loads and undefined values, as `sassxlate run --strict`.

    Raises ShimError SX0707 if there is no AMD GPU for ``hip``, SX0705 and others if the native
    libraries are missing.
    """

    def __init__(
        self, kind: Kind = "emulator", *, target: str = RDNA3[0], strict: bool = False
    ) -> None:

        if target not in RDNA3:
            raise UsageError("SX0880", f"target {target!r} is not one of {', '.join(RDNA3)}")
        self._session = open_session(Settings(kind, target, strict))
        self._functions: dict[tuple[bytes, str], ctypes.c_void_p] = {}

    @property
    def name(self) -> str:
        """The device's name, as programs see it."""
        return self._session.name()

    @property
    def emulated(self) -> bool:
        """Whether kernels run on the CPU."""
        return self._session.emulated

    def allocate(self, size: int) -> Buffer:
        """New memory of this many bytes; its contents are undefined."""
        if size < 0:
            raise UsageError("SX0884", f"{size} bytes")
        return Buffer(self._session, size)

    def copy(self, array: NDArray[Any]) -> Buffer:
        """New memory with a copy of an array."""
        buffer = Buffer(self._session, array.nbytes)
        buffer.copy_from(array)
        return buffer

    def launch(self, config: LaunchConfig, kernel: Kernel, *arguments: Any) -> None:
        """Launches a kernel; does not wait.

        ``arguments``: one per parameter: buffers, numbers, NumPy scalars, ctypes values, or bytes.

        Raises LoweringError SX04 and others if the kernel is refused, UsageError SX0881 for an
        argument that does not fit, ShimError SX0882 for what the driver refuses.
        """
        where = Where(kernel.file, kernel.name)
        shape = config.shape()
        parts = packed(kernel, arguments)
        function = self._function(kernel)
        values = [ctypes.create_string_buffer(part, max(len(part), 1)) for part in parts]
        pointers = (ctypes.c_void_p * max(len(values), 1))(*map(ctypes.addressof, values))
        self._session.here(
            "cuLaunchKernel", function, *shape, config.shared, None, pointers, None, where=where
        )

    def synchronize(self) -> None:
        """Waits for all launches.  ShimError SX0882 if one of them failed."""
        self._session.here("cuCtxSynchronize")

    def _function(self, kernel: Kernel) -> ctypes.c_void_p:
        key = kernel.image, kernel.name
        found = self._functions.get(key)
        if found is None:
            module, found = ctypes.c_void_p(), ctypes.c_void_p()
            where = Where(kernel.file, kernel.name)
            self._session.here("cuModuleLoadData", ctypes.byref(module), kernel.image, where=where)
            name = kernel.name.encode()
            self._session.here(
                "cuModuleGetFunction", ctypes.byref(found), module, name, where=where
            )
            self._functions[key] = found
        return found


def emulate(
    kernel: Kernel, config: LaunchConfig, *arguments: Any, device: Device | None = None
) -> tuple[NDArray[Any], ...]:
    """Launches a kernel on the emulated device with NumPy arrays in place of pointers.

    Returns the arrays as they are after the launch, in the arguments' order; those given are not
    changed.  ``device``: by default the emulated one.  Raises as :meth:`Device.launch`.
    """
    where = device or Device()
    buffers: dict[int, Buffer] = {}
    try:
        values: list[Any] = []
        for number, value in enumerate(arguments):
            if isinstance(value, np.ndarray):
                array = cast("NDArray[Any]", value)
                buffers[number] = where.copy(array)
                values.append(buffers[number])
            else:
                values.append(value)
        where.launch(config, kernel, *values)
        where.synchronize()
        return tuple(
            buffer.to_numpy(arguments[number].dtype, arguments[number].shape)
            for number, buffer in buffers.items()
        )
    finally:
        for buffer in buffers.values():
            with suppress(SassxlateError):  # after a fault nothing can be freed
                buffer.close()


__all__ = ["Buffer", "Device", "LaunchConfig", "emulate"]
