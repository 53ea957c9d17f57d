"""A program that the tests start with a HIP library that is not the emulated device's.

Each line is a call, its status, and whether its result is NumPy's; what the library in hipBLAS's
place prints is between them.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import byref, c_int, c_int64, c_longlong, c_size_t, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.runtime_shim.native.cufft.cufft_api import Cuda

Array = NDArray[Any]
FOLDER = Path(os.environ["SASSXLATE_TEST_LIBRARIES"])
cuda = Cuda()
blas = ctypes.CDLL(str(FOLDER / f"libcublas.so.{sys.argv[1]}"))
light = ctypes.CDLL(str(FOLDER / f"libcublasLt.so.{sys.argv[1]}"))
rng = np.random.default_rng(1)


def put(array: Array) -> c_void_p:
    """On the device, in columns."""
    return c_void_p(cuda.upload(np.asfortranarray(array).ravel("K")))


def get(pointer: c_void_p, like: Array) -> Array:
    """From the device."""
    return cuda.read(pointer.value or 0, (like.size,), like.dtype).reshape(like.shape, order="F")


def at(array: Array) -> c_void_p:
    """The address of numbers of the host."""
    return c_void_p(array.ctypes.data)


def show(name: str, status: int, *right: bool) -> None:
    """A line of the output."""
    print(name, "->", status, *("right" if r else "WRONG" for r in right), flush=True)


def close(got: Array, wanted: Array) -> bool:
    """Within rounding."""
    eps = float(np.finfo(got.dtype).eps)
    return bool(np.linalg.norm(got - wanted) <= 50 * eps * np.linalg.norm(wanted))


handle = c_void_p()
status = blas.cublasCreate_v2(byref(handle))
show("cublasCreate", status)
if status:
    raise SystemExit
a, b, c = rng.standard_normal((5, 7)), rng.standard_normal((5, 3)), rng.standard_normal((7, 3))
one, half, zero = np.array([1.0]), np.array([0.5]), np.array([0.0])
pa, pb, pc = put(a), put(b), put(c)
product = (handle, 1, 0, 7, 3, 5, at(one), pa, 5, pb, 5, at(half), pc, 7)
status = blas.cublasDgemm_v2(*product)
show("cublasDgemm", status, close(get(pc, c), a.T @ b + c / 2))
pc = put(c)
wide = [c_int64(n) for n in (7, 3, 5)]
status = blas.cublasDgemm_v2_64(
    handle, 1, 0, *wide, at(one), pa, c_int64(5), pb, c_int64(5), at(half), pc, c_int64(7)
)
show("cublasDgemm_64", status, close(get(pc, c), a.T @ b + c / 2))
show("cublasDgemm, no such transpose", blas.cublasDgemm_v2(handle, 3, *product[2:]))
for theirs in range(1, 12):
    status = blas.cublasDgemm_v2(*product[:5], -theirs, *product[6:])
    show(f"cublasDgemm, where hipBLAS says {theirs}", status)
show("cublasSgemm", blas.cublasSgemm_v2(*product))  # the other library has none

z, w = (rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)) for _ in range(2))
pz = put(np.zeros_like(z))
unit, nothing = np.array([1 + 0j]), np.array([0j])
for name in ("cublasZgemm_v2", "cublasZgemm3m"):
    status = getattr(blas, name)(
        handle, 2, 0, 4, 4, 4, at(unit), put(z), 4, put(w), 4, at(nothing), pz, 4
    )
    show(name, status, close(get(pz, z), z.conj().T @ w))

for fill in (0, 1):
    triangle = (np.tril if fill == 0 else np.triu)(rng.standard_normal((3, 3))) + 5 * np.eye(3)
    for side, right in ((0, rng.standard_normal((3, 2))), (1, rng.standard_normal((2, 3)))):
        px, (m, n) = put(right), right.shape
        status = blas.cublasDtrsm_v2(
            handle, side, fill, 0, 0, m, n, at(one), put(triangle), 3, px, m
        )
        found = get(px, right)
        show(
            "cublasDtrsm", status, close(triangle @ found if side == 0 else found @ triangle, right)
        )
    full = np.tril(triangle, -1) + np.triu(triangle)
    full = np.where(full != 0, full, full.T)
    x = rng.standard_normal(3)
    py = put(np.zeros(3))
    status = blas.cublasDsymv_v2(
        handle, fill, 3, at(one), put(triangle), 3, put(x), 1, at(zero), py, 1
    )
    show("cublasDsymv", status, close(get(py, x), full @ x))

blas.cublasSetPointerMode_v2(handle, 1)
blas.cublasSetAtomicsMode(handle, 1)
blas.cublasSetStream_v2(handle, c_void_p(1))
y = rng.standard_normal(3)
py = put(y)
status = blas.cublasDaxpy_v2(handle, 3, put(half), put(x), 1, py, 1)
show("cublasDaxpy, all modes", status, close(get(py, y), y + x / 2))
blas.cublasSetPointerMode_v2(handle, 0)
blas.cublasSetAtomicsMode(handle, 0)
blas.cublasSetStream_v2(handle, None)

many = [rng.standard_normal((4, 3, 2)) for _ in range(3)]
left, right = many[0][:3], many[1][:3]
out = np.zeros((3, 3, 2))
po = put(out)
status = blas.cublasDgemmStridedBatched(
    handle, 0, 1, 3, 3, 3, at(one), put(left), 3, c_longlong(9), put(right), 3, c_longlong(9),
    at(zero), po, 3, c_longlong(9), 2,
)  # fmt: skip
show(
    "cublasDgemmStridedBatched", status, close(get(po, out), np.einsum("ikb,jkb->ijb", left, right))
)

f, g = (rng.standard_normal((4, 4)).astype(np.float32) for _ in range(2))
f1, f0 = np.ones(1, np.float32), np.zeros(1, np.float32)
pf, pg, ph = put(f), put(g), put(np.zeros_like(f))
for compute, kind in ((68, 0), (77, 0), (69, 0), (68, 28), (99, 0)):
    status = blas.cublasGemmEx(
        handle, 0, 0, 4, 4, 4, at(f1), pf, kind, 4, pg, kind, 4, at(f0), ph, kind, 4, compute, -1
    )
    show(
        f"cublasGemmEx, compute {compute} of type {kind}",
        status,
        *([close(get(ph, f), f @ g)] if not status else []),
    )
status = blas.cublasSgemmEx(handle, 0, 0, 4, 4, 4, at(f1), pf, 0, 4, pg, 0, 4, at(f0), ph, 0, 4)
show("cublasSgemmEx", status, close(get(ph, f), f @ g))
pv = put(np.zeros(3))
status = blas.cublasSetVector(3, 8, at(y), 1, pv, 1)
show("cublasSetVector", status, close(get(pv, y), y))


def layout(kind: int, rows: int, columns: int, ld: int) -> c_void_p:
    """A matrix by columns."""
    made = c_void_p()
    light.cublasLtMatrixLayoutCreate(
        byref(made), kind, c_uint64(rows), c_uint64(columns), c_int64(ld)
    )
    return made


def described(compute: int, scale: int, epilogue: int, bias: c_void_p | None) -> c_void_p:
    """A product with an epilogue."""
    made = c_void_p()
    light.cublasLtMatmulDescCreate(byref(made), compute, scale)
    light.cublasLtMatmulDescSetAttribute(made, 7, byref(c_int(epilogue)), c_size_t(4))
    if bias:
        light.cublasLtMatmulDescSetAttribute(made, 8, byref(bias), c_size_t(8))
    return made


preference = c_void_p()
light.cublasLtMatmulPreferenceCreate(byref(preference))
square = layout(0, 4, 4, 4)
bias = rng.standard_normal(4).astype(np.float32)
pbias = put(bias)
for epilogue, wanted in (
    (1, f @ g), (6, np.maximum(f @ g + bias[:, None], 0)), (130, None),
):  # fmt: skip
    operation = described(68, 0, epilogue, pbias if epilogue & 4 else None)
    result, count = (c_uint64 * 12)(), c_int()
    found = light.cublasLtMatmulAlgoGetHeuristic(
        handle, operation, square, square, square, square, preference, 1, result, byref(count)
    )
    show(f"cublasLtMatmulAlgoGetHeuristic, epilogue {epilogue}: {count.value}", found)
    ph = put(np.zeros_like(f))
    status = light.cublasLtMatmul(
        handle, operation, at(f1), pf, square, pg, square, at(f0), ph, square, ph, square,
        None, None, c_size_t(0), None,
    )  # fmt: skip
    show(
        f"cublasLtMatmul, epilogue {epilogue}",
        status,
        *([close(get(ph, f), wanted)] if wanted is not None else []),
    )
operation = described(68, 0, 1, None)
ph = put(np.zeros_like(f))
status = light.cublasLtMatmul(
    handle, operation, at(f1), pf, square, pg, square, at(f1), pg, square, ph, square,
    None, None, c_size_t(0), None,
)  # fmt: skip
show("cublasLtMatmul, D beside C", status, *([close(get(ph, f), f @ g + g)] if not status else []))
doubles = layout(1, 4, 4, 4)
operation = described(70, 1, 4, put(np.ones(4)))
status = light.cublasLtMatmul(
    handle, operation, at(one), put(f.astype(float)), doubles, put(g.astype(float)), doubles,
    at(zero), put(np.zeros((4, 4))), doubles, put(np.zeros((4, 4))), doubles,
    None, None, c_size_t(0), None,
)  # fmt: skip
show("cublasLtMatmul, doubles with a bias", status)

stream, graph = cuda.stream(), c_void_p()
blas.cublasSetStream_v2(handle, stream)
cuda.call("cuStreamBeginCapture_v2", stream, 0)
show("cublasDgemm, captured", blas.cublasDgemm_v2(*product))
cuda.call("cuStreamEndCapture", stream, byref(graph))
show("cublasDestroy", blas.cublasDestroy_v2(handle))
show("cublasDgemm, destroyed", blas.cublasDgemm_v2(*product))
