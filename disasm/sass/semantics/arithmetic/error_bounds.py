"""Error bounds of the multi-function unit: the vendor's own statements.

PTX's manual (ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh with .approx), or tighter bounds where an
H200 was measured to meet them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

# Largest distances in units of the last place, absolute, or relative.  RCP64H and RSQ64H give the
# high word of a double.
ULPS: Mapping[str, int] = {"RCP": 1, "RSQ": 1, "SQRT": 1, "EX2": 2, "RCP64H": 1, "RSQ64H": 1}
ABSOLUTE: Mapping[str, float] = {"SIN": 2.0**-21, "COS": 2.0**-21, "LG2": 2.0**-22}
RELATIVE: Mapping[str, float] = {"TANH": 2.0**-16}
_HALVES = ("F16", "BF16")


def near(modifiers: Sequence[str], actual: Words, real: Words) -> NDArray[np.bool_]:
    """Which of the results are within the bounds of a function of MUFU, or both NaN.

    ``modifiers`` name the function, then the format: binary32, or with .F16 and .BF16 a half in the
    low bits, with .F16x2 and .BF16x2 two.
    """
    function = modifiers[0]
    pair = next((m for m in modifiers if m.endswith("x2")), "")
    if pair:  # each half by itself
        one = [pair.removesuffix("x2") if m == pair else m for m in modifiers]
        halves = ([w & np.uint32(0xFFFF), w >> np.uint32(16)] for w in (actual, real))
        low, high = (near(one, a, b) for a, b in zip(*halves, strict=True))
        both: NDArray[np.bool_] = low & high
        return both
    kind = next((m for m in modifiers if m in _HALVES), "")
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and infinities less infinities
        a, r = (_numbers(words, kind) for words in (actual, real))
        distance = np.abs(a - r)
        close: NDArray[np.bool_] = distance <= RELATIVE.get(function, 0.0) * np.abs(r)
        if kind:
            close = np.abs(_order(actual) - _order(real)) <= 1
            if function in ("SIN", "COS"):
                close |= distance <= ABSOLUTE[function]
        elif function in ULPS:
            close = np.abs(actual.astype(np.int64) - real.astype(np.int64)) <= ULPS[function]
        elif function == "LG2":  # the larger of the bound and one unit in the last place
            close = distance <= np.maximum(ABSOLUTE["LG2"], np.abs(r) * 2.0**-22)
        elif function in ABSOLUTE:
            close = distance <= ABSOLUTE[function]
    same: NDArray[np.bool_] = (actual == real) | (np.isnan(a) & np.isnan(r))
    if kind:
        same |= close & (actual >> np.uint32(16) == real >> np.uint32(16))
        return same
    return same | close


def _numbers(words: Words, kind: str) -> NDArray[np.float64]:
    if kind == "F16":
        return words.astype(np.uint16).view(np.float16).astype(np.float64)
    if kind == "BF16":
        words = words << np.uint32(16)
    return words.view(np.float32).astype(np.float64)


def _order(words: Words) -> NDArray[np.int64]:
    """Halves as integers that are adjacent if the halves are."""
    size = (words & np.uint32(0x7FFF)).astype(np.int64)
    return np.where(words & np.uint32(0x8000), -size, size)
