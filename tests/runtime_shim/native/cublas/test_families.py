"""The replacement of cuBLAS beside NumPy: triangles, updates, rotations, batched factorisations."""

from __future__ import annotations

import os
import subprocess
import sys
from ctypes import byref, c_int, c_void_p
from pathlib import Path

import numpy as np
import pytest

from sassxlate.runtime_shim import application

from .cublas_api import (
    INVALID_VALUE,
    LETTERS,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    SUCCESS,
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

SIZE = 6
ROOT = Path(__file__).resolve().parents[4]


def triangle(a: Array, fill: int) -> Array:
    """Of cuBLAS's fill modes."""
    return np.tril(a) if fill == 0 else np.triu(a)


def packed(a: Array, fill: int) -> Array:
    """The columns of a triangle, one after another."""
    n = len(a)
    return np.concatenate([a[j:, j] if fill == 0 else a[: j + 1, j] for j in range(n)])


def banded(a: Array, fill: int, k: int) -> Array:
    """k + 1 diagonals as columns of a (k + 1) x n array."""
    n = len(a)
    out = np.zeros((k + 1, n), a.dtype)
    for j in range(n):
        for i in range(n):
            row = i - j if fill == 0 else k + i - j
            if 0 <= row <= k and (i >= j if fill == 0 else i <= j):
                out[row, j] = a[i, j]
    return out


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("fill", [0, 1])
def test_symmetric_products(blas: Blas, letter: str, fill: int) -> None:
    dtype, complex_ = LETTERS[letter], letter in "CZ"
    a, x, y = noise(1, (SIZE, SIZE), dtype), noise(2, (SIZE,), dtype), noise(3, (SIZE,), dtype)
    half = triangle(a, fill)
    whole = half + half.conj().T - np.diag(np.real(np.diag(a)))
    band = whole * (np.abs(np.subtract.outer(range(SIZE), range(SIZE))) <= 2)
    kinds = ("he", "hp", "hb") if complex_ else ("sy", "sp", "sb")
    alpha, beta = one(2 - 1j if complex_ else 2, dtype), one(0.5, dtype)
    forms = (
        ((), blas.put(a), (SIZE,), whole),
        ((), blas.put(packed(a, fill)), (), whole),
        ((2,), blas.put(banded(a, fill, 2)), (3,), band),
    )
    for kind, (diagonals, data, ld, matrix) in zip(kinds, forms, strict=True):
        out = blas.put(y)
        vector = (blas.put(x[::-1].copy()), -1)
        name = f"cublas{letter}{kind}mv_v2"
        blas.call(name, fill, SIZE, *diagonals, alpha, data, *ld, *vector, beta, out, 1)
        close(blas.get(out, (SIZE,), dtype), alpha[0] * matrix @ x + y / 2, SIZE, dtype)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("fill", [0, 1])
@pytest.mark.parametrize("trans", [N, T, C])
@pytest.mark.parametrize("unit", [0, 1])
def test_triangular_vectors(blas: Blas, letter: str, fill: int, trans: int, unit: int) -> None:
    dtype = LETTERS[letter]
    a = noise(1, (SIZE, SIZE), dtype) / 4 + 3 * np.eye(SIZE, dtype=dtype)
    x = noise(2, (SIZE,), dtype)
    half = triangle(a, fill)
    if unit:
        half = half - np.diag(np.diag(half)) + np.eye(SIZE, dtype=dtype)
    band = half * (np.abs(np.subtract.outer(range(SIZE), range(SIZE))) <= 2)
    forms = (
        ("tr", (), blas.put(a), (SIZE,), half),
        ("tp", (), blas.put(packed(a, fill)), (), half),
        ("tb", (2,), blas.put(banded(a, fill, 2)), (3,), band),
    )
    for kind, diagonals, data, ld, matrix in forms:
        out = blas.put(x)
        name = f"cublas{letter}{kind}mv_v2"
        blas.call(name, fill, trans, unit, SIZE, *diagonals, data, *ld, out, 1)
        close(blas.get(out, (SIZE,), dtype), applied(trans, matrix) @ x, SIZE, dtype)
        name = f"cublas{letter}{kind}sv_v2"
        blas.call(name, fill, trans, unit, SIZE, *diagonals, data, *ld, out, 1)
        close(blas.get(out, (SIZE,), dtype), x, 100, dtype)


@pytest.mark.parametrize("letter", LETTERS)
@pytest.mark.parametrize("fill", [0, 1])
def test_updates(blas: Blas, letter: str, fill: int) -> None:
    """Of rank one, two and k; the other triangle stays."""
    dtype, complex_ = LETTERS[letter], letter in "CZ"
    real = np.finfo(dtype).dtype
    k = 4
    a, b = noise(1, (SIZE, k), dtype), noise(2, (SIZE, k), dtype)
    c = noise(3, (SIZE, SIZE), dtype)
    hermitian = c + c.conj().T
    alpha, beta = one(2 - 1j if complex_ else 2, dtype), one(0.5, real)
    size = (SIZE, SIZE)

    def check(out: c_void_p, before: Array, wanted: Array) -> None:
        got = blas.get(out, size, dtype)
        close(triangle(got, fill), triangle(wanted, fill), k, dtype)
        other = 1 - fill
        strict = triangle(got - before, other) * (1 - np.eye(SIZE))
        assert (strict == 0).all()

    data = (blas.put(a), SIZE, blas.put(b), SIZE)
    prefix = "her" if complex_ else "syr"
    out = blas.put(hermitian)
    blas.call(f"cublas{letter}{prefix}2k_v2", fill, N, SIZE, k, alpha, *data, beta, out, SIZE)
    both = alpha[0] * a @ b.conj().T
    check(out, hermitian, both + both.conj().T + hermitian / 2)
    out = blas.put(c)
    factor = one(0.5, dtype)
    blas.call(f"cublas{letter}syrkx", fill, N, SIZE, k, alpha, *data, factor, out, SIZE)
    check(out, c, alpha[0] * a @ b.T + c / 2)
    vectors = (blas.put(a[:, 0].copy()), 1, blas.put(b[:, 0].copy()), 1)
    out = blas.put(hermitian)
    blas.call(f"cublas{letter}{prefix}2_v2", fill, SIZE, alpha, *vectors, out, SIZE)
    both = alpha[0] * np.outer(a[:, 0], b[:, 0].conj())
    check(out, hermitian, both + both.conj().T + hermitian)
    out = blas.put(hermitian)
    blas.call(f"cublas{letter}{prefix}_v2", fill, SIZE, one(2, real), *vectors[:2], out, SIZE)
    check(out, hermitian, 2 * np.outer(a[:, 0], a[:, 0].conj()) + hermitian)
    if not complex_:
        return
    out = blas.put(hermitian)
    blas.call(f"cublas{letter}herk_v2", fill, N, SIZE, k, one(2, real), *data[:2], beta, out, SIZE)
    check(out, hermitian, 2 * a @ a.conj().T + hermitian / 2)
    out, square = blas.put(a), blas.put(hermitian)
    factor = one(0.5, dtype)
    blas.call(
        f"cublas{letter}hemm_v2",
        0,
        fill,
        SIZE,
        k,
        alpha,
        square,
        SIZE,
        *data[2:],
        factor,
        out,
        SIZE,
    )
    close(blas.get(out, a.shape, dtype), alpha[0] * hermitian @ b + a / 2, SIZE, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_rotations(blas: Blas, letter: str) -> None:
    dtype = LETTERS[letter]
    real = np.finfo(dtype).dtype
    a, b = noise(1, (1,), dtype), noise(2, (1,), dtype)
    first, second = a.copy(), b.copy()
    cosine, sine = one(0, real), one(0, dtype)
    blas.call(f"cublas{letter}rotg_v2", a, b, cosine, sine)
    close(cosine * first + sine * second, a, 1, dtype)
    assert abs(cosine * second - sine.conj() * first)[0] < 1e-6
    x, y = noise(3, (5,), dtype), noise(4, (5,), dtype)
    px, py = blas.put(x), blas.put(y)
    blas.call(f"cublas{letter}rot_v2", 5, px, 1, py, 1, cosine, sine)
    close(blas.get(px, (5,), dtype), cosine * x + sine * y, 1, dtype)
    close(blas.get(py, (5,), dtype), cosine * y - sine.conj() * x, 1, dtype)


def table(blas: Blas, arrays: Array) -> tuple[c_void_p, c_void_p]:
    """A batch of matrices in columns, and the array of their addresses."""
    data = blas.put(np.concatenate([x.ravel("F") for x in arrays]))
    step = arrays[0].nbytes
    named = [(data.value or 0) + i * step for i in range(len(arrays))]
    return data, blas.put(np.array(named, np.uint64))


def batch(blas: Blas, data: c_void_p, like: Array) -> Array:
    """The matrices of `table`."""
    count, rows, columns = like.shape
    flat = blas.get(data, (like.size,), like.dtype).reshape(count, columns, rows)
    return flat.transpose(0, 2, 1)


@pytest.mark.parametrize("letter", LETTERS)
def test_factorisations(blas: Blas, letter: str) -> None:
    """LU, its solutions and inverse, with a singular matrix among them."""
    dtype = LETTERS[letter]
    count, n = 3, 5
    a, b = noise(1, (count, n, n), dtype), noise(2, (count, n, 2), dtype)
    a[1, :, 2] = 0
    _, pointers = table(blas, a)
    pivots, info = (blas.put(np.zeros(s, np.int32)) for s in (count * n, count))
    blas.call(f"cublas{letter}getrfBatched", n, pointers, n, pivots, info, count)
    assert list(blas.get(info, (count,), np.int32)) == [0, 3, 0]
    out, inverses = table(blas, np.zeros_like(a))
    blas.call(f"cublas{letter}getriBatched", n, pointers, n, pivots, inverses, n, info, count)
    assert list(blas.get(info, (count,), np.int32)) == [0, 3, 0]
    got = batch(blas, out, a)
    for i in (0, 2):
        close(got[i] @ a[i], np.eye(n), 10000, dtype)
    for trans in (N, T, C):
        right, rights = table(blas, b[::2])
        chosen = blas.put(blas.get(pointers, (count,), np.uint64)[::2].copy())
        order = blas.get(pivots, (count * n,), np.int32).reshape(count, n)[::2].ravel()
        host = c_int(9)
        blas.call(
            f"cublas{letter}getrsBatched", trans, n, 2, chosen, n, blas.put(order), rights, n,
            byref(host), 2,
        )  # fmt: skip
        solved = batch(blas, right, b[::2])
        assert host.value == 0
        for i in range(2):
            close(applied(trans, a[2 * i]) @ solved[i], b[2 * i], 10000, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_inverses(blas: Blas, letter: str) -> None:
    dtype = LETTERS[letter]
    a = noise(1, (2, 5, 5), dtype)
    _, pointers = table(blas, a)
    out, inverses = table(blas, np.zeros_like(a))
    info = blas.put(np.zeros(2, np.int32))
    blas.call(f"cublas{letter}matinvBatched", 5, pointers, 5, inverses, 5, info, 2)
    for i, inverse in enumerate(batch(blas, out, a)):
        close(inverse @ a[i], np.eye(5), 10000, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_least_squares(blas: Blas, letter: str) -> None:
    """QR, and solutions by it."""
    dtype = LETTERS[letter]
    info = blas.put(np.zeros(2, np.int32))
    tall, targets = noise(3, (2, 7, 4), dtype), noise(4, (2, 7, 2), dtype)
    data, pointers = table(blas, tall)
    _, tau_pointers = table(blas, np.zeros((2, 4, 1), dtype))
    host = c_int(9)
    blas.call(f"cublas{letter}geqrfBatched", 7, 4, pointers, 7, tau_pointers, byref(host), 2)
    for got, wanted in zip(batch(blas, data, tall), tall, strict=True):
        upper = np.triu(got)[:4]
        close(upper.conj().T @ upper, wanted.conj().T @ wanted, 100, dtype)
    _, pointers = table(blas, tall)
    right, rights = table(blas, targets)
    blas.call(
        f"cublas{letter}gelsBatched", N, 7, 4, 2, pointers, 7, rights, 7, byref(host), info, 2
    )
    for got, x, y in zip(batch(blas, right, targets), tall, targets, strict=True):
        close(x.conj().T @ (x @ got[:4]), x.conj().T @ y, 1000, dtype)


@pytest.mark.parametrize("letter", LETTERS)
def test_many_small_operations(blas: Blas, letter: str) -> None:
    dtype = LETTERS[letter]
    a, b = noise(1, (3, 4, 4), dtype) + 4 * np.eye(4, dtype=dtype), noise(2, (3, 4, 2), dtype)
    one_, zero = one(1, dtype), one(0, dtype)
    (_, named_a), (pb, named_b) = table(blas, a), table(blas, b)
    name = f"cublas{letter}trsmBatched"
    blas.call(name, 0, 0, N, 0, 4, 2, one_, named_a, 4, named_b, 4, 3)
    for got, x, y in zip(batch(blas, pb, b), a, b, strict=True):
        close(np.tril(x) @ got, y, 1000, dtype)
    x, (out, named) = noise(3, (3, 4, 1), dtype), table(blas, np.zeros((3, 4, 1), dtype))
    _, named_x = table(blas, x)
    blas.call(
        f"cublas{letter}gemvBatched", N, 4, 4, one_, named_a, 4, named_x, 1, zero, named, 1, 3
    )
    close(batch(blas, out, x), a @ x, 4, dtype)


def test_a_pointer_in_an_array_that_is_none(blas: Blas) -> None:
    """Tried in another process, because the device stays faulted."""
    text = f"""
import sys
sys.path.append({str(ROOT)!r})  # last: sassxlate is the installed one
import numpy as np, ctypes
from tests.runtime_shim.native.cublas.cublas_api import Blas, one
b = Blas({blas.major})
good = b.put(np.zeros(16, np.float32))
bad = b.put(np.array([64], np.uint64))
fine = b.put(np.array([good.value], np.uint64))
f = one(1, np.float32)
b.call("cublasSgemmBatched", 0, 0, 4, 4, 4, f, bad, 4, fine, 4, f, fine, 4, 1)
print(b.cuda.library.cuStreamSynchronize(None))
print(b.code("cublasSetStream_v2", b.handle, None))
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", text],
        env={**os.environ, "SASSXLATE_BLAS": str(application.host_blas())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "SX0782: cublasSgemmBatched: the address 0x40, of a number or in an array" in done.stderr
    assert done.stdout.split()[0] == "700"
    assert done.stdout.split()[1] != "0"


def test_vectors_by_type(blas: Blas) -> None:
    """Halves are computed as float and rounded once."""
    x, y = noise(1, (9,), np.float16), noise(2, (9,), np.float16)
    half, single = TYPES["R16F"], TYPES["R32F"]
    px, py, alpha = blas.put(x), blas.put(y), one(1.5, np.float32)
    result = one(0, np.float16)
    blas.call("cublasDotEx", 9, px, half, 1, py, half, 1, result, half, single)
    assert abs(float(result[0]) - float(x.astype(float) @ y.astype(float))) < 2e-2
    blas.call("cublasAxpyEx", 9, alpha, single, px, half, 1, py, half, 1, single)
    wanted = (1.5 * x.astype(np.float32) + y.astype(np.float32)).astype(np.float16)
    assert (blas.get(py, (9,), np.float16) == wanted).all()
    blas.call("cublasScalEx", 9, alpha, single, px, half, 1, single)
    assert (blas.get(px, (9,), np.float16) == (1.5 * x.astype(np.float32)).astype(np.float16)).all()
    status = blas.code("cublasScalEx", blas.handle, 9, c_void_p(alpha.ctypes.data), 0, px, 3, 1, 0)
    assert status == NOT_SUPPORTED


def test_transfers(blas: Blas) -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4, order="F").copy(order="F")
    device = blas.put(np.zeros(20, np.float32))
    at = c_void_p(a.ctypes.data)
    assert blas.code("cublasSetMatrix", 3, 4, 4, at, 3, device, 5) == SUCCESS
    back = np.zeros((3, 4), np.float32, order="F")
    assert (
        blas.code("cublasGetMatrix", 3, 4, 4, device, 5, c_void_p(back.ctypes.data), 3) == SUCCESS
    )
    assert (back == a).all()
    line = np.zeros(4, np.float32)
    to = c_void_p(line.ctypes.data)
    assert blas.code("cublasGetVector", 4, 4, device, 5, to, 1) == SUCCESS
    assert (line == a[0]).all()
    assert blas.code("cublasSetMatrix", 3, 4, 4, at, 2, device, 5) == INVALID_VALUE


def test_a_destroyed_handle(blas: Blas) -> None:
    handle = c_void_p()
    assert blas.code("cublasCreate_v2", byref(handle)) == SUCCESS
    assert blas.code("cublasSetEnvironmentMode", handle, 1) == SUCCESS
    assert blas.code("cublasDestroy_v2", handle) == SUCCESS
    assert blas.code("cublasDestroy_v2", handle) == NOT_INITIALIZED
    assert blas.code("cublasSetStream_v2", handle, None) == NOT_INITIALIZED
