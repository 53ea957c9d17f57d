"""The replacement of cuBLAS beside NumPy: products of all types, vectors, triangles, bad calls."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from ctypes import byref, c_int, c_int64, c_longlong, c_uint64, c_void_p
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sassxlate.runtime_shim import application
from tests.runtime_shim.native.cufft.cufft_api import Cuda, library_folder

Array = NDArray[Any]

SUCCESS, NOT_INITIALIZED, INVALID_VALUE, EXECUTION_FAILED, NOT_SUPPORTED = 0, 1, 7, 13, 15
N, T, C = 0, 1, 2
LETTERS = {"S": np.float32, "D": np.float64, "C": np.complex64, "Z": np.complex128}
TYPES = {"R32F": 0, "R64F": 1, "R16F": 2, "R8I": 3, "C32F": 4, "C64F": 5, "R32I": 10, "R16BF": 14}
COMPUTE = {"16F": 64, "32F": 68, "64F": 70, "32I": 72, "TF32": 77}


class Blas:
    """One of our libraries, a handle, and arrays on the device, in columns."""

    def __init__(self, major: int) -> None:
        blas = application.host_blas()
        if blas is not None:
            os.environ["SASSXLATE_BLAS"] = str(blas)
        self.cuda = Cuda()
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


@pytest.fixture(scope="module", params=[12, 13])
def library(request: pytest.FixtureRequest) -> Blas:
    """Both libraries."""
    if not (library_folder() / "cublas" / f"libcublas.so.{request.param}").is_file():
        pytest.skip("libcublas is not built (runtime_shim/native/build.sh)")
    if application.host_blas() is None:
        pytest.skip("this NumPy brings no OpenBLAS")
    return Blas(request.param)


@pytest.fixture
def blas(library: Blas) -> Iterator[Blas]:
    """A library whose memory is freed after the test."""
    yield library
    library.call("cublasSetPointerMode_v2", 0)
    library.call("cublasSetStream_v2", None)
    library.cuda.free(*library.memory)
    library.memory.clear()


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
        released.wait(30)

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
    assert blas.code("cublasStpmv_v2", blas.handle) == NOT_SUPPORTED
    assert "SX0780: cublasStpmv_v2 is not implemented" in capfd.readouterr().err


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize(("incx", "incy"), [(1, 1), (2, 3), (-1, 2), (-2, -2)])
def test_vectors(blas: Blas, letter: str, incx: int, incy: int) -> None:
    dtype = LETTERS[letter]
    n = 17
    x, y = noise(1, (n * abs(incx),), dtype), noise(2, (n * abs(incy),), dtype)

    def lane(v: Array, inc: int) -> Array:
        used = v[:: abs(inc)][:n]
        return used if inc > 0 else used[::-1]

    px, py = blas.put(x), blas.put(y)
    alpha = one(1.5 + 2j if letter in "CZ" else 1.5, dtype)
    result = one(0, dtype)
    for name, left in {
        "S": {"Sdot": x},
        "D": {"Ddot": x},
        "C": {"Cdotu": x, "Cdotc": x.conj()},
        "Z": {"Zdotu": x, "Zdotc": x.conj()},
    }[letter].items():
        blas.call(f"cublas{name}_v2", n, px, incx, py, incy, result)
        close(result, np.array([lane(left, incx) @ lane(y, incy)]), n * 10, dtype)
    blas.call(f"cublas{letter}axpy_v2", n, alpha, px, incx, py, incy)
    wanted = y.copy()
    lane(wanted, incy)[:] += alpha[0] * lane(x, incx)
    close(blas.get(py, y.shape, dtype), wanted, n, dtype)
    blas.call(f"cublas{letter}swap_v2", n, px, incx, py, incy)
    mine, other = x.copy(), wanted.copy()
    lane(mine, incx)[:] = lane(wanted, incy)
    lane(other, incy)[:] = lane(x, incx)
    close(blas.get(px, x.shape, dtype), mine, n, dtype)
    close(blas.get(py, y.shape, dtype), other, n, dtype)
    blas.call(f"cublas{letter}copy_v2", n, px, incx, py, incy)
    close(lane(blas.get(py, y.shape, dtype), incy), lane(mine, incx), n, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_norms_and_places(blas: Blas, letter: str) -> None:
    dtype = LETTERS[letter]
    real = np.finfo(dtype).dtype
    x = noise(5, (40,), dtype)
    px = blas.put(x)
    prefix = {"S": "S", "D": "D", "C": "Sc", "Z": "Dz"}[letter]
    result, place = one(0, real), np.zeros(1, np.int32)
    used = x[::2]
    size = np.abs(np.real(used)) + np.abs(np.imag(used))
    blas.call(f"cublas{prefix}nrm2_v2", 20, px, 2, result)
    close(result, np.array([np.linalg.norm(used)]), 20, real)
    blas.call(f"cublas{prefix}asum_v2", 20, px, 2, result)
    close(result, np.array([size.sum()]), 20, real)
    for name, wanted in (("amax", size.argmax()), ("amin", size.argmin())):
        blas.call(f"cublasI{letter.lower()}{name}_v2", 20, px, 2, place)
        assert place[0] == wanted + 1
        blas.call(f"cublasI{letter.lower()}{name}_v2", 0, px, 2, place)
        assert place[0] == 0
    alpha = one(-3, dtype)
    blas.call(f"cublas{letter}scal_v2", 20, alpha, px, 2)
    wanted_x = x.copy()
    wanted_x[::2] *= -3
    close(blas.get(px, x.shape, dtype), wanted_x, 1, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_matrices(blas: Blas, letter: str) -> None:
    dtype = LETTERS[letter]
    m, n = 6, 4
    a, b, c = noise(1, (m, n), dtype), noise(2, (n, m), dtype), noise(3, (m, n), dtype)
    alpha, beta = one(2 - 1j if letter in "CZ" else 2, dtype), one(0.5, dtype)
    x, y = noise(4, (m,), dtype), noise(5, (n,), dtype)
    for trans in (N, T, C):
        vx, vy = (y, x) if trans == N else (x, y)
        py = blas.put(vy)
        blas.call(
            f"cublas{letter}gemv_v2",
            trans,
            m,
            n,
            alpha,
            blas.put(a),
            m,
            blas.put(vx),
            1,
            beta,
            py,
            1,
        )
        close(
            blas.get(py, vy.shape, dtype),
            alpha[0] * applied(trans, a) @ vx + beta[0] * vy,
            m,
            dtype,
        )
    for name, right in {
        "S": {"Sger": y},
        "D": {"Dger": y},
        "C": {"Cgeru": y, "Cgerc": y.conj()},
        "Z": {"Zgeru": y, "Zgerc": y.conj()},
    }[letter].items():
        pa = blas.put(a)
        blas.call(f"cublas{name}_v2", m, n, alpha, blas.put(x), 1, blas.put(y), 1, pa, m)
        close(blas.get(pa, a.shape, dtype), a + alpha[0] * np.outer(x, right), 1, dtype)
    pc = blas.put(c)
    blas.call(f"cublas{letter}geam", N, C, m, n, alpha, blas.put(a), m, beta, blas.put(b), n, pc, m)
    close(blas.get(pc, c.shape, dtype), alpha[0] * a + beta[0] * b.conj().T, 1, dtype)
    for side, diagonal in ((0, x), (1, y)):
        blas.call(f"cublas{letter}dgmm", side, m, n, blas.put(a), m, blas.put(diagonal), 1, pc, m)
        wanted = diagonal[:, None] * a if side == 0 else a * diagonal
        close(blas.get(pc, c.shape, dtype), wanted, 1, dtype)
    square = noise(6, (m, m), dtype)
    for fill, keep in ((0, np.tril), (1, np.triu)):
        pc = blas.put(square)
        blas.call(f"cublas{letter}syrk_v2", fill, N, m, n, alpha, blas.put(a), m, beta, pc, m)
        close(
            keep(blas.get(pc, (m, m), dtype)), keep(alpha[0] * a @ a.T + beta[0] * square), m, dtype
        )
        symmetric = keep(square) + keep(square, (-1, 1)[fill]).T
        pc = blas.put(c)
        blas.call(
            f"cublas{letter}symm_v2",
            0,
            fill,
            m,
            n,
            alpha,
            blas.put(square),
            m,
            blas.put(a),
            m,
            beta,
            pc,
            m,
        )
        close(blas.get(pc, c.shape, dtype), alpha[0] * symmetric @ a + beta[0] * c, m, dtype)
        triangle = keep(square) + 4 * np.eye(m, dtype=dtype)
        for trans in (N, T, C):
            pc = blas.put(c)
            blas.call(
                f"cublas{letter}trmm_v2",
                0,
                fill,
                trans,
                0,
                m,
                n,
                alpha,
                blas.put(triangle),
                m,
                blas.put(a),
                m,
                pc,
                m,
            )
            product = blas.get(pc, c.shape, dtype)
            close(product, alpha[0] * applied(trans, triangle) @ a, m, dtype)
            blas.call(
                f"cublas{letter}trsm_v2",
                0,
                fill,
                trans,
                0,
                m,
                n,
                one(1, dtype),
                blas.put(triangle),
                m,
                pc,
                m,
            )
            close(blas.get(pc, c.shape, dtype), alpha[0] * a, 100, dtype)


def test_bad_arguments(blas: Blas, capfd: pytest.CaptureFixture[str]) -> None:
    alpha = one(1, np.float32)
    scalar = c_void_p(alpha.ctypes.data)
    data = blas.put(np.zeros(16, np.float32))

    def gemm(
        *sizes: int, a: object = data, handle: object = blas.handle, factor: object = scalar
    ) -> int:
        ta, m, k, lda, ldc = sizes
        return blas.code(
            "cublasSgemm_v2",
            handle,
            ta,
            N,
            m,
            4,
            k,
            factor,
            a,
            lda,
            data,
            max(k, 1),
            factor,
            data,
            ldc,
        )

    assert gemm(N, 4, 4, 4, 4) == SUCCESS
    assert gemm(N, 4, 4, 4, 4, handle=None) == NOT_INITIALIZED
    assert gemm(3, 4, 4, 4, 4) == INVALID_VALUE
    assert gemm(N, -1, 4, 4, 4) == INVALID_VALUE
    assert gemm(N, 4, -1, 4, 4) == INVALID_VALUE
    assert gemm(N, 4, 4, 3, 4) == INVALID_VALUE
    assert gemm(N, 4, 4, 4, 3) == INVALID_VALUE
    assert gemm(N, 4, 4, 4, 4, factor=None) == INVALID_VALUE
    host = np.zeros(16, np.float32)
    for bad in (None, c_void_p(64), c_void_p(host.ctypes.data), c_void_p((data.value or 0) + 2)):
        assert gemm(N, 4, 4, 4, 4, a=bad) == EXECUTION_FAILED
    assert gemm(N, 4, 4, 2**30, 4) == EXECUTION_FAILED  # reaches beyond the allocation
    assert capfd.readouterr().err.count("SX0782") <= 1
    assert blas.code("cublasSetPointerMode_v2", blas.handle, 2) == INVALID_VALUE
    assert blas.code("cublasCreate_v2", None) == INVALID_VALUE
    assert blas.code("cublasDestroy_v2", None) == NOT_INITIALIZED
