"""The replacement of cuBLASLt beside NumPy: types, orders, epilogues, batches, bad calls."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_void_p

import numpy as np
import pytest

from sassxlate.runtime_shim import application

from .cublas_api import (
    COMPUTE,
    EXECUTION_FAILED,
    INVALID_VALUE,
    NOT_INITIALIZED,
    NOT_SUPPORTED,
    SUCCESS,
    TYPES,
    Array,
    Blas,
    applied,
    close,
    noise,
    one,
)
from .lt_api import E4M3, Lt

M, N, K = 12, 7, 20
F32 = TYPES["R32F"]
ONE, ZERO = one(1, np.float32), one(0, np.float32)


@pytest.fixture(scope="module")
def lt(library: Blas) -> Lt:
    """Of both releases, beside the other library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASSXLATE_BLAS", str(application.host_blas()))
        return Lt(library, library.major)


KINDS = {
    "float": (np.float32, "R32F", "32F"),
    "double": (np.float64, "R64F", "64F"),
    "complex": (np.complex64, "C32F", "32F"),
    "double complex": (np.complex128, "C64F", "64F"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize(("ta", "tb"), [(0, 0), (1, 0), (2, 1), (1, 2)])
def test_orders_and_transposes(lt: Lt, blas: Blas, kind: str, order: int, ta: int, tb: int) -> None:
    dtype, name, compute = KINDS[kind]
    stored = TYPES[name]
    a = noise(1, (M, K) if ta == 0 else (K, M), dtype)
    b = noise(2, (K, N) if tb == 0 else (N, K), dtype)
    c = noise(3, (M, N), dtype)
    put = [blas.put(x.T if order else x) for x in (a, b, c)]
    out = blas.put(np.zeros_like(c))
    layouts = [lt.layout(stored, *x.shape, order=order) for x in (a, b, c)]
    factors = (one(2, dtype), one(-0.5, dtype))
    operation = lt.operation(COMPUTE[compute], stored, transa=ta, transb=tb)
    status = lt.matmul(
        operation, factors, (put[0], layouts[0]), (put[1], layouts[1]), (out, layouts[2]),
        (put[2], layouts[2]),
    )  # fmt: skip
    assert status == SUCCESS
    got = blas.get(out, (N, M), dtype).T if order else blas.get(out, (M, N), dtype)
    close(got, 2 * applied(ta, a) @ applied(tb, b) - c / 2, K, dtype)


def plain(lt: Lt, blas: Blas, a: Array, b: Array, **values: object) -> Array:
    """A float product with an epilogue."""
    out = blas.put(np.zeros((a.shape[0], b.shape[1]), np.float32))
    operation = lt.operation(COMPUTE["32F"], F32, **values)
    layouts = [lt.layout(F32, *s) for s in (a.shape, b.shape, (a.shape[0], b.shape[1]))]
    status = lt.matmul(
        operation, (ONE, ZERO), (blas.put(a), layouts[0]), (blas.put(b), layouts[1]),
        (out, layouts[2]),
    )  # fmt: skip
    assert status == SUCCESS
    return blas.get(out, (a.shape[0], b.shape[1]), np.float32)


def gelu(x: Array) -> Array:
    """By tanh."""
    return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def test_epilogues(lt: Lt, blas: Blas) -> None:
    a, b, bias = (
        noise(1, (M, K), np.float32),
        noise(2, (K, N), np.float32),
        noise(3, (M,), np.float32),
    )
    product, shifted = a @ b, a @ b + bias[:, None]
    pointer = blas.put(bias)
    close(plain(lt, blas, a, b, epilogue=4, bias=pointer), shifted, K, np.float32)
    close(plain(lt, blas, a, b, epilogue=2), np.maximum(product, 0), K, np.float32)
    close(plain(lt, blas, a, b, epilogue=6, bias=pointer), np.maximum(shifted, 0), K, np.float32)
    close(plain(lt, blas, a, b, epilogue=32), gelu(product), K, np.float32)
    close(plain(lt, blas, a, b, epilogue=36, bias=pointer), gelu(shifted), K, np.float32)
    # Sums over k, of A's rows and B's columns.
    sums = blas.put(np.zeros(M, np.float32))
    close(plain(lt, blas, a, b, epilogue=256, bias=sums), product, K, np.float32)
    close(blas.get(sums, (M,), np.float32), a.sum(1), K, np.float32)
    close(plain(lt, blas, a, b, epilogue=512, bias=sums), product, K, np.float32)
    close(blas.get(sums, (M,), np.float32)[:N], b.sum(0), K, np.float32)


def test_gradients(lt: Lt, blas: Blas) -> None:
    """What the forward pass keeps is what the backward pass takes."""
    a, b = noise(1, (M, K), np.float32), noise(2, (K, N), np.float32)
    x, product = noise(4, (M, K), np.float32) @ noise(5, (K, N), np.float32), a @ b
    mask = blas.put(np.zeros(16 * N, np.uint8))
    close(
        plain(lt, blas, a, b, epilogue=130, aux=mask, aux_ld=128),
        np.maximum(product, 0),
        K,
        np.float32,
    )
    kept = np.unpackbits(
        blas.get(mask, (16 * N,), np.uint8).reshape(N, 16), axis=1, bitorder="little"
    )
    assert ((product > 0) == kept[:, :M].T).all()
    sums = blas.put(np.zeros(M, np.float32))
    got = plain(lt, blas, a, b, epilogue=152, aux=mask, aux_ld=128, bias=sums)
    close(got, np.where(product > 0, product, 0), K, np.float32)
    close(blas.get(sums, (M,), np.float32), got.sum(1), K, np.float32)
    held = np.zeros((16, N), np.float32)
    held[:M] = x
    aux = blas.put(held)
    step = 1e-3
    wide = x.astype(float)
    slope = (gelu(wide + step) - gelu(wide - step)) / (2 * step)
    got = plain(lt, blas, a, b, epilogue=208, aux=aux, aux_ld=16, bias=sums)
    assert np.allclose(got, slope * product, rtol=1e-3, atol=1e-4)
    close(blas.get(sums, (M,), np.float32), got.sum(1), K, np.float32)
    close(plain(lt, blas, a, b, epilogue=160, aux=aux, aux_ld=16), gelu(product), K, np.float32)
    close(blas.get(aux, (16, N), np.float32)[:M], product, K, np.float32)


@pytest.mark.parametrize("scale", ["R32I", "R32F"])
def test_bytes(lt: Lt, blas: Blas, scale: str) -> None:
    """Exact; to bytes they are rounded to even and stop at the ends."""
    rng = np.random.default_rng(7)
    a = rng.integers(-128, 128, (M, K)).astype(np.int8)
    b = rng.integers(-128, 128, (K, N)).astype(np.int8)
    integers = scale == "R32I"
    dtype = np.int32 if integers else np.int8
    out = blas.put(np.zeros((M, N), dtype))
    factor = one(3, np.int32) if integers else one(2.0**-9, np.float32)
    d = lt.layout(TYPES["R32I" if integers else "R8I"], M, N)
    operation = lt.operation(COMPUTE["32I"], TYPES[scale])
    layouts = [lt.layout(TYPES["R8I"], *x.shape) for x in (a, b)]
    zero = one(0, factor.dtype)
    status = lt.matmul(
        operation, (factor, zero), (blas.put(a), layouts[0]), (blas.put(b), layouts[1]), (out, d)
    )
    assert status == SUCCESS
    product = a.astype(np.int64) @ b.astype(np.int64)
    wanted = 3 * product if integers else np.clip(np.rint(product * 2.0**-9), -128, 127)
    assert (blas.get(out, (M, N), dtype) == wanted).all()


def e4m3(bits: Array) -> Array:
    """The values of bytes."""
    sign = np.where(bits & 0x80, -1.0, 1.0)
    exponent, fraction = (bits >> 3 & 15).astype(int), (bits & 7).astype(float)
    normal = (1 + fraction / 8) * 2.0 ** (exponent - 7)
    value = np.where(exponent == 0, fraction / 8 * 2.0**-6, normal)
    return np.where((bits & 0x7F) == 0x7F, np.nan, sign * value)


@pytest.mark.parametrize("vectors", [False, True])
def test_fp8(lt: Lt, blas: Blas, vectors: bool) -> None:
    """Scales of A and B, whole or by rows and columns; D scaled and saturated."""
    rng = np.random.default_rng(9)
    bits = [rng.integers(0, 0x7E, s).astype(np.uint8) for s in ((M, K), (K, N))]
    a, b = (e4m3(x) for x in bits)
    scales = [noise(n, (s if vectors else 1,), np.float32) ** 2 + 0.1 for n, s in ((1, M), (2, N))]
    wanted = (a @ b) * scales[0][:, None] * scales[1]
    common = {
        "a_scale": blas.put(scales[0]),
        "b_scale": blas.put(scales[1]),
        "a_scale_mode": 3 if vectors else 0,
        "b_scale_mode": 3 if vectors else 0,
    }
    pa, pb = (blas.put(x) for x in bits)
    la, lb = (lt.layout(E4M3, *x.shape) for x in bits)
    out, half = blas.put(np.zeros((M, N), np.float32)), blas.put(np.zeros((M, N), np.uint16))
    operation = lt.operation(COMPUTE["32F"], F32, **common)
    d = lt.layout(F32, M, N)
    assert lt.matmul(operation, (ONE, ZERO), (pa, la), (pb, lb), (out, d)) == SUCCESS
    close(blas.get(out, (M, N), np.float32), wanted, K, np.float32)
    small, most = blas.put(np.zeros((M, N), np.uint8)), blas.put(np.zeros(1, np.float32))
    down = blas.put(one(2.0**-4, np.float32))
    operation = lt.operation(COMPUTE["32F"], F32, d_scale=down, amax=most, **common)
    d, c = lt.layout(E4M3, M, N), lt.layout(TYPES["R16BF"], M, N)
    assert lt.matmul(operation, (ONE, ZERO), (pa, la), (pb, lb), (small, d), (half, c)) == SUCCESS
    close(blas.get(most, (1,), np.float32), np.array([np.abs(wanted).max()]), K, np.float32)
    got = e4m3(blas.get(small, (M, N), np.uint8))
    limited = np.clip(wanted / 16, -448, 448)
    assert (np.abs(got - limited) <= 2.0**-4 * np.abs(limited) * 1.001 + 2.0**-10).all()


def test_half_with_a_bias(lt: Lt, blas: Blas) -> None:
    """One rounding, after the bias."""
    a, b, bias = (noise(n, s, np.float16) for n, s in ((1, (M, K)), (2, (K, N)), (3, (M,))))
    kind = TYPES["R16F"]
    out = blas.put(np.zeros((M, N), np.float16))
    operation = lt.operation(COMPUTE["32F"], F32, epilogue=4, bias=blas.put(bias))
    layouts = [lt.layout(kind, *s) for s in ((M, K), (K, N), (M, N))]
    status = lt.matmul(
        operation, (ONE, ZERO), (blas.put(a), layouts[0]), (blas.put(b), layouts[1]),
        (out, layouts[2]),
    )  # fmt: skip
    assert status == SUCCESS
    wanted = a.astype(float) @ b.astype(float) + bias.astype(float)[:, None]
    got = blas.get(out, (M, N), np.float16).astype(float)
    assert (np.abs(got - wanted) <= 2.0**-11 * np.abs(wanted) * 1.01 + 1e-5).all()


@pytest.mark.parametrize("pointers", [False, True])
def test_batches(lt: Lt, blas: Blas, pointers: bool) -> None:
    a, b = noise(1, (3, K, M), np.float32), noise(2, (3, N, K), np.float32)
    pa, pb = (blas.put(x.ravel()) for x in (a, b))
    out = blas.put(np.zeros(3 * M * N, np.float32))
    values = [{"batch": 3, "step": step, "mode": int(pointers)} for step in (M * K, K * N, M * N)]
    layouts = [
        lt.layout(F32, *s, **v) for s, v in zip(((M, K), (K, N), (M, N)), values, strict=True)
    ]
    data = [pa, pb, out]
    if pointers:
        tables = [
            [(p.value or 0) + 4 * v["step"] * i for i in range(3)]
            for p, v in zip(data, values, strict=True)
        ]
        data = [blas.put(np.array(t, np.uint64)) for t in tables]
    operation = lt.operation(COMPUTE["32F"], F32)
    operands = list(zip(data, layouts, strict=True))
    assert lt.matmul(operation, (ONE, ZERO), operands[0], operands[1], operands[2]) == SUCCESS
    wanted = np.stack([y @ x for x, y in zip(a, b, strict=True)])
    close(blas.get(out, (3 * M * N,), np.float32).reshape(3, N, M), wanted, K, np.float32)


def test_vectors_of_factors(lt: Lt, blas: Blas) -> None:
    """A factor for each row of D."""
    a, b, c = (noise(n, s, np.float32) for n, s in ((1, (M, K)), (2, (K, N)), (3, (M, N))))
    alpha, beta = noise(4, (M,), np.float32), noise(5, (M,), np.float32)
    layouts = [lt.layout(F32, *x.shape) for x in (a, b, c)]
    pa, pb = blas.put(a), blas.put(b)
    for mode, second, wanted in (
        (2, blas.put(beta), alpha[:, None] * (a @ b) + beta[:, None] * c),
        (3, ZERO, alpha[:, None] * (a @ b)),
        (4, one(2, np.float32), alpha[:, None] * (a @ b) + 2 * c),
    ):
        out = blas.put(c)
        operation = lt.operation(COMPUTE["32F"], F32, pointer_mode=mode)
        factors = (blas.put(alpha), second)
        status = lt.matmul(
            operation, factors, (pa, layouts[0]), (pb, layouts[1]), (out, layouts[2])
        )
        assert status == SUCCESS
        close(blas.get(out, (M, N), np.float32), wanted, K, np.float32)


def test_transform(lt: Lt, blas: Blas) -> None:
    """From rows to columns, and a sum."""
    a, b = noise(1, (M, N), np.float32), noise(2, (N, M), np.float32)
    made = c_void_p()
    assert lt.code("cublasLtMatrixTransformDescCreate", byref(made), F32) == SUCCESS
    op = c_int(1)
    assert (
        lt.code("cublasLtMatrixTransformDescSetAttribute", made, 3, byref(op), c_size_t(4))
        == SUCCESS
    )
    out = blas.put(np.zeros((M, N), np.float16))
    layouts = [lt.layout(F32, M, N, order=1), lt.layout(F32, N, M), lt.layout(TYPES["R16F"], M, N)]
    alpha, beta = one(2, np.float32), one(-1, np.float32)
    status = lt.code(
        "cublasLtMatrixTransform", lt.handle, made, c_void_p(alpha.ctypes.data), blas.put(a.T),
        layouts[0], c_void_p(beta.ctypes.data), blas.put(b), layouts[1], out, layouts[2], None,
    )  # fmt: skip
    assert status == SUCCESS
    got = blas.get(out, (M, N), np.float16)
    assert np.allclose(got.astype(float), 2 * a - b.T, rtol=2e-3, atol=1e-3)


def test_heuristic(lt: Lt) -> None:
    """One algorithm, which needs no workspace; none for types that do not go together."""
    preference = c_void_p()
    assert lt.code("cublasLtMatmulPreferenceCreate", byref(preference)) == SUCCESS
    result, found = (ctypes.c_uint64 * 24)(), c_int(9)
    layouts = [lt.layout(F32, *s) for s in ((M, K), (K, N), (M, N), (M, N))]
    operation = lt.operation(COMPUTE["32F"], F32)
    tail = (preference, 2, result, byref(found))
    assert (
        lt.code("cublasLtMatmulAlgoGetHeuristic", lt.handle, operation, *layouts, *tail) == SUCCESS
    )
    assert (found.value, result[8]) == (1, 0)
    other = lt.layout(TYPES["R64F"], K, N)
    mixed = (layouts[0], other, *layouts[2:])
    assert (
        lt.code("cublasLtMatmulAlgoGetHeuristic", lt.handle, operation, *mixed, *tail)
        == NOT_SUPPORTED
    )
    assert found.value == 0


def test_steps_that_no_batch_has(lt: Lt, blas: Blas) -> None:
    """Back, or beyond 64 bits: their sums were modulo 2**64, and memory before a bias was read."""
    a = blas.put(np.ones(64, np.float32))

    def product(bias_step: int = 0, **values: int) -> int:
        how = {"epilogue": 4, "bias": a, "bias_step": bias_step} if bias_step else {}
        operation = lt.operation(COMPUTE["32F"], F32, **how)
        at = (a, lt.layout(F32, 2, 2, **values))
        return lt.matmul(operation, (ONE, ONE), at, at, at)

    assert product() == 0
    assert product(batch=2, step=4, bias_step=2) == 0
    for step in (-1, -2, 2**62):
        assert product(batch=2, step=4, bias_step=step) == EXECUTION_FAILED
    assert product(batch=17, step=2**60) == EXECUTION_FAILED


def test_bad_calls(lt: Lt, blas: Blas, capfd: pytest.CaptureFixture[str]) -> None:
    data = blas.put(np.zeros((M, K), np.float32))
    operation = lt.operation(COMPUTE["32F"], F32)
    good = lt.layout(F32, 4, 4)

    def call(**changed: object) -> int:
        values = {"a": data, "layout": good, "operation": operation, "handle": lt.handle} | changed
        return lt.matmul(
            values["operation"], (ONE, ZERO), (values["a"], values["layout"]), (data, good),  # type: ignore[arg-type]
            (data, good), handle=values["handle"],  # type: ignore[arg-type]
        )  # fmt: skip

    assert call() == SUCCESS
    assert call(handle=blas.handle) == SUCCESS  # cuBLAS's handle is one of cuBLASLt's
    gone = c_void_p()
    assert lt.code("cublasLtCreate", byref(gone)) == SUCCESS
    assert lt.code("cublasLtDestroy", gone) == SUCCESS
    assert call(handle=gone) == NOT_INITIALIZED
    assert lt.code("cublasLtDestroy", gone) == NOT_INITIALIZED
    assert call(a=None) == INVALID_VALUE
    assert call(a=c_void_p(64)) == EXECUTION_FAILED
    assert call(layout=lt.layout(F32, 4, 5)) == INVALID_VALUE  # k differs
    assert call(layout=lt.layout(F32, 4, 4, ld=3)) == INVALID_VALUE
    assert call(layout=lt.layout(F32, 4, 4, ld=2**40)) == EXECUTION_FAILED
    assert (
        call(operation=lt.operation(COMPUTE["32F"], F32, epilogue=4)) == EXECUTION_FAILED
    )  # no bias
    assert call(operation=lt.operation(COMPUTE["32F"], F32, transa=5)) == INVALID_VALUE
    capfd.readouterr()
    assert call(layout=lt.layout(F32, 4, 4, order=2)) == NOT_SUPPORTED
    assert "SX0780: cublasLt: memory order 2 (COL32) is not implemented" in capfd.readouterr().err
    assert call(operation=lt.operation(COMPUTE["32F"], F32, a_scale_mode=2)) == NOT_SUPPORTED
    assert "scales by blocks" in capfd.readouterr().err
    size = c_size_t(2)
    assert (
        lt.code("cublasLtMatmulDescSetAttribute", operation, 3, byref(c_int(0)), size)
        == INVALID_VALUE
    )
    assert (
        lt.code("cublasLtMatmulDescSetAttribute", operation, 99, byref(c_int(0)), c_size_t(4))
        == INVALID_VALUE
    )
    assert lt.code("cublasLtMatrixLayoutInit_internal", good, c_size_t(8), 0, 1, 1, 1) == 3
