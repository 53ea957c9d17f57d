"""The domain of the interpreter: NumPy lanes, with shortcuts for the most frequent operations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassxlate.domain.interface import IEEE, Fp, Round
from sassxlate.domain.numpy_lanes import Vec, Vectors, to_float

_TINY = 2.0**-125
_QUIET = np.uint64(0x7FC00000)
F = NDArray[np.float64]


def _narrow(x: F) -> Vec:
    """A binary64 number rounded once to the nearest binary32."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return Vec(np.where(np.isnan(x), _QUIET, bits), 32)


def _odd(a: F, b: F) -> F:
    """a + b of binary64 numbers, rounded to odd."""
    s = a + b
    near = s - a
    error = (a - (s - near)) + (b - near)
    inexact = (error != 0) & np.isfinite(error) & np.isfinite(s)
    if not inexact.any():
        return s
    bits = s.view(np.uint64)
    cut = np.where((error < 0) != (s < 0), bits - np.uint64(1), bits) | np.uint64(1)
    return np.where(inexact, cut, bits).view(np.float64)


def _product(a: F, b: F) -> tuple[F, F]:
    """a * b as a sum of two binary64 numbers (Dekker)."""
    p = a * b
    parts: list[tuple[F, F]] = []
    for x in (a, b):
        t = x * 134217729.0  # 2 ** 27 + 1
        high = t - (t - x)
        parts.append((high, x - high))
    (ah, al), (bh, bl) = parts
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _sum(a: F, b: F) -> tuple[F, F]:
    """a + b as a sum of two binary64 numbers (Knuth)."""
    s = a + b
    near = s - a
    return s, (a - (s - near)) + (b - near)


_LOW, _HIGH = 2.0**-400, 2.0**400


def _moderate(x: F) -> NDArray[np.bool_]:
    size = np.abs(x)
    inside: NDArray[np.bool_] = (size > _LOW) & (size < _HIGH)
    return inside


def _fma(a: F, b: F, c: F) -> F:
    """a * b + c to nearest even, of moderate numbers (Boldo and Melquiond 2008)."""
    high, low = _product(a, b)
    th, tl = _sum(c, low)
    vh, vl = _sum(high, th)
    return vh + _odd(tl, vl)


class Lanes(Vectors):
    """``Vectors``, with rounding to nearest even done by the processor if that is exact.

    Operations that may underflow or overflow use ``Vectors``; a test checks that both agree.
    """

    def fadd(self, a: Vec, b: Vec, fp: Fp) -> Vec:
        if a.w == 32 and fp.round == Round.NEAREST:
            with np.errstate(all="ignore"):
                x = _odd(to_float(a), to_float(b))
                if not _flushes(fp, x, a, b):
                    return _narrow(x)
        if a.w == 64 and fp.round != Round.NEAREST:
            shape = np.broadcast_shapes(a.v.shape, b.v.shape)
            p, q = _lines(a, b)
            return _shaped(super().fadd(p, q, fp), shape)
        return super().fadd(a, b, fp)

    def fmul(self, a: Vec, b: Vec, fp: Fp) -> Vec:
        if a.w == 32 and fp.round == Round.NEAREST:
            with np.errstate(all="ignore"):
                x = to_float(a) * to_float(b)
                if not _flushes(fp, x, a, b):
                    return _narrow(x)
        if a.w == 64 and fp.round != Round.NEAREST:
            shape = np.broadcast_shapes(a.v.shape, b.v.shape)
            p, q = _lines(a, b)
            return _shaped(super().fmul(p, q, fp), shape)
        return super().fmul(a, b, fp)

    def ffma(self, a: Vec, b: Vec, c: Vec, fp: Fp) -> Vec:
        if a.w == 64:
            return self._fma64(a, b, c, fp)
        if a.w == 32 and fp.round == Round.NEAREST:
            with np.errstate(all="ignore"):
                x = _odd(to_float(a) * to_float(b), to_float(c))
                if not _flushes(fp, x, a, b, c):
                    return _narrow(x)
        return super().ffma(a, b, c, fp)

    def _fma64(self, a: Vec, b: Vec, c: Vec, fp: Fp) -> Vec:
        shape = np.broadcast_shapes(a.v.shape, b.v.shape, c.v.shape)
        a, b, c = _lines(a, b, c)
        if fp != IEEE:
            return _shaped(super().ffma(a, b, c, fp), shape)
        with np.errstate(all="ignore"):
            x, y, z = to_float(a), to_float(b), to_float(c)
            out = _fma(x, y, z)
            good = _moderate(x) & _moderate(y) & (_moderate(z) | (z == 0)) & _moderate(out)
        bits = out.view(np.uint64)
        if not good.all():
            rest = ~good
            a, b, c = (Vec(v.v[rest], 64) for v in (a, b, c))
            bits[rest] = super().ffma(a, b, c, fp).v
        return _shaped(Vec(bits, 64), shape)


def _lines(*values: Vec) -> tuple[Vec, ...]:
    """Values broadcast to one shape, in one dimension."""
    arrays = np.broadcast_arrays(*(v.v for v in values))
    lines = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    return tuple(Vec(line, v.w) for line, v in zip(lines, values, strict=True))


def _shaped(value: Vec, shape: tuple[int, ...]) -> Vec:
    return Vec(value.v.reshape(shape), value.w)


def _flushes(fp: Fp, result: F, *sources: Vec) -> bool:
    """Whether a denormal number may be flushed."""
    if fp.flush_in and any(_denormal(s) for s in sources):
        return True
    return fp.flush_out and bool(((np.abs(result) < _TINY) & (result != 0)).any())


def _denormal(a: Vec) -> bool:
    size = a.v & np.uint64(0x7FFFFFFF)
    return bool(((size - np.uint64(1)) < np.uint64(0x7FFFFF)).any())
