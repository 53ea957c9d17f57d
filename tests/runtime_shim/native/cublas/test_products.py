"""The replacement of cuBLAS beside NumPy: products of matrices, of all types."""

from __future__ import annotations

import ctypes
import threading
from ctypes import c_int, c_int64, c_longlong, c_uint64, c_void_p

import numpy as np
import pytest

from .cublas_api import (
    COMPUTE,
    LETTERS,
    NOT_SUPPORTED,
    TYPES,
    Array,
    Blas,
    C,
    N,
    T,
    applied,
    close,
    noise,
    one,
)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("ta", "tb"), [(N, N), (T, N), (N, T), (C, C)])
@pytest.mark.parametrize("suffix", ["_v2", "_v2_64"])
def test_gemm(blas: Blas, letter: str, ta: int, tb: int, suffix: str) -> None:
    dtype = LETTERS[letter]
    m, n, k = 7, 5, 33
    a = noise(1, (m, k) if ta == N else (k, m), dtype)
    b = noise(2, (k, n) if tb == N else (n, k), dtype)
    c = noise(3, (m + 2, n), dtype)  # a leading dimension beyond the rows
    alpha, beta = one(1.5 - 0.5j if letter in "CZ" else 1.5, dtype), one(-0.25, dtype)
    wide = c_int64 if suffix.endswith("64") else c_int
    pc = blas.put(c)
    blas.call(
        f"cublas{letter}gemm{suffix}",
        ta,
        tb,
        wide(m),
        wide(n),
        wide(k),
        alpha,
        blas.put(a),
        wide(a.shape[0]),
        blas.put(b),
        wide(b.shape[0]),
        beta,
        pc,
        wide(m + 2),
    )
    got = blas.get(pc, (m + 2, n), dtype)
    wanted = alpha[0] * (applied(ta, a) @ applied(tb, b)) + beta[0] * c[:m]
    close(got[:m], wanted, k, dtype)
    assert (got[m:] == c[m:]).all()


def test_beta_zero_does_not_read(blas: Blas) -> None:
    a, c = noise(1, (4, 4), np.float32), np.full((4, 4), np.nan, np.float32)
    pc = blas.put(c)
    blas.call(
        "cublasSgemm_v2",
        N,
        N,
        4,
        4,
        4,
        one(1, np.float32),
        blas.put(a),
        4,
        blas.put(a),
        4,
        one(0, np.float32),
        pc,
        4,
    )
    close(blas.get(pc, (4, 4), np.float32), a @ a, 4, np.float32)
    y = np.full(4, np.nan, np.float32)
    py = blas.put(y)
    blas.call(
        "cublasSgemv_v2",
        N,
        4,
        4,
        one(1, np.float32),
        blas.put(a),
        4,
        blas.put(a[:, 0]),
        1,
        one(0, np.float32),
        py,
        1,
    )
    close(blas.get(py, (4,), np.float32), a @ a[:, 0], 4, np.float32)


def test_no_inner_dimension(blas: Blas) -> None:
    c = noise(1, (3, 3), np.float64)
    pc = blas.put(c)
    blas.call(
        "cublasDgemm_v2", N, N, 3, 3, 0, one(1, np.float64), pc, 3, pc, 3, one(2, np.float64), pc, 3
    )
    assert (blas.get(pc, (3, 3), np.float64) == 2 * c).all()
    blas.call(
        "cublasDgemm_v2",
        N,
        N,
        0,
        3,
        3,
        one(1, np.float64),
        None,
        1,
        None,
        3,
        one(2, np.float64),
        None,
        1,
    )


def test_batches(blas: Blas) -> None:
    count, m, n, k = 4, 3, 5, 6
    a, b = noise(1, (count, k, m), np.float32), noise(2, (count, n, k), np.float32)  # transposed
    a_device, b_device = blas.put(a.ravel()), blas.put(b.ravel())
    c_device = blas.put(np.zeros(count * m * n, np.float32))
    wanted = np.stack([(y @ x) for x, y in zip(a, b, strict=True)])
    ones = (one(1, np.float32), one(0, np.float32))
    blas.call(
        "cublasSgemmStridedBatched",
        N,
        N,
        m,
        n,
        k,
        ones[0],
        a_device,
        m,
        c_longlong(m * k),
        b_device,
        k,
        c_longlong(n * k),
        ones[1],
        c_device,
        m,
        c_longlong(m * n),
        count,
    )
    close(
        blas.get(c_device, (count * m * n,), np.float32).reshape(count, n, m), wanted, k, np.float32
    )

    def table(base: c_void_p, step: int) -> c_void_p:
        return blas.put(
            np.array([(base.value or 0) + 4 * step * i for i in range(count)], np.uint64)
        )

    other = blas.put(np.zeros(count * m * n, np.float32))
    blas.call(
        "cublasSgemmBatched",
        N,
        N,
        m,
        n,
        k,
        ones[0],
        table(a_device, m * k),
        m,
        table(b_device, n * k),
        k,
        ones[1],
        table(other, m * n),
        m,
        count,
    )
    close(blas.get(other, (count * m * n,), np.float32).reshape(count, n, m), wanted, k, np.float32)


