"""Which multiprocessor a block runs on (``%smid`` of PTX).

PTX promises a number below ``%nsmid`` that may change at any time.  Programs count on more: that it
is one for all threads of a block, and that a grid of no more blocks than there are multiprocessors
has each on its own.  Here blocks go round: it is the block's number modulo that of multiprocessors.
"""

from __future__ import annotations

from typing import Final, TypeVar

from sassxlate.domain.interface import Domain

T = TypeVar("T")

NAME: Final = "SR_VIRTUALSMID"
COUNT: Final = 48  # that the emulated device reports, where nothing else is asked of it


def reciprocal(count: int) -> int:
    """What :func:`multiprocessor` divides by, for 1 to 2**31 multiprocessors: 32 bits."""
    return min((1 << 32) // count, 0xFFFFFFFF)


def multiprocessor(
    d: Domain[T], block: tuple[T, T, T], grid: tuple[T, T], count: T, inverse: T
) -> T:
    """The multiprocessor of a block: its coordinates, the grid's x and y, the number of
    multiprocessors and its :func:`reciprocal`; all of 32 bits.

    The quotient is found by the high half of a product, which is at most one too small: the
    reciprocal is rounded down by less than one, and the block's number is below 2**32.
    """
    x, y, z = block
    number = d.add(d.mul(d.add(d.mul(z, grid[1]), y), grid[0]), x)
    product = d.mul(d.zext(number, 64), d.zext(inverse, 64))
    rest = d.sub(number, d.mul(d.extract(product, 32, 32), count))
    return d.select(d.ult(rest, count), rest, d.sub(rest, count))
