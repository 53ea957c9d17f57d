"""cuBLAS by ctypes: handles, arrays on the device in columns, bounds."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.runtime_shim.native.cufft.cufft_api import Cuda, library_folder

Array = NDArray[Any]

SUCCESS, NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED, NOT_SUPPORTED = 0, 1, 7, 13, 15
N, T, C = 0, 1, 2
LETTERS = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
TYPES = {"R32F": 0, "R64F": 1, "R16F": 2, "R8I": 3, "C32F": 4, "C64F": 5, "R32I": 10, "R16BF": 14}
COMPUTE = {"16F": 64, "32F": 68, "64F": 70, "32I": 72, "TF32": 77}


class Blas:
    """One of our libraries, a handle, and arrays on the device, in columns.

    The library reads SASSXLATE_BLAS when the handle is made.
    """

    def __init__(self, major: int) -> None:
        self.cuda = Cuda()
        self.major = major
        path = library_folder() / "cublas" / f"libcublas.so.{major}"
        self.library = ctypes.CDLL(str(path))
        self.handle = c_void_p()
        assert self.code("cublasCreate_v2", byref(self.handle)) == SUCCESS
        self.memory: list[int] = []

    def code(self, name: str, *arguments: Any) -> int:
        """A call's status."""
        return int(getattr(self.library, name)(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """A call with the handle that succeeds; arrays of one number are passed by address."""
        passed = [c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else a for a in arguments]
        assert self.code(name, self.handle, *passed) == SUCCESS, name

    def put(self, array: Array) -> c_void_p:
        """The array on the device, in columns, freed at the end of the test."""
        pointer = self.cuda.upload(np.asfortranarray(array).ravel("K"))
        self.memory.append(pointer)
        return c_void_p(pointer)

    def get(self, pointer: c_void_p, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array in columns from the device."""
        count = int(np.prod(shape))
        return self.cuda.read(pointer.value or 0, (count,), dtype).reshape(shape, order="F")


def noise(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Normally distributed numbers."""
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        return (real + 1j * rng.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def one(value: complex, dtype: Any) -> Array:
    """A number in memory."""
    return np.array([value]).astype(dtype)


def applied(op: int, a: Array) -> Array:
    """op(A)"""
    return (a, a.T, a.conj().T)[op]


def close(got: Array, wanted: Array, k: int, dtype: Any) -> None:
    """Within the bound of sums of k products, in norm."""
    scale = np.linalg.norm(wanted) + 1e-30
    assert np.linalg.norm(got - wanted) <= 4 * (k + 4) ** 0.5 * np.finfo(dtype).eps * scale