def test_scalars_on_the_device(blas: Blas) -> None:
    """Read when the work runs, not at the call."""
    x, y = noise(1, (50,), np.float64), noise(2, (50,), np.float64)
    px, py, alpha, result = blas.put(x), blas.put(y), blas.put(np.zeros(1)), blas.put(np.zeros(1))
    released = threading.Event()

    @ctypes.CFUNCTYPE(None, c_void_p)
    def wait(_: object) -> None:
        released.wait(120)

    stream = blas.cuda.stream()
    blas.call("cublasSetStream_v2", stream)
    blas.call("cublasSetPointerMode_v2", 1)
    blas.cuda.call("cuLaunchHostFunc", stream, wait, None)
    two = np.array([2.0])
    blas.cuda.call(
        "cuMemcpyHtoDAsync_v2",
        c_uint64(alpha.value or 0),
        c_void_p(two.ctypes.data),
        ctypes.c_size_t(8),
        stream,
    )
    blas.call("cublasDaxpy_v2", 50, alpha, px, 1, py, 1)
    blas.call("cublasDdot_v2", 50, px, 1, py, 1, result)
    released.set()
    blas.cuda.call("cuStreamSynchronize", stream)
    assert np.allclose(blas.get(py, (50,), np.float64), y + 2 * x)
    assert np.isclose(blas.get(result, (1,), np.float64)[0], x @ (y + 2 * x))


def bfloat(values: Array) -> Array:
    """Bits of bfloat16, rounded to the nearest."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


@pytest.mark.parametrize("kind", ["R16F", "R16BF"])
@pytest.mark.parametrize("out", ["same", "R32F"])
def test_gemm_of_16_bits(blas: Blas, kind: str, out: str) -> None:
    """Products in float, one rounding at the end."""
    m, n, k = 9, 6, 40

    def bits(values: Array) -> Array:
        return values.astype(np.float16).view(np.uint16) if kind == "R16F" else bfloat(values)

    def wide(stored: Array) -> Array:
        if kind == "R16F":
            return stored.view(np.float16).astype(np.float64)
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    a, b = bits(noise(1, (m, k), np.float32)), bits(noise(2, (k, n), np.float32))
    pc = blas.put(np.zeros((m, n), np.uint16 if out == "same" else np.float32))
    c_type = TYPES[kind] if out == "same" else TYPES["R32F"]
    blas.call(
        "cublasGemmEx",
        N,
        N,
        m,
        n,
        k,
        one(1, np.float32),
        blas.put(a),
        TYPES[kind],
        m,
        blas.put(b),
        TYPES[kind],
        k,
        one(0, np.float32),
        pc,
        c_type,
        m,
        COMPUTE["32F"],
        -1,
    )
    wanted = wide(a) @ wide(b)
    if out == "R32F":
        close(blas.get(pc, (m, n), np.float32), wanted, k, np.float32)
        return
    got = wide(blas.get(pc, (m, n), np.uint16))
    unit = 2.0**-11 if kind == "R16F" else 2.0**-8
    assert (np.abs(got - wanted) <= unit * np.abs(wanted) * 1.01 + 1e-5).all()


def test_hgemm_scales_in_half(blas: Blas) -> None:
    a = noise(1, (8, 8), np.float16)
    pc = blas.put(a)
    blas.call(
        "cublasHgemm",
        N,
        T,
        8,
        8,
        8,
        one(0.5, np.float16),
        blas.put(a),
        8,
        blas.put(a),
        8,
        one(2, np.float16),
        pc,
        8,
    )
    wide = a.astype(np.float64)
    wanted = 0.5 * wide @ wide.T + 2 * wide
    got = blas.get(pc, (8, 8), np.float16).astype(np.float64)
    assert (np.abs(got - wanted) <= 2.0**-11 * np.abs(wanted) * 1.01 + 1e-5).all()


def test_gemm_of_bytes(blas: Blas) -> None:
    """Exact, modulo 2^32."""
    rng = np.random.default_rng(1)
    a = rng.integers(-128, 128, (8, 64)).astype(np.int8)
    b = rng.integers(-128, 128, (64, 12)).astype(np.int8)
    c = rng.integers(-(2**31), 2**31, (8, 12)).astype(np.int32)
    pc = blas.put(c)
    blas.call(
        "cublasGemmEx",
        N,
        N,
        8,
        12,
        64,
        one(3, np.int32),
        blas.put(a),
        TYPES["R8I"],
        8,
        blas.put(b),
        TYPES["R8I"],
        64,
        one(5, np.int32),
        pc,
        TYPES["R32I"],
        8,
        COMPUTE["32I"],
        -1,
    )
    wanted = (3 * (a.astype(np.int64) @ b.astype(np.int64)) + 5 * c.astype(np.int64)).astype(
        np.int32
    )
    assert (blas.get(pc, (8, 12), np.int32) == wanted).all()


def test_tf32_is_not_less_precise(blas: Blas) -> None:
    a = noise(1, (30, 30), np.float32)
    pc = blas.put(np.zeros((30, 30), np.float32))
    blas.call(
        "cublasGemmEx",
        N,
        N,
        30,
        30,
        30,
        one(1, np.float32),
        blas.put(a),
        0,
        30,
        blas.put(a),
        0,
        30,
        one(0, np.float32),
        pc,
        0,
        30,
        COMPUTE["TF32"],
        -1,
    )
    close(blas.get(pc, (30, 30), np.float32), a.astype(float) @ a.astype(float), 30, np.float32)


def test_types_that_do_not_go_together(blas: Blas, capfd: pytest.CaptureFixture[str]) -> None:
    pc = blas.put(np.zeros((4, 4)))
    status = blas.code(
        "cublasGemmEx",
        blas.handle,
        N,
        N,
        4,
        4,
        4,
        c_void_p(8),
        pc,
        TYPES["R8I"],
        4,
        pc,
        TYPES["R16F"],
        4,
        c_void_p(8),
        pc,
        0,
        4,
        COMPUTE["32F"],
        -1,
    )
    assert status == NOT_SUPPORTED
    assert "data types 3, 2 and 0 with compute type 68" in capfd.readouterr().err
    assert blas.code("cublasUint8gemmBias", blas.handle) == NOT_SUPPORTED
    assert "SX0780: cublasUint8gemmBias is not implemented" in capfd.readouterr().err
