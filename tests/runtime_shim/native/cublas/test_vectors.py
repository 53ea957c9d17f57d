"""The replacement of cuBLAS beside NumPy: vectors, triangles, bad calls."""

from __future__ import annotations

from ctypes import c_int64, c_void_p

import numpy as np
import pytest

from .cublas_api import (
    EXECUTION_FAILED,
    INVALID_VALUE,
    LETTERS,
    NOT_INITIALIZED,
    SUCCESS,
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


@pytest.mark.parametrize("letter", LETTERS)
def test_geam_without_beta(blas: Blas, letter: str) -> None:
    """As cuSOLVER calls it: B is not read, in host and in device mode."""
    dtype = LETTERS[letter]
    m, n = 6, 4
    a, c = noise(1, (m, n), dtype), noise(3, (m, n), dtype)
    alpha = one(2 - 1j if letter in "CZ" else 2, dtype)
    device_alpha = blas.put(alpha)
    for mode, factor in ((0, alpha), (1, device_alpha)):
        blas.call("cublasSetPointerMode_v2", mode)
        pc = blas.put(c)
        blas.call(f"cublas{letter}geam", N, C, m, n, factor, blas.put(a), m, None, None, n, pc, m)
        close(blas.get(pc, c.shape, dtype), alpha[0] * a, 1, dtype)
    blas.call("cublasSetPointerMode_v2", 0)
    arguments = (blas.handle, N, C, m, n, None, blas.put(a), m, None, None, n, pc, m)
    assert blas.code(f"cublas{letter}geam", *arguments) == INVALID_VALUE


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


@pytest.mark.parametrize("letter", "SD")
def test_a_zero_in_y_does_not_hide_a_nan_in_x(blas: Blas, letter: str) -> None:
    dtype = LETTERS[letter]
    x, y = np.array([1, np.nan, np.inf], dtype), np.array([0, 2], dtype)
    a = noise(1, (3, 2), dtype)
    with np.errstate(invalid="ignore"):
        product = np.outer(x, y)
    for alpha, wanted in ((1, a + product), (0, a)):
        pa = blas.put(a)
        factor = one(alpha, dtype)
        blas.call(f"cublas{letter}ger_v2", 3, 2, factor, blas.put(x), 1, blas.put(y), 1, pa, 3)
        np.testing.assert_array_equal(blas.get(pa, a.shape, dtype), wanted)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("trans", [N, T, C])
def test_alpha_multiplies_the_sum(blas: Blas, letter: str, trans: int) -> None:
    """alpha x overflows; alpha times the sum doesn't."""
    dtype = LETTERS[letter]
    unit = 20 if letter in "SC" else 160
    large, middle, small = 2.0 ** (5 * unit), 2.0 ** (3 * unit), 2.0 ** (-6 * unit)
    a, x = blas.put(np.full((2, 2), small, dtype)), blas.put(np.full(2, middle, dtype))
    y, wanted = np.full(2, np.nan, dtype), np.full(2, 2 * 2.0 ** (2 * unit), dtype)
    for factor, result in ((large, wanted), (0, 0 * wanted)):
        alpha, beta, py = one(factor, dtype), one(0, dtype), blas.put(y)
        blas.call(f"cublas{letter}gemv_v2", trans, 2, 2, alpha, a, 2, x, 1, beta, py, 1)
        np.testing.assert_array_equal(blas.get(py, (2,), dtype), result)
    py = blas.put(y)
    alpha, beta = one(large, dtype), one(0, dtype)
    shape = (trans, 2, 2, alpha, a, 2, c_int64(0), x, 1, c_int64(0), beta, py, 1, c_int64(0), 1)
    blas.call(f"cublas{letter}gemvStridedBatched", *shape)
    np.testing.assert_array_equal(blas.get(py, (2,), dtype), wanted)
