"""IEEE arithmetic on bit patterns in plain integers: every rounding, denormals kept or flushed.

Written only for the witness: it shares no code with the semantics and their evaluators.  A finite
number is (sign, n, e): n * 2 ** e.  Rounding modes are MODE's numbers: 0 nearest even, 1 up,
2 down, 3 towards zero.  Flags, as everywhere here, are not kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

NEAREST, UP, DOWN, ZERO = range(4)


@dataclass(frozen=True, slots=True)
class Format:
    """A binary interchange format: exponent and fraction bits."""

    width: int
    exponent: int
    fraction: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1

    @property
    def top(self) -> int:
        """The exponent field of infinities and NaNs."""
        return (1 << self.exponent) - 1

    @property
    def infinity(self) -> int:
        return self.top << self.fraction

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def nan(self) -> int:
        return self.infinity | 1 << (self.fraction - 1)


FORMATS = {16: Format(16, 5, 10), 32: Format(32, 8, 23), 64: Format(64, 11, 52)}
BF16 = Format(16, 8, 7)


@dataclass(frozen=True, slots=True)
class Rules:
    """Rounding, and whether denormal inputs and results become zeros of their sign."""

    round: int = NEAREST
    flush_in: bool = False
    flush_out: bool = False


def field(f: Format, a: int) -> int:
    return a >> f.fraction & f.top


def is_nan(f: Format, a: int) -> bool:
    return a & (f.sign - 1) > f.infinity


def is_signalling(f: Format, a: int) -> bool:
    return is_nan(f, a) and not a >> (f.fraction - 1) & 1


def is_inf(f: Format, a: int) -> bool:
    return a & (f.sign - 1) == f.infinity


def is_denormal(f: Format, a: int) -> bool:
    return field(f, a) == 0 and a & (f.sign - 1) != 0


def is_zero(f: Format, a: int) -> bool:
    return a & (f.sign - 1) == 0


def negative(f: Format, a: int) -> bool:
    return bool(a & f.sign)


def quiet(f: Format, a: int) -> int:
    return a | 1 << (f.fraction - 1)


def flushed(f: Format, a: int, on: bool) -> int:
    return a & f.sign if on and is_denormal(f, a) else a


def unpack(f: Format, a: int) -> tuple[int, int]:
    """The signed n and e of a finite number."""
    e, n = field(f, a), a & ((1 << f.fraction) - 1)
    if e:
        n |= 1 << f.fraction
    return (-n if a & f.sign else n), max(e, 1) - f.bias - f.fraction


def pack(f: Format, n: int, e: int, rules: Rules, *, minus_zero: bool = False) -> int:
    """n * 2 ** e, rounded once.  An n that stands for more digits ends in a sticky 1.

    The manual does not say which results are flushed.  Here: those below the normal numbers when
    rounded to as many digits as these have; of binary64, which no code of ours flushes, those that
    are denormal.
    """
    if n == 0:
        return f.sign if minus_zero else 0
    sign, size = (f.sign, -n) if n < 0 else (0, n)
    if rules.flush_out and f.fraction < 52:
        lift = f.fraction + 2
        if field(f, pack(f, n, e + lift, Rules(rules.round))) <= lift:
            return sign
    # The weight of the last place that the format keeps.
    last = max(size.bit_length() + e - 1 - f.fraction, 1 - f.bias - f.fraction)
    drop = last - e
    if drop <= 0:
        kept = size << -drop
    else:
        kept, rest = size >> drop, size & ((1 << drop) - 1)
        half = 1 << (drop - 1)
        up = {
            NEAREST: rest > half or (rest == half and kept & 1),
            UP: rest != 0 and not sign,
            DOWN: rest != 0 and bool(sign),
            ZERO: False,
        }[rules.round]
        if up:
            kept += 1
    if kept >> (f.fraction + 1):  # rounded up to the next power of two
        kept, last = kept >> 1, last + 1
    if kept >> f.fraction:
        biased = last + f.bias + f.fraction
        if biased >= f.top:
            away = rules.round == NEAREST or rules.round == (DOWN if sign else UP)
            return sign | (f.infinity if away else f.infinity - 1)
        return sign | biased << f.fraction | kept & ((1 << f.fraction) - 1)
    return sign if rules.flush_out else sign | kept


def _nan_of(f: Format, *args: int) -> int:
    return next((quiet(f, a) for a in args if is_nan(f, a)), f.nan)


def fma(f: Format, a: int, b: int, c: int, rules: Rules) -> int:
    a, b, c = (flushed(f, x, rules.flush_in) for x in (a, b, c))
    sign = (a ^ b) & f.sign
    if is_nan(f, a) or is_nan(f, b) or is_nan(f, c):
        return _nan_of(f, a, b, c)
    if is_inf(f, a) or is_inf(f, b):
        if is_zero(f, a) or is_zero(f, b) or (is_inf(f, c) and (c & f.sign) != sign):
            return f.nan
        return sign | f.infinity
    if is_inf(f, c):
        return c
    (na, ea), (nb, eb), (nc, ec) = (unpack(f, x) for x in (a, b, c))
    product, ep = na * nb, ea + eb
    low = min(ep, ec)
    total = (product << ep - low) + (nc << ec - low)
    if total == 0:
        both = bool(sign) and negative(f, c)
        either = bool(sign) or negative(f, c)
        exact = product == 0 and nc == 0
        minus = both or (rules.round == DOWN and (either or not exact))
        return f.sign if minus else 0
    return pack(f, total, low, rules)


def add(f: Format, a: int, b: int, rules: Rules) -> int:
    return fma(f, a, f.bias << f.fraction, b, rules)


def mul(f: Format, a: int, b: int, rules: Rules) -> int:
    a, b = flushed(f, a, rules.flush_in), flushed(f, b, rules.flush_in)
    sign = (a ^ b) & f.sign
    if is_nan(f, a) or is_nan(f, b):
        return _nan_of(f, a, b)
    if is_inf(f, a) or is_inf(f, b):
        return f.nan if is_zero(f, a) or is_zero(f, b) else sign | f.infinity
    (na, ea), (nb, eb) = unpack(f, a), unpack(f, b)
    return pack(f, na * nb, ea + eb, rules, minus_zero=bool(sign))


def div(f: Format, a: int, b: int, rules: Rules) -> int:
    a, b = flushed(f, a, rules.flush_in), flushed(f, b, rules.flush_in)
    sign = (a ^ b) & f.sign
    if is_nan(f, a) or is_nan(f, b):
        return _nan_of(f, a, b)
    if is_inf(f, a) or is_zero(f, b):
        bad = (is_inf(f, a) and is_inf(f, b)) or (is_zero(f, a) and is_zero(f, b))
        return f.nan if bad else sign | f.infinity
    if is_inf(f, b) or is_zero(f, a):
        return sign
    (na, ea), (nb, eb) = unpack(f, a), unpack(f, b)
    more = 2 * f.fraction + 8
    q, r = divmod(abs(na) << more, abs(nb))
    q = q << 1 | (r != 0)
    return pack(f, -q if sign else q, ea - eb - more - 1, rules)


def sqrt(f: Format, a: int, rules: Rules) -> int:
    a = flushed(f, a, rules.flush_in)
    if is_nan(f, a):
        return quiet(f, a)
    if is_zero(f, a):
        return a
    if negative(f, a):
        return f.nan
    if is_inf(f, a):
        return a
    n, e = unpack(f, a)
    more = 2 * f.fraction + 8
    more += (e - more) & 1
    root = math.isqrt(n << more)
    return pack(f, root << 1 | (root * root != n << more), (e - more) // 2 - 1, rules)


def scale(f: Format, a: int, by: int, rules: Rules) -> int:
    """a * 2 ** by, rounded once."""
    a = flushed(f, a, rules.flush_in)
    if is_nan(f, a):
        return quiet(f, a)
    if is_inf(f, a) or is_zero(f, a):
        return a
    n, e = unpack(f, a)
    # Beyond it every result is too large, or below half of the least number: 2**31 makes an integer
    # of as many digits.
    most = 2 * (f.top + f.fraction + 2)
    return pack(f, n, e + max(-most, min(by, most)), rules)


def convert(f: Format, a: int, to: Format, rules: Rules) -> int:
    """Between formats, rounded once; of a NaN the upper bits of its payload, quiet."""
    a = flushed(f, a, rules.flush_in)
    sign = to.sign if negative(f, a) else 0
    if is_nan(f, a):
        payload = a & ((1 << f.fraction) - 1)
        shift = to.fraction - f.fraction
        payload = payload << shift if shift >= 0 else payload >> -shift
        return quiet(to, sign | to.infinity | payload)
    if is_inf(f, a):
        return sign | to.infinity
    n, e = unpack(f, a)
    return pack(to, n, e, rules, minus_zero=bool(sign))


def widened(f: Format, a: int, to: Format) -> int:
    """The same datum in a wider format: exact, and a signalling NaN stays one."""
    if not is_nan(f, a):
        return convert(f, a, to, Rules())
    sign = to.sign if negative(f, a) else 0
    payload = (a & ((1 << f.fraction) - 1)) << (to.fraction - f.fraction)
    return sign | to.infinity | payload


def narrowed(f: Format, a: int, to: Format) -> int:
    """The datum of `widened` back in its own format."""
    sign = to.sign if negative(f, a) else 0
    if is_nan(f, a):
        payload = (a & ((1 << f.fraction) - 1)) >> (f.fraction - to.fraction)
        return sign | to.infinity | payload
    return convert(f, a, to, Rules())


def to_integral(f: Format, a: int, how: int) -> int:
    """Rounded to an integer in the same format; NaNs quiet, zeros keep their sign."""
    if is_nan(f, a):
        return quiet(f, a)
    if is_inf(f, a) or is_zero(f, a):
        return a
    n, e = unpack(f, a)
    if e >= 0:
        return a
    return pack(f, _whole(n, e, how), 0, Rules(), minus_zero=negative(f, a))


def _whole(n: int, e: int, how: int) -> int:
    """n * 2 ** e (e < 0) as an integer."""
    low, rest = n >> -e, n & ((1 << -e) - 1)  # floor
    half = 1 << (-e - 1)
    up = {
        NEAREST: rest > half or (rest == half and bool(low & 1)),
        UP: rest != 0,
        DOWN: False,
        ZERO: rest != 0 and n < 0,
    }[how]
    return low + up


def to_integer(f: Format, a: int, low: int, high: int) -> int:
    """Truncated and saturated; NaN is 0."""
    if is_nan(f, a):
        return 0
    if is_inf(f, a):
        return low if negative(f, a) else high
    n, e = unpack(f, a)
    whole = n << e if e >= 0 else _whole(n, e, ZERO)
    return min(max(whole, low), high)


def from_integer(n: int, to: Format, rules: Rules) -> int:
    return pack(to, n, 0, rules)


def less(f: Format, a: int, b: int) -> bool:
    """a < b; False with a NaN."""
    if is_nan(f, a) or is_nan(f, b):
        return False
    return _ordered(f, a) < _ordered(f, b)


def equal(f: Format, a: int, b: int) -> bool:
    return not is_nan(f, a) and not is_nan(f, b) and _ordered(f, a) == _ordered(f, b)


def _ordered(f: Format, a: int) -> int:
    size = a & (f.sign - 1)
    return -size if a & f.sign else size


def value(f: Format, a: int) -> float:
    """A finite binary16, 32 or 64 number as a Python float: exact."""
    n, e = unpack(f, a)
    return math.ldexp(n, e)
