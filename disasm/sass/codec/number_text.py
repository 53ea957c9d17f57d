"""Numbers as nvdisasm prints them."""

from __future__ import annotations

import math
import struct

_BIG = 1e9  # from here on nvdisasm prints an exponent and all twenty digits


def number(value: float) -> str:
    """A finite double, or -0."""
    if value == 0 and math.copysign(1.0, value) < 0:
        return "-0.0 "
    return f"{value:.20e}" if abs(value) >= _BIG else f"{value:.20g}"


def _special(negative: bool, mantissa: int, quiet: bool) -> str:
    sign = "-" if negative else "+"
    if mantissa == 0:
        return f"{sign}INF "
    return f"{sign}{'QNAN' if quiet else 'SNAN'} "


def f32(raw: int) -> str:
    """The text of an fp32 immediate given as its bits."""
    if raw >> 23 & 0xFF == 0xFF:
        return _special(bool(raw >> 31), raw & 0x7FFFFF, bool(raw >> 22 & 1))
    return number(struct.unpack("<f", raw.to_bytes(4, "little"))[0])


def f64(raw: int) -> str:
    """The text of an fp64 immediate given as its 64 bits."""
    if raw >> 52 & 0x7FF == 0x7FF:
        return _special(bool(raw >> 63), raw & (1 << 52) - 1, bool(raw >> 51 & 1))
    return number(struct.unpack("<d", raw.to_bytes(8, "little"))[0])


def f16(raw: int) -> str:
    """The text of an fp16 immediate given as its 16 bits."""
    if raw >> 10 & 0x1F == 0x1F:
        return _special(bool(raw >> 15), raw & 0x3FF, bool(raw >> 9 & 1))
    return number(struct.unpack("<e", raw.to_bytes(2, "little"))[0])


def bf16(raw: int) -> str:
    """The text of a bf16 immediate given as its 16 bits."""
    return f32(raw << 16)


def signed(value: int, width: int) -> int:
    """The two's complement reading of a field."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def shex(value: int) -> str:
    """Signed hexadecimal: ``-0x20``."""
    return f"-{-value:#x}" if value < 0 else f"{value:#x}"
