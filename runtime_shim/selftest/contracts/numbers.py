"""Words as the numbers that they encode: exact arithmetic for ``kernel_rules``."""

from __future__ import annotations

import math
import struct

import numpy as np

M32, M64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF


def signed(word: int, bits: int = 32) -> int:
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> (bits - 1) else word


def f32(word: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", word & M32))[0])


def word(value: float | np.float32) -> int:
    return int(np.float32(value).view(np.uint32))


def f64(low: int, high: int) -> float:
    return float(struct.unpack("<d", struct.pack("<II", low, high))[0])


def double_words(value: float) -> list[int]:
    return list(struct.unpack("<II", struct.pack("<d", value)))


def ratio(value: float) -> tuple[int, int]:
    return value.as_integer_ratio()


def round_to_f32(sign: int, numerator: int, denominator: int, *, down: bool = False) -> int:
    """The word of (-1)^sign * numerator/denominator: to nearest even, or towards zero (down)."""
    if numerator == 0:
        return sign << 31
    exponent = numerator.bit_length() - denominator.bit_length()
    if (numerator << max(-exponent, 0)) < (denominator << max(exponent, 0)):
        exponent -= 1
    exponent = max(exponent, -126)
    shift = 23 - exponent
    top, bottom = numerator << max(shift, 0), denominator << max(-shift, 0)
    significand, rest = divmod(top, bottom)
    if not down and (2 * rest > bottom or (2 * rest == bottom and significand & 1)):
        significand += 1
    if significand >= 1 << 24:
        significand >>= 1
        exponent += 1
    if exponent > 127:
        return sign << 31 | (0x7F7FFFFF if down else 0x7F800000)
    biased = exponent + 127 if significand >= 1 << 23 else 0
    return sign << 31 | biased << 23 | (significand & 0x7FFFFF)


def fma32(x: float, y: float, z: float) -> int:
    """fma of three floats as a word; special values by the rules of FP64, which has them all."""
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        with np.errstate(all="ignore"):
            return word(np.float32(np.float64(x) * np.float64(y) + np.float64(z)))
    xn, xd = ratio(x)
    yn, yd = ratio(y)
    zn, zd = ratio(z)
    numerator, denominator = xn * yn * zd + zn * xd * yd, xd * yd * zd
    if numerator == 0:
        return word(np.float32(np.float64(x) * np.float64(y) + np.float64(z)))
    return round_to_f32(int(numerator < 0), abs(numerator), denominator)


def fma64(x: float, y: float, z: float) -> float:
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
        with np.errstate(all="ignore"):
            return float(np.float64(x) * np.float64(y) + np.float64(z))
    xn, xd = ratio(x)
    yn, yd = ratio(y)
    zn, zd = ratio(z)
    numerator, denominator = xn * yn * zd + zn * xd * yd, xd * yd * zd
    if numerator == 0:
        return x * y + z
    try:
        return numerator / denominator  # Python rounds the quotient of integers only once
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def saturate(value: float, low: int, high: int, nan: int, *, nearest: bool = False) -> int:
    if math.isnan(value):
        return nan
    if math.isinf(value):
        return high if value > 0 else low
    whole = round(value) if nearest else math.trunc(value)  # round() rounds to even
    return min(max(whole, low), high)


def half(word: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", word & 0xFFFF))[0])


def to_half(value: float) -> int:
    with np.errstate(all="ignore"):
        return int(np.float16(value).view(np.uint16))
