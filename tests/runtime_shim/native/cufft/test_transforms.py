"""Transforms beside NumPy's: lengths, types, batches, layouts, in place and out of place."""

from __future__ import annotations

from ctypes import byref, c_int, c_longlong
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .cufft_api import (
    C2C,
    C2R,
    D2Z,
    FORWARD,
    INVERSE,
    NOT_SUPPORTED,
    R2C,
    Z2D,
    Z2Z,
    Cuda,
    Cufft,
    CufftError,
)

Array = NDArray[Any]

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 49, 97, 121, 128, 127, 243, 600, 1000, 1024, 2310, 4099,
           4096, 8192, 10007, 2 * 4099, 65536)  # fmt: skip
BATCHES = (1, 2, 8, 13)  # alone, part of a vector, whole vectors, both


def bound(n: int, dtype: Any) -> float:
    """The relative error, by the norm of a line, that docs/runtime.md states."""
    return float(np.finfo(dtype).eps * (1 + np.log2(max(n, 1)) / 3))


def check(got: Array, wanted: Array, n: int, dtype: Any) -> None:
    """Every line of the last axis is within the bound."""
    error = np.linalg.norm(got - wanted, axis=-1) / np.linalg.norm(wanted, axis=-1)
    assert np.isfinite(got).all()
    assert error.max() <= bound(n, dtype), (n, error.max() / np.finfo(dtype).eps)


