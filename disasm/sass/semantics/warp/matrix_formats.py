"""The formats of matrix elements, and the arithmetic that sums their products, by architecture.

Without NumPy, for the rules: the meanings are in ``matrix.py`` and ``warpgroup.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """An IEEE-like format; TF32 has the low 13 bits of its word cut off, E4M3 no infinities and one
    NaN of each sign."""

    width: int
    exponent: int
    mantissa: int
    cut: int = 0
    finite: bool = False

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1


F16, BF16 = Format(16, 5, 10), Format(16, 8, 7)
TF32, F32 = Format(32, 8, 10, 13), Format(32, 8, 23)
E4M3, E5M2 = Format(8, 4, 3, finite=True), Format(8, 5, 2)


@dataclass(frozen=True, slots=True)
class Core:
    """The arithmetic that sums one group of products and an addend.

    Each term is cut towards zero to ``extra`` bits below the unit of the largest exponent (of
    products the sum of both factors'), the terms are added exactly, and the sum is rounded:
    to binary32 towards zero, to binary16 to nearest.  Of a binary32 sum ``kept`` bits of the
    mantissa are left.
    """

    group: int
    extra: int
    kept: int = 23


# By architecture and the bits of an element.  Those of sm_90 were measured.  The others are from
# publications whose models were compared with the GPUs bit by bit (Xie et al., MMA-Sim,
# arXiv:2511.10909; Khattak and Mikaitis, arXiv:2512.07004); for sm_80, sm_86, sm_89 and sm_100
# :func:`.matrix.dot` gave all of the results that the latter recorded (docs/soundness.md).  What
# neither describes is not known.
_AMPERE = {16: Core(8, 24), 32: Core(4, 24)}
_HOPPER = {16: Core(16, 25), 32: Core(8, 25)}
CORES: Mapping[int, Mapping[int, Core]] = {
    75: {16: Core(8, 24)},
    **dict.fromkeys((80, 86, 87, 88), _AMPERE),
    89: {8: Core(16, 13, kept=13), **_AMPERE},
    90: _HOPPER,
    100: _HOPPER,
    120: {8: Core(32, 25), **_HOPPER},
}
# Of a warpgroup's products, by the bits of an element; measured on an H100.
WARPGROUP_CORES: Mapping[int, Core] = {
    16: Core(16, 25),
    32: Core(8, 25),
    8: Core(32, 13, kept=13),
}

__all__ = [
    "BF16",
    "CORES",
    "E4M3",
    "E5M2",
    "F16",
    "F32",
    "TF32",
    "WARPGROUP_CORES",
    "Core",
    "Format",
]
