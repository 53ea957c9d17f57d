"""FFTW's interface of libcufftw beside NumPy: all ways to a plan, in place, loops of transforms."""

from __future__ import annotations

import ctypes
from collections.abc import Generator
from contextlib import contextmanager
from ctypes import c_int, c_ssize_t, c_void_p
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from .cufft_api import ints, library_folder

Array = NDArray[Any]
ESTIMATE = 1


@pytest.fixture(scope="module", params=[11, 12])
def fftw(request: pytest.FixtureRequest) -> ctypes.CDLL:
    """Both libraries."""
    path = library_folder() / "cufft" / f"libcufftw.so.{request.param}"
    if not path.is_file():
        pytest.skip(f"{path.name} is not built (runtime_shim/native/build.sh)")
    return ctypes.CDLL(str(path))


@contextmanager
def planned(
    fftw: ctypes.CDLL, name: str, *arguments: Any, single: bool = False
) -> Generator[c_void_p]:
    """A plan that is not null, destroyed at the end; arrays are passed by address."""
    prefix = "fftwf" if single else "fftw"
    function = getattr(fftw, f"{prefix}_plan_{name}")
    function.restype = c_void_p
    plan = c_void_p(function(*map(passed, arguments), ESTIMATE))
    assert plan.value, name
    yield plan
    getattr(fftw, f"{prefix}_destroy_plan")(plan)


def passed(argument: Any) -> Any:
    """How ctypes passes it."""
    return c_void_p(argument.ctypes.data) if isinstance(argument, np.ndarray) else argument


def noise(*shape: int) -> NDArray[np.complex128]:
    """Complex numbers."""
    rng = np.random.default_rng(len(shape))
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.parametrize("shape", [(12,), (97,), (6, 5), (3, 4, 8)])
@pytest.mark.parametrize("sign", [-1, 1])
def test_complex(fftw: ctypes.CDLL, shape: tuple[int, ...], sign: int) -> None:
    x = noise(*shape)
    wanted = np.fft.fftn(x) if sign < 0 else np.fft.ifftn(x) * x.size
    rank = len(shape)
    for name, lengths in ((f"dft_{rank}d", shape), ("dft", (rank, ints(shape)))):
        y = np.zeros_like(x)
        with planned(fftw, name, *lengths, x, y, sign) as plan:
            fftw.fftw_execute(plan)
            assert np.allclose(y, wanted)
            other, mine = noise(*shape) * 2, np.zeros_like(x)
            fftw.fftw_execute_dft(plan, passed(other), passed(mine))
            assert np.allclose(mine, wanted * 2)
    small, got = x.astype(np.complex64), np.zeros(shape, np.complex64)
    with planned(fftw, f"dft_{rank}d", *shape, small, got, sign, single=True) as plan:
        fftw.fftwf_execute(plan)
        assert np.allclose(got, wanted, atol=1e-4)


@pytest.mark.parametrize("shape", [(12,), (7,), (6, 5), (3, 4, 8)])
def test_real(fftw: ctypes.CDLL, shape: tuple[int, ...]) -> None:
    rank, n = len(shape), shape[-1]
    half = (*shape[:-1], n // 2 + 1)
    x = np.ascontiguousarray(np.real(noise(*shape)))
    y, back = np.zeros(half, complex), np.zeros(shape)
    with planned(fftw, f"dft_r2c_{rank}d", *shape, x, y) as plan:
        fftw.fftw_execute(plan)
    assert np.allclose(y, np.fft.rfftn(x))
    with planned(fftw, f"dft_c2r_{rank}d", *shape, y, back) as plan:
        fftw.fftw_execute(plan)
    assert np.allclose(back, x * x.size)
    padded = np.zeros((*shape[:-1], 2 * (n // 2 + 1)))
    padded[..., :n] = x
    with planned(fftw, "dft_r2c", rank, ints(shape), padded, padded) as plan:
        fftw.fftw_execute(plan)
    assert np.allclose(padded.view(complex), y)
    with planned(fftw, "dft_c2r", rank, ints(shape), padded, padded) as plan:
        fftw.fftw_execute(plan)
    assert np.allclose(padded[..., :n], x * x.size)


def test_many(fftw: ctypes.CDLL) -> None:
    """The columns of an array: strides count without embeddings, too."""
    x = noise(10, 6)
    y = np.zeros_like(x)
    with planned(fftw, "many_dft", 1, ints((10,)), 6, x, None, 6, 1, y, None, 6, 1, -1) as plan:
        fftw.fftw_execute(plan)
    assert np.allclose(y, np.fft.fft(x, axis=0))
    wide = noise(2, 5, 9)  # transforms of 3 by 4 within 5 by 9
    small = np.zeros((2, 3, 4), complex)
    with planned(fftw, "many_dft", 2, ints((3, 4)), 2, wide, ints((5, 9)), 1, 45, small,
                 ints((3, 4)), 1, 12, -1) as plan:  # fmt: skip
        fftw.fftw_execute(plan)
    assert np.allclose(small, np.fft.fft2(wide[:, :3, :4]))


@pytest.mark.parametrize(("name", "number"), [("guru", c_int), ("guru64", c_ssize_t)])
def test_guru(fftw: ctypes.CDLL, name: str, number: Any) -> None:
    """The middle dimension of five; the others are loops, and the output is turned around."""
    x = noise(2, 3, 8, 4)
    y = np.zeros((4, 8, 3, 2), complex)
    step, turn = [s // 16 for s in x.strides], [s // 16 for s in y.strides][::-1]
    dims = (number * 3)(8, step[2], turn[2])
    batch = (number * 9)(*(v for d in (0, 1, 3) for v in (x.shape[d], step[d], turn[d])))
    with planned(fftw, f"{name}_dft", 1, dims, 3, batch, x, y, -1) as plan:
        fftw.fftw_execute(plan)
    assert np.allclose(y.transpose(), np.fft.fft(x, axis=2))


def test_what_cannot_be_planned(fftw: ctypes.CDLL) -> None:
    x = noise(16)
    fftw.fftw_plan_dft_1d.restype = c_void_p
    fftw.fftw_plan_dft.restype = c_void_p
    assert fftw.fftw_plan_dft_1d(0, passed(x), passed(x), -1, ESTIMATE) is None
    assert fftw.fftw_plan_dft_1d(-4, passed(x), passed(x), -1, ESTIMATE) is None
    assert fftw.fftw_plan_dft_1d(4, passed(x), passed(x), 2, ESTIMATE) is None
    assert fftw.fftw_plan_dft_1d(4, None, passed(x), -1, ESTIMATE) is None
    assert fftw.fftw_plan_dft(4, ints((2, 2, 2, 2)), passed(x), passed(x), -1, ESTIMATE) is None
    assert fftw.fftw_plan_dft(0, ints((2,)), passed(x), passed(x), -1, ESTIMATE) is None
    huge = 2**31 - 1
    assert fftw.fftw_plan_dft(3, ints((huge,) * 3), passed(x), passed(x), -1, ESTIMATE) is None
    fftw.fftw_execute(None)
    fftw.fftw_destroy_plan(None)