def noise(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Normally distributed numbers, complex ones for complex types."""
    rng = np.random.default_rng(seed)
    real = rng.standard_normal(shape)
    if np.issubdtype(dtype, np.complexfloating):
        return (real + 1j * rng.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def execute(
    cuda: Cuda,
    cufft: Cufft,
    name: str,
    handle: c_int,
    x: Array,
    out: tuple[tuple[int, ...], Any],
    *more: int,
) -> Array:
    """Runs a plan out of place; ``out`` is shape and type.  The input must stay as it is."""
    shape, dtype = out
    source, target = cuda.upload(x), cuda.allocate(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    cufft.run(name, handle, source, target, *more)
    result = cuda.read(target, shape, dtype)
    assert (cuda.read(source, x.shape, x.dtype) == x).all()
    cuda.free(source, target)
    return result


COMPLEX = ((C2C, "cufftExecC2C", np.complex64), (Z2Z, "cufftExecZ2Z", np.complex128))
REAL = (
    (R2C, C2R, "cufftExecR2C", "cufftExecC2R", np.float32, np.complex64),
    (D2Z, Z2D, "cufftExecD2Z", "cufftExecZ2D", np.float64, np.complex128),
)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("kind", "name", "dtype"), COMPLEX)
def test_complex(cuda: Cuda, cufft: Cufft, kind: int, name: str, dtype: Any, n: int) -> None:
    for batch in BATCHES:
        x = noise(n + batch, (batch, n), dtype)
        handle = cufft.plan_many((n,), kind, batch)
        wide = x.astype(np.complex128)
        out = ((batch, n), dtype)
        forward = execute(cuda, cufft, name, handle, x, out, FORWARD)
        check(forward, np.fft.fft(wide), n, dtype)
        backward = execute(cuda, cufft, name, handle, x, out, INVERSE)
        check(backward, np.fft.ifft(wide) * n, n, dtype)
        cufft.destroy(handle)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("r2c", "c2r", "forward", "backward", "real", "complex_"), REAL)
def test_real(
    cuda: Cuda, cufft: Cufft, r2c: int, c2r: int, forward: str, backward: str, real: Any,
    complex_: Any, n: int,
) -> None:  # fmt: skip
    half = n // 2 + 1
    for batch in BATCHES:
        x = noise(n + batch, (batch, n), real)
        handle = cufft.plan_many((n,), r2c, batch)
        got = execute(cuda, cufft, forward, handle, x, ((batch, half), complex_))
        check(got, np.fft.rfft(x.astype(float)), n, real)
        assert np.all(np.imag(got[:, 0]) == 0)
        cufft.destroy(handle)
        # The imaginary parts of the ends are there, and do not matter.
        z = noise(n * 31 + batch, (batch, half), complex_)
        handle = cufft.plan_many((n,), c2r, batch)
        back = execute(cuda, cufft, backward, handle, z, ((batch, n), real))
        check(back, np.fft.irfft(z.astype(complex), n) * n, n, real)
        cufft.destroy(handle)


@pytest.mark.parametrize("shape", [(3, 5), (16, 12), (1, 7), (97, 4), (64, 130), (2, 3, 4),
                                   (9, 16, 31), (1, 1, 1), (5, 1, 6), (33, 8, 10)])  # fmt: skip
def test_dimensions(cuda: Cuda, cufft: Cufft, shape: tuple[int, ...]) -> None:
    axes = tuple(range(1, len(shape) + 1))
    total = int(np.prod(shape))
    halved = (*shape[:-1], shape[-1] // 2 + 1)
    for batch in (1, 3):
        x = noise(total, (batch, *shape), np.complex64)
        wide = x.astype(complex)
        handle = cufft.plan_many(shape, C2C, batch)
        for direction, wanted in ((FORWARD, np.fft.fftn(wide, axes=axes)),
                                  (INVERSE, np.fft.ifftn(wide, axes=axes) * total)):  # fmt: skip
            got = execute(cuda, cufft, "cufftExecC2C", handle, x, (x.shape, x.dtype), direction)
            check(got.reshape(batch, -1), wanted.reshape(batch, -1), total, np.float32)
        cufft.destroy(handle)
        for r2c, c2r, forward, backward, real, complex_ in REAL:
            y = noise(total, (batch, *shape), real)
            spectrum = np.fft.rfftn(y.astype(float), axes=axes)
            handle = cufft.plan_many(shape, r2c, batch)
            got = execute(cuda, cufft, forward, handle, y, ((batch, *halved), complex_))
            check(got.reshape(batch, -1), spectrum.reshape(batch, -1), total, real)
            cufft.destroy(handle)
            handle = cufft.plan_many(shape, c2r, batch)
            z = spectrum.astype(complex_)
            back = execute(cuda, cufft, backward, handle, z, ((batch, *shape), real))
            check(
                back.reshape(batch, -1), (y.astype(float) * total).reshape(batch, -1), total, real
            )
            cufft.destroy(handle)


@pytest.mark.parametrize("shape", [(6,), (7,), (1000,), (3, 8), (4, 5), (3, 4, 6), (2, 3, 5)])
def test_real_in_place(cuda: Cuda, cufft: Cufft, shape: tuple[int, ...]) -> None:
    """A row of real numbers has the room of its complex ones; the plan is an ordinary one."""
    batch, n = 3, shape[-1]
    axes = tuple(range(1, len(shape) + 1))
    half = n // 2 + 1
    x = noise(n, (batch, *shape), np.float64)
    padded = np.full((batch, *shape[:-1], 2 * half), 99.0)
    padded[..., :n] = x
    memory = cuda.upload(padded)
    forward, backward = cufft.plan_many(shape, D2Z, batch), cufft.plan_many(shape, Z2D, batch)
    cufft.run("cufftExecD2Z", forward, memory, memory)
    spectrum = cuda.read(memory, (batch, *shape[:-1], half), np.complex128)
    wanted = np.fft.rfftn(x, axes=axes)
    total = int(np.prod(shape))
    check(spectrum.reshape(batch, -1), wanted.reshape(batch, -1), total, np.float64)
    cufft.run("cufftExecZ2D", backward, memory, memory)
    back = cuda.read(memory, padded.shape, np.float64)[..., :n]
    check(back.reshape(batch, -1), (x * total).reshape(batch, -1), total, np.float64)
    cuda.free(memory)


def test_advanced_layouts(cuda: Cuda, cufft: Cufft) -> None:
    """Storage larger than the transform, strides and distances; gaps stay as they were."""
    shape, batch = (3, 5), 4
    inside, outside = ((4, 7), 2, 61), ((3, 6), 3, 55)  # the last transform's end is within 300
    rng = np.random.default_rng(7)
    x = (rng.standard_normal(300) + 1j * rng.standard_normal(300)).astype(np.complex64)
    before = np.full(300, 5 - 3j, np.complex64)
    source, target = cuda.upload(x), cuda.upload(before)
    handle = cufft.plan_many(shape, C2C, batch, inside, outside)
    cufft.run("cufftExecC2C", handle, source, target, FORWARD)
    got = cuda.read(target, (300,), np.complex64)
    touched = np.zeros(300, bool)
    for b in range(batch):
        rows, columns = np.indices(shape)
        grid = x[b * 61 + 2 * (rows * 7 + columns)]
        at = b * 55 + 3 * (rows * 6 + columns)
        touched[at] = True
        check(got[at].reshape(1, -1), np.fft.fft2(grid).reshape(1, -1), 15, np.float32)
    assert (got[~touched] == before[~touched]).all()
    cuda.free(source, target)


def test_columns(cuda: Cuda, cufft: Cufft) -> None:
    """The transform of an array's columns: stride of a row, distance of one."""
    x = noise(3, (50, 37), np.complex128)
    memory = cuda.upload(x)
    handle = cufft.plan_many((50,), Z2Z, 37, ((50,), 37, 1), ((50,), 37, 1))
    cufft.run("cufftExecZ2Z", handle, memory, memory, FORWARD)
    got = cuda.read(memory, x.shape, x.dtype)
    check(got.T, np.fft.fft(x, axis=0).T, 50, np.float64)
    cuda.free(memory)


@pytest.mark.parametrize("shift", [0, 8, 40])
def test_overlapping_arrays(cuda: Cuda, cufft: Cufft, shift: int) -> None:
    """Both share memory in different layouts: as if the input were read first."""
    x = noise(4, (6, 20), np.complex64)
    memory = cuda.upload(x, 8192)
    handle = cufft.plan_many((20,), C2C, 6, ((20,), 1, 20), ((20,), 6, 1))
    cufft.run("cufftExecC2C", handle, memory, memory + shift, FORWARD)
    got = cuda.read(memory + shift, (20, 6), np.complex64)
    check(got.T, np.fft.fft(x.astype(complex)), 20, np.float32)
    cuda.free(memory)


@pytest.mark.parametrize("n", [1, 2, 8, 64, 1024])
@pytest.mark.parametrize("brain", [False, True])
def test_16_bits(cuda: Cuda, cufft: Cufft, n: int, brain: bool) -> None:
    """Computed as float and rounded once: half a unit of the last place, of each part."""
    tag = "B16" if brain else "16"

    def narrow(values: Array) -> Array:
        if not brain:
            return values.astype(np.float16).view(np.uint16)
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)

    def widen(bits: Array) -> Array:
        if not brain:
            return bits.view(np.float16).astype(np.float64)
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    parts = narrow(noise(n, (3, n, 2), np.float64))
    values = widen(parts)
    handle = cufft.plan_xt((n,), ("C" + tag, "C" + tag, "C" + tag), 3)
    got = widen(
        execute(cuda, cufft, "cufftXtExec", handle, parts, (parts.shape, np.uint16), FORWARD)
    )
    wanted = np.fft.fft(values[..., 0] + 1j * values[..., 1])
    unit = 2.0**-8 if brain else 2.0**-11
    error = np.abs(got[..., 0] + 1j * got[..., 1] - wanted).max()
    assert error <= 1.5 * unit * np.abs(wanted).max()
    real = cufft.plan_xt((n,), ("R" + tag, "C" + tag, "C" + tag), 3)
    lines = np.ascontiguousarray(parts[..., 0])
    half = execute(
        cuda, cufft, "cufftXtExec", real, lines, ((3, n // 2 + 1, 2), np.uint16), FORWARD
    )
    spectrum = np.fft.rfft(values[..., 0])
    wide = widen(half)
    assert (
        np.abs(wide[..., 0] + 1j * wide[..., 1] - spectrum).max()
        <= 1.5 * unit * np.abs(spectrum).max()
    )


def test_16_bits_of_other_lengths(cufft: Cufft) -> None:
    with pytest.raises(CufftError) as error:
        cufft.plan_xt((12,), ("C16", "C16", "C16"), 1)
    assert error.value.code == NOT_SUPPORTED


def test_every_way_to_a_plan(cuda: Cuda, cufft: Cufft) -> None:
    """cufftPlan1d to 3d, cufftMakePlan1d to Many64: the same numbers."""
    x = noise(9, (4, 6, 10), np.complex64)
    out = (x.shape, x.dtype)
    handle = c_int()
    size = c_longlong(-1)
    flat = np.fft.fft(x.reshape(24, 10).astype(complex)).reshape(x.shape)
    plane = np.fft.fft2(x.reshape(4, 60).astype(complex)).reshape(x.shape)
    solid = np.fft.fftn(x.astype(complex))
    ways: list[tuple[str, tuple[Any, ...], Array]] = [
        ("1d", (10, C2C, 24), flat),
        ("2d", (4, 60, C2C), plane),
        ("3d", (4, 6, 10, C2C), solid),
    ]
    for suffix, arguments, wanted in ways:
        cufft.call(f"cufftPlan{suffix}", byref(handle), *arguments)
        got = execute(cuda, cufft, "cufftExecC2C", handle, x, out, FORWARD)
        check(got.reshape(1, -1), wanted.reshape(1, -1), 240, np.float32)
        made = cufft.create()
        for name in ("cufftGetSize", "cufftMakePlan"):
            size.value = -1
            cufft.call(f"{name}{suffix}", made, *arguments, byref(size))
            assert size.value == 0
        got = execute(cuda, cufft, "cufftXtExec", made, x, out, FORWARD)
        check(got.reshape(1, -1), wanted.reshape(1, -1), 240, np.float32)
        cufft.call(f"cufftEstimate{suffix}", *arguments, byref(size))
    made = cufft.create()
    lengths = (c_longlong * 3)(4, 6, 10)
    one = c_longlong(1)
    zero = c_longlong(0)
    cufft.call("cufftMakePlanMany64", made, 3, lengths, None, one, zero, None, one, zero, C2C, one,
               byref(size))  # fmt: skip
    got = execute(cuda, cufft, "cufftExecC2C", made, x, out, FORWARD)
    check(got.reshape(1, -1), solid.reshape(1, -1), 240, np.float32)
