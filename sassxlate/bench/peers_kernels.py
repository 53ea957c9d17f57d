"""The ten kernels of `bench peers`: their arguments, grids, and what they must compute."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
_TILE, _BLOCK = 16, 256


@dataclass(frozen=True, slots=True, eq=False)
class PeerKernel:
    """A kernel and one launch of it; ``output`` is the number of the argument that it writes, of
    which ``expected`` is the content after the first launch, within a relative ``tolerance``."""

    name: str
    grid: tuple[int, int]
    block: tuple[int, int]
    arguments: tuple[Array | int, ...]
    output: int
    expected: Array
    tolerance: float = 0.0

    @property
    def arrays(self) -> dict[int, Array]:
        """The arguments that are arrays, by number."""
        return {n: a for n, a in enumerate(self.arguments) if not isinstance(a, int)}

    def wrong(self, found: Array) -> str:
        """How the output differs from what is expected; "" if it does not."""
        wanted = self.expected.ravel().astype(np.float64)
        scale = float(np.abs(wanted).max()) or 1.0
        worst = float(np.abs(found.ravel().astype(np.float64) - wanted).max())
        if not worst <= self.tolerance * scale:
            return f"off by {worst:.3g}, of at most {scale:.3g}"
        return ""


def _tiles(n: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (n // _TILE, n // _TILE), (_TILE, _TILE)


def _lines(n: int) -> tuple[tuple[int, int], tuple[int, int]]:
    return (n // _BLOCK, 1), (_BLOCK, 1)


@cache
def peer_kernel(name: str) -> PeerKernel:
    """One of `NAMES`, with seeded inputs; sizes are multiples of the blocks."""
    return _MAKERS[name](np.random.default_rng(7))


def _floats(rng: np.random.Generator, *shape: int) -> Array:
    return rng.random(shape, dtype=np.float32)


def _matmul(rng: np.random.Generator) -> PeerKernel:
    n = 256
    a, b = _floats(rng, n, n), _floats(rng, n, n)
    return PeerKernel("matmul", *_tiles(n), (a, b, np.zeros_like(a), n), 2, a @ b, 1e-5)


def _transpose(rng: np.random.Generator) -> PeerKernel:
    n = 1024
    a = _floats(rng, n, n)
    return PeerKernel("transpose", *_tiles(n), (a, np.zeros_like(a), n), 1, a.T.copy())


def _stencil(rng: np.random.Generator) -> PeerKernel:
    n = 1024
    a = _floats(rng, n, n)
    out = np.zeros_like(a)
    near = a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]
    expected = out.copy()
    expected[1:-1, 1:-1] = 0.5 * a[1:-1, 1:-1] + 0.125 * near
    return PeerKernel("stencil", *_tiles(n), (a, out, n), 1, expected, 1e-6)


def _reduction(rng: np.random.Generator) -> PeerKernel:
    n, blocks = 1 << 20, 64
    a = _floats(rng, n)
    expected = a.astype(np.float64).reshape(-1, blocks, _BLOCK).sum(axis=(0, 2))
    out = np.zeros(blocks, np.float32)
    return PeerKernel("reduction", (blocks, 1), (_BLOCK, 1), (a, out, n), 1, expected, 1e-5)


def _scan(rng: np.random.Generator) -> PeerKernel:
    n = 1 << 18
    a = _floats(rng, n)
    expected = a.reshape(-1, _BLOCK).astype(np.float64).cumsum(axis=1)
    return PeerKernel("scan", *_lines(n), (a, np.zeros_like(a), n), 1, expected, 1e-5)


def _histogram(rng: np.random.Generator) -> PeerKernel:
    n, blocks = 1 << 19, 64
    a = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    bins = np.zeros(_BLOCK, np.uint32)
    expected = np.bincount(a & 255, minlength=_BLOCK)
    return PeerKernel("histogram", (blocks, 1), (_BLOCK, 1), (a, bins, n), 1, expected)


def _nbody(rng: np.random.Generator) -> PeerKernel:
    n = 2048
    bodies = _floats(rng, n, 4)
    apart = bodies[None, :, :3].astype(np.float64) - bodies[:, None, :3]
    inverse = (np.square(apart).sum(axis=2) + 0.01) ** -1.5
    expected = (apart * (inverse * bodies[None, :, 3])[:, :, None]).sum(axis=1)
    out = np.zeros((n, 3), np.float32)
    return PeerKernel("nbody", *_lines(n), (bodies, out, n), 1, expected, 1e-4)


def _black_scholes(rng: np.random.Generator) -> PeerKernel:
    n = 1 << 18
    price, strike = 5 + 25 * _floats(rng, n), 1 + 99 * _floats(rng, n)
    years, rate, volatility = 1.5, 0.02, 0.3
    spread = volatility * math.sqrt(years)
    s, x = price.astype(np.float64), strike.astype(np.float64)
    d1 = (np.log(s / x) + (rate + 0.5 * volatility**2) * years) / spread

    def normal(d: Array) -> Array:
        k = 1 / (1 + 0.2316419 * np.abs(d))
        poly = np.zeros_like(k)
        for c in (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153):
            poly = k * (c + poly)
        tail = 0.39894228 * np.exp(-0.5 * d * d) * poly
        return np.where(d > 0, 1 - tail, tail)

    expected = s * normal(d1) - x * math.exp(-rate * years) * normal(d1 - spread)
    out = np.zeros(n, np.float32)
    return PeerKernel("blackscholes", *_lines(n), (price, strike, out, n), 2, expected, 1e-5)


def _spmv(rng: np.random.Generator) -> PeerKernel:
    n = 1 << 15
    counts = rng.integers(4, 28, n)
    starts = np.concatenate([[0], counts.cumsum()]).astype(np.int32)
    columns = rng.integers(0, n, int(starts[-1]), dtype=np.int32)
    values, x = _floats(rng, int(starts[-1])), _floats(rng, n)
    expected = np.add.reduceat(values.astype(np.float64) * x[columns], starts[:-1])
    y = np.zeros(n, np.float32)
    return PeerKernel("spmv", *_lines(n), (starts, columns, values, x, y, n), 4, expected, 1e-5)


def _sort(rng: np.random.Generator) -> PeerKernel:
    n = 1 << 17
    a = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    runs = a.reshape(-1, 2 * _BLOCK)
    expected = np.sort(runs, axis=1)
    grid, block = _lines(n // 2)
    return PeerKernel("sort", grid, block, (a, np.zeros_like(a), n), 1, expected)


_MAKERS: dict[str, Callable[[np.random.Generator], PeerKernel]] = {
    "matmul": _matmul,
    "transpose": _transpose,
    "stencil": _stencil,
    "reduction": _reduction,
    "scan": _scan,
    "histogram": _histogram,
    "nbody": _nbody,
    "blackscholes": _black_scholes,
    "spmv": _spmv,
    "sort": _sort,
}
NAMES = tuple(_MAKERS)  # of all ten; what one must compute takes up to a second to find

__all__ = ["NAMES", "Array", "PeerKernel", "peer_kernel"]
