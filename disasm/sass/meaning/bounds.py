"""How far the multi-function unit may be from the exact value: the vendor's own statements.

PTX's manual (ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh with .approx), or tighter where an H200 was
measured to be.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

# Largest distances in units of the last place, absolute, or relative.  RCP64H and RSQ64H give the
# high word of a double.
ULPS: Mapping[str, int] = {"RCP": 1, "RSQ": 1, "SQRT": 1, "EX2": 2, "RCP64H": 1, "RSQ64H": 1}
ABSOLUTE: Mapping[str, float] = {"SIN": 2.0**-21, "COS": 2.0**-21, "LG2": 2.0**-22}
RELATIVE: Mapping[str, float] = {"TANH": 2.0**-11}


def near(function: str, actual: Words, real: Words) -> NDArray[np.bool_]:
    """Which of the binary32 patterns are within the bounds of a function of MUFU, or both NaN."""
    with np.errstate(invalid="ignore", over="ignore"):  # NaN, and infinities less infinities
        a = actual.view("<f4").astype(np.float64)
        r = real.view("<f4").astype(np.float64)
        distance = np.abs(a - r)
        close: NDArray[np.bool_] = distance <= RELATIVE.get(function, 0.0) * np.abs(r)
        if function in ULPS:
            close = np.abs(actual.astype(np.int64) - real.astype(np.int64)) <= ULPS[function]
        elif function == "LG2":  # the larger of the bound and one unit in the last place
            close = distance <= np.maximum(ABSOLUTE["LG2"], np.abs(r) * 2.0**-22)
        elif function in ABSOLUTE:
            close = distance <= ABSOLUTE[function]
    same: NDArray[np.bool_] = (actual == real) | (np.isnan(a) & np.isnan(r))
    return same | close
