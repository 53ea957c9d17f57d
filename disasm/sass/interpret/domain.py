"""The domain of the interpreter: NumPy lanes, with short cuts for what programs do most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sassxlate.domain import Fp, Round
from sassxlate.vectors import Vec, Vectors, to_float

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


class Lanes(Vectors):
    """``Vectors``, with binary32 to nearest even done by the processor's own conversion.

    What may underflow takes the way of ``Vectors``; that both agree is a test.
    """

    def fadd(self, a: Vec, b: Vec, fp: Fp) -> Vec:
        if a.w == 32 and fp.round == Round.NEAREST:
            with np.errstate(all="ignore"):
                x = _odd(to_float(a), to_float(b))
                if not _flushes(fp, x, a, b):
                    return _narrow(x)
        return super().fadd(a, b, fp)

    def fmul(self, a: Vec, b: Vec, fp: Fp) -> Vec:
        if a.w == 32 and fp.round == Round.NEAREST:
            with np.errstate(all="ignore"):
                x = to_float(a) * to_float(b)
                if not _flushes(fp, x, a, b):
                    return _narrow(x)
        return super().fmul(a, b, fp)

    def ffma(self, a: Vec, b: Vec, c: Vec, fp: Fp) -> Vec:
        if a.w == 32 and fp.round == Round.NEAREST:
            with np.errstate(all="ignore"):
                x = _odd(to_float(a) * to_float(b), to_float(c))
                if not _flushes(fp, x, a, b, c):
                    return _narrow(x)
        return super().ffma(a, b, c, fp)


def _flushes(fp: Fp, result: F, *sources: Vec) -> bool:
    """Whether a denormal number may be flushed."""
    if fp.flush_in and any(_denormal(s) for s in sources):
        return True
    return fp.flush_out and bool(((np.abs(result) < _TINY) & (result != 0)).any())


def _denormal(a: Vec) -> bool:
    size = a.v & np.uint64(0x7FFFFFFF)
    return bool(((size - np.uint64(1)) < np.uint64(0x7FFFFF)).any())
