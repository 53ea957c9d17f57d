"""cuBLASLt by ctypes: descriptors and products."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_int64, c_size_t, c_uint64, c_void_p
from typing import Any

import numpy as np

from tests.runtime_shim.native.cufft.cufft_api import library_folder

from .cublas_api import SUCCESS, Array, Blas

E4M3 = 28
# Attributes: number and type.
LAYOUT = {"order": (1, c_int), "batch": (5, c_int), "step": (6, c_int64), "mode": (8, c_int)}
OPERATION = {
    "pointer_mode": (2, c_int),
    "transa": (3, c_int),
    "transb": (4, c_int),
    "epilogue": (7, c_int),
    "bias": (8, c_void_p),
    "bias_step": (10, c_int64),
    "aux": (11, c_void_p),
    "aux_ld": (12, c_int64),
    "a_scale": (17, c_void_p),
    "b_scale": (18, c_void_p),
    "d_scale": (20, c_void_p),
    "amax": (21, c_void_p),
    "bias_type": (26, c_int),
    "a_scale_mode": (31, c_int),
    "b_scale_mode": (32, c_int),
}


class Lt:
    """The library beside a `Blas` of the same major release, with its handle."""

    def __init__(self, blas: Blas, major: int) -> None:
        self.blas = blas
        self.library = ctypes.CDLL(str(library_folder() / "cublas" / f"libcublasLt.so.{major}"))
        self.handle = c_void_p()
        assert self.code("cublasLtCreate", byref(self.handle)) == SUCCESS

    def code(self, name: str, *arguments: Any) -> int:
        """A call's status."""
        return int(getattr(self.library, name)(*arguments))

    def _set(
        self, what: str, at: c_void_p, known: dict[str, tuple[int, Any]], values: dict[str, Any]
    ) -> None:
        for name, value in values.items():
            number, kind = known[name]
            held = kind(value.value if isinstance(value, c_void_p) else value)
            size = c_size_t(ctypes.sizeof(kind))
            assert self.code(f"cublasLt{what}SetAttribute", at, number, byref(held), size) == 0

    def layout(self, kind: int, rows: int, columns: int, ld: int = 0, **values: Any) -> c_void_p:
        """A matrix by columns unless ``order`` says otherwise."""
        made = c_void_p()
        ld = ld or (columns if values.get("order") else rows)
        sizes = (c_uint64(rows), c_uint64(columns), c_int64(ld))
        assert self.code("cublasLtMatrixLayoutCreate", byref(made), kind, *sizes) == SUCCESS
        self._set("MatrixLayout", made, LAYOUT, values)
        return made

    def operation(self, compute: int, scale: int, **values: Any) -> c_void_p:
        """A descriptor of a product."""
        made = c_void_p()
        assert self.code("cublasLtMatmulDescCreate", byref(made), compute, scale) == SUCCESS
        self._set("MatmulDesc", made, OPERATION, values)
        return made

    def matmul(
        self,
        operation: c_void_p,
        factors: tuple[Array | c_void_p, Array | c_void_p],
        a: tuple[c_void_p | None, c_void_p],
        b: tuple[c_void_p, c_void_p],
        d: tuple[c_void_p, c_void_p],
        c: tuple[c_void_p, c_void_p] | None = None,
        handle: c_void_p | None = None,
    ) -> int:
        """The status; each operand is its data and its layout, and C is D unless given."""
        alpha, beta = (c_void_p(f.ctypes.data) if isinstance(f, np.ndarray) else f for f in factors)
        c = c or d
        chosen = handle or self.handle
        return self.code(
            "cublasLtMatmul", chosen, operation, alpha, *a, *b, beta, *c, *d, None, None,
            c_size_t(0), None,
        )  # fmt: skip
