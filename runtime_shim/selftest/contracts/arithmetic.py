"""The expected results of the kernels of ``fixtures/kernels``, one function each, over lists of
words.

A `Thread` writes what thread ``i`` writes; a `Grid` writes what all threads write, for kernels
whose threads interact.  Words may be written with more than 32 bits or negative: they are cut
later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sassxlate.runtime_shim.selftest.contracts.numbers import (
    M32,
    M64,
    double_words,
    f32,
    f64,
    fma32,
    fma64,
    half,
    ratio,
    round_to_f32,
    saturate,
    signed,
    to_half,
    word,
)

GARBAGE = 0xA5A5A5A5


Thread = Callable[[int, list[int], list[int], int, list[int]], None]


def divergent_if(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    if x & 1:
        x = (x * 3 + 1) & M32
        if y & 2:
            y = a[(x ^ y) % n]
        else:
            x ^= b[y % n]
    else:
        y = (y + a[x % n] * 5) & M32
        if (x & 6) == 6:
            x = b[((x + y) & M32) % n]
    out[i] = x * 31 + y


def nested_break(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, total = a[i], 0
    for outer in range(b[i] & 15):
        for inner in range(outer, 40):
            x = (x * 1664525 + 1013904223) & M32
            if x >> 28 == 0:
                continue
            if x >> 27 == 5:
                break
            total = (total + ((x >> 20) ^ inner)) & M32
        if total > 40000:
            break
        total += 7
    out[i] = total


def early_exit(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x = a[i]
    if x % 3 == 0:
        out[i] = 1
        return
    for step in range(12):
        x = (x * 69069 + b[(i + step) % n]) & M32
        if x % 11 == 4:
            out[i] = x ^ step
            return
    out[i] = x


def jump_table(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    for step in range(7):
        place = (y >> (3 * step)) & 7
        if place in (0, 4):
            x += y
        elif place == 1:
            x *= 2654435761
        elif place == 2:
            x = ~x
        elif place == 3:
            x = x << 9 | x >> 23
        elif place == 5:
            x = x * x + 1
        elif place == 7:
            x = x.bit_count()
        x &= M32
    out[i] = x


def double_math(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = f64(a[2 * i], a[2 * i + 1]), f64(b[2 * i], b[2 * i + 1])
    with np.errstate(all="ignore"):
        results = (
            float(np.float64(x) / np.float64(y)),
            math.sqrt(abs(x)),
            fma64(x, y, -x),
            x + y if x < y else x - y * 0.5,
        )
    out[8 * i : 8 * i + 8] = [word for value in results for word in double_words(value)]


def local_array(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    table = [a[(i + k) % n] for k in range(17)]
    at = b[i] % 17
    for step in range(23):
        following = ((table[at] + step) & M32) % 17
        table[at] = (table[at] + (table[following] ^ b[i])) & M32
        at = following
    total = 0
    for value in table:
        total = (total * 33 + value) & M32
    out[i] = total


def predicated_stores(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    row = [GARBAGE] * 16
    if x & 1:
        row[0] = y
    if x & 2:
        row[1] = (row[1] & 0xFFFF00FF) | (y & 0xFF) << 8
    if x & 4:
        row[2] = (row[2] & 0xFFFF) | ((y >> 3) & 0xFFFF) << 16
    if x & 8:
        row[4:6] = [x, y]
    if x & 16:
        row[8:12] = [x, y, x ^ y, 7]
    if x < y:
        row[13] = x
    if signed(x) > signed(y):
        row[14] = y
    row[15] = 1 if x & 32 else 2
    out[16 * i : 16 * i + 16] = row


def multiply_high(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    product = (signed(x) * signed(y) + x) & M64
    wide = ((x << 32 | y) * (y * 3 + 1)) & M64
    out[6 * i : 6 * i + 6] = [
        x * y >> 32,
        signed(x) * signed(y) >> 32,
        product >> 32,
        product,
        wide >> 32,
        wide * product >> 64,
    ]


def funnel_shifts(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    by = (x ^ y) & 127
    funnel, wide, clamped = y << 32 | x, x << 32 | y, min(by, 32)
    out[8 * i : 8 * i + 8] = [
        (funnel << (by & 31)) >> 32,
        funnel >> (by & 31),
        (funnel << clamped) >> 32,
        funnel >> clamped,
        wide << (by & 63),
        signed(wide, 64) >> (by & 63),
        x << by if by < 32 else 0,
        signed(x) >> min(by, 31),
    ]


def _permute(x: int, y: int, selectors: Sequence[int]) -> int:
    both, result = y << 32 | x, 0
    for place, selector in enumerate(selectors):
        byte = (both >> (8 * (selector & 7))) & 0xFF
        if selector & 8:
            byte = 0xFF if byte & 0x80 else 0
        result |= byte << (8 * place)
    return result


def permute_bytes(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    c = y & 3
    # The table of prmt's modes in the PTX manual, from the lowest byte up.
    out[8 * i : 8 * i + 8] = [
        _permute(x, y, [(x >> 9 >> (4 * k)) & 15 for k in range(4)]),
        _permute(x, y, [c + k for k in range(4)]),
        _permute(x, y, [(c - k) & 7 for k in range(4)]),
        _permute(x, y, [c] * 4),
        _permute(x, y, [max(c, k) for k in range(4)]),
        _permute(x, y, [min(c, k) for k in range(4)]),
        _permute(x, y, [2 * (c & 1), 2 * (c & 1) + 1] * 2),
        _permute(x, y, [1, 3, 5, 7]),
    ]


def uniform_loop(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    total = 0
    for k in range(0, n, 3):
        total = (total * 5 + a[k] + b[n - 1 - k]) & M32
    out[i] = total ^ i


def _twist(x: int, y: int) -> int:
    for _ in range(y & 3):
        x = (x * 17 + y) & M32
    return x ^ y >> 5


def _descend(x: int, depth: int) -> int:
    if depth == 0 or x & 7 == 3:
        return x
    return (_descend((x * 5 + depth) & M32, depth - 1) + (x >> depth)) & M32


def calls(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i], b[i]
    if x & 1:
        x = _twist(x, y)
    if y & 1:
        x = (x + _twist(y, x)) & M32
    out[i] = _descend(x, y % 9)


def carry_chains(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    if i + 3 >= n:
        return
    x = sum(a[i + k] << (32 * k) for k in range(4))
    y = sum(b[i + k] << (32 * k) for k in range(4))
    row = [((x + y) >> (32 * k)) & M32 for k in range(4)]
    row += [((x - y) >> (32 * k)) & M32 for k in range(4)]
    row += [int(x < y), a[i] if signed(x, 128) < signed(y, 128) else b[i]]
    out[10 * i : 10 * i + 10] = row


def _smaller(x: float, y: float) -> float:
    """FP32 minimum: a number rather than a NaN, -0 rather than +0."""
    if math.isnan(x) or math.isnan(y):
        return y if math.isnan(x) else x
    if x == y == 0:
        return x if math.copysign(1, x) < 0 else y
    return min(x, y)


def float_rules(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = f32(a[i]), f32(b[i])
    with np.errstate(all="ignore"):
        total, product = np.float32(x) + np.float32(y), np.float32(x) * np.float32(y)
    flags = (x < y, x <= y, x == y, x != y, not x >= y, not x > y, x == x)
    saturated = 0.0 if math.isnan(x) or x <= 0 else min(x, 1.0)
    cut = word(product)
    if math.isfinite(x) and math.isfinite(y) and x != 0 and y != 0:
        xn, xd = ratio(abs(x))
        yn, yd = ratio(abs(y))
        cut = round_to_f32((a[i] ^ b[i]) >> 31, xn * yn, xd * yd, down=True)
    out[8 * i : 8 * i + 8] = [
        word(total),
        word(product),
        fma32(x, y, -y),
        word(_smaller(x, y)),
        word(-_smaller(-x, -y)),
        sum(flag << k for k, flag in enumerate(flags)),
        word(saturated),
        cut,
    ]


def _int_to_f32(value: int) -> int:
    return round_to_f32(int(value < 0), abs(value), 1)


def conversions(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, f = a[i], f32(b[i])
    wide = signed((x << 31) ^ (signed(x) & M64), 64)
    big = saturate(f, 0, M64, 1 << 63)
    with np.errstate(all="ignore"):
        d = float(np.float64(f) * np.float64(1.000000001))
        narrow = word(np.float32(d))
    out[12 * i : 12 * i + 12] = [
        _int_to_f32(signed(x)),
        _int_to_f32(x),
        _int_to_f32(wide),
        _int_to_f32(signed(x >> 8, 8)),
        saturate(f, -(1 << 31), (1 << 31) - 1, 0),
        saturate(f, 0, M32, 0, nearest=True),
        big,
        big >> 32,
        narrow,
        saturate(d, -(1 << 31), (1 << 31) - 1, -(1 << 31), nearest=True),
        to_half(f),
        word(half(x)),
    ]


def constant_tables(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    steps = (0x10, 0x200, 0x3000, 0x40000, 0x500000, 0x6000000)
    out[i] = (3, 1, 4, 1, 5, 9, 2, 6, 5)[a[i] % 9] * steps[b[i] % 6] + steps[1 + a[i] % 5]


def half_pairs(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = (half(a[i]), half(a[i] >> 16)), (half(b[i]), half(b[i] >> 16))
    rows = [
        [p + q for p, q in zip(x, y, strict=True)],
        [p * q for p, q in zip(x, y, strict=True)],
        # Exact in FP64 for the inputs given here, whose exponents are near each other.
        [p * q + p for p, q in zip(x, y, strict=True)],
    ]
    out[4 * i : 4 * i + 3] = [to_half(low) | to_half(high) << 16 for low, high in rows]
    out[4 * i + 3] = a[i] ^ 0x80008000 if x[0] < y[0] else b[i] << 16 | b[i] >> 16


# --- Kernels whose threads interact
# ----------------------------------------------------------------

Grid = Callable[[list[int], list[int], int, int, int, list[int]], None]


def shuffle_after_division(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    quotients: list[int] = []
    with np.errstate(all="ignore"):
        for x, y in zip(a, b, strict=True):
            quotient = np.float32(f32(x)) / np.float32(f32(y))
            quotients.append(word(42.0 if np.isnan(quotient) else quotient))
    for i in range(grid * block):
        lane, warp = i & 31, i & ~31
        below = lane - 3 if lane >= 3 else lane
        above = lane + 2 if (lane & 7) + 2 < 8 else lane
        sources = (lane ^ 5, below, (lane & 16) + 9, above)
        out[4 * i : 4 * i + 4] = [quotients[warp + source] for source in sources]


def divergent_ballot(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    for warp in range(0, grid * block, 32):
        lanes = range(32)

        def ballot(flags: list[bool], mask: int) -> int:
            return sum(1 << k for k in range(32) if mask >> k & 1 and flags[k])

        xs, ys = a[warp : warp + 32], b[warp : warp + 32]
        odds = ballot([bool(x & 1) for x in xs], M32)
        evens = odds ^ M32
        high = ballot([bool(x >> 31) for x in xs], odds)
        low = ballot([x & 6 == 0 for x in xs], evens)
        every = all(xs[k] & 0x00FFFFF0 for k in lanes if evens >> k & 1)
        first = next((k for k in lanes if odds >> k & 1), 0)
        results = [
            high + ys[first] if odds >> k & 1 else low ^ (0x55 if every else 0xAA) for k in lanes
        ]
        for k in lanes:
            for step in range(ys[k] & 7):
                walkers = ballot([step < y & 7 for y in ys], M32)
                results[k] = (results[k] * 3 + walkers) & M32
            out[warp + k] = results[k]


def shared_atomics(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    for start in range(0, grid * block, block):
        xs, ys = a[start : start + block], b[start : start + block]
        cells = [0] * 16
        cells[0] = sum(xs)
        cells[1], cells[2], cells[4] = max(xs), min(xs), M32
        for x, y in zip(xs, ys, strict=True):
            cells[3] |= 1 << (x & 31)
            cells[4] &= ~(1 << (y & 31))
            cells[5] ^= x
            cells[8 + (x & 3)] += y
        cells[6] = max(0, *(signed(y) for y in ys))
        cells[7] = block % 21  # atomicInc goes from 20 to 0
        wide = sum((x << 20) + y for x, y in zip(xs, ys, strict=True))
        cells[12], cells[13] = wide, wide >> 32
        out[start // block * 16 : start // block * 16 + 16] = cells


def global_atomics(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    out[0], out[1] = sum(a), max(b)
    for x, y in zip(a, b, strict=True):
        out[2] |= 1 << (x & 31)
        out[3] ^= y
    wide = sum((y << 16) + x for x, y in zip(a, b, strict=True))
    largest = max(0, *((signed(x) << 8) + 5 for x in a))
    out[4:8] = [wide, wide >> 32, largest, largest >> 32]
    out[8] = min(0, *(signed(x) for x in a))
    out[9] = len(a)
    out[10] = word(float(sum(y & 15 for y in b)))
    out[16 : 16 + len(a)] = [0x1000] * len(a)


def cas64_loop(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
    cells = [0] * 8
    for x, y in zip(a, b, strict=True):
        cells[x & 7] += (y << 24) + x
    out[:16] = [word for cell in cells for word in (cell & M32, cell >> 32)]


def uniform_barrier(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    for number in range(grid):
        xs = a[number * block : (number + 1) * block]
        if number & 1:
            xs = [(x + xs[(t + 37) % 128]) & M32 for t, x in enumerate(xs)]
        for step in range(2 + number % 3):
            xs = [(x * 3 + xs[t ^ 1 << step]) & M32 for t, x in enumerate(xs)]
        odd = sum(x & 1 for x in xs)
        out[number * block : (number + 1) * block] = [x ^ odd for x in xs]


def wide_constants(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    x, y = a[i] << 32 | b[i], signed(b[i] << 32 | a[i], 64)
    results = (
        x + 0xFFFFFFDC,
        x - 0x24,
        x if x > 0xFFFFFFDC else 1,
        x if x > M64 - 0x23 else 2,
        5 if y > -0x24 else y,
        0xFFFFFFDC if y > 0 else x,
        -0x24 if y > 1 else x,
    )
    out[14 * i : 14 * i + 14] = [r >> s & M32 for r in results for s in (0, 32)]


def _lanes(x: int, y: int, bits: int, function: Callable[[int, int], int]) -> int:
    ones = (1 << bits) - 1
    return sum((function(x >> s & ones, y >> s & ones) & ones) << s for s in range(0, 32, bits))


def byte_lanes(i: int, a: list[int], b: list[int], n: int, out: list[int]) -> None:
    def by_sign(choose: Callable[[int, int], int], bits: int) -> Callable[[int, int], int]:
        return lambda x, y: choose(signed(x, bits), signed(y, bits))

    x, y = a[i], b[i]
    out[10 * i : 10 * i + 10] = [
        _lanes(x, y, 8, lambda p, q: p + q),
        _lanes(x, y, 8, lambda p, q: p - q),
        _lanes(x, y, 8, min),
        _lanes(x, y, 8, max),
        _lanes(x, y, 8, by_sign(min, 8)),
        _lanes(x, y, 8, by_sign(max, 8)),
        _lanes(x, y, 16, lambda p, q: p + q),
        _lanes(x, y, 16, lambda p, q: p - q),
        _lanes(x, y, 16, by_sign(min, 16)),
        _lanes(x, y, 8, lambda p, q: abs(p - q)),
    ]


def spin_lock(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
    out[:3] = [0, n, sum(a[:n])]


def dynamic_shared(
    a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]
) -> None:
    for i in range(grid * block):
        start, t = i - i % block, i % block
        out[i] = a[start + block - 1 - t] * 9 + b[start + (t & 3)]


def warp_match(a: list[int], b: list[int], n: int, grid: int, block: int, out: list[int]) -> None:
    for i in range(grid * block):
        warp = i & ~31
        xs, ys = a[warp : warp + 32], b[warp : warp + 32]
        tops = {x >> 31 & ys[0] & 1 for x in xs}
        parity = 0
        for y in ys:
            parity ^= y
        out[4 * i : 4 * i + 4] = [
            sum(1 << k for k in range(32) if xs[k] & 3 == a[i] & 3),
            M32 + 1 if len(tops) == 1 else 0,
            (sum(xs) & M32) ^ max(ys),
            ((1 << (i & 31)) - 1) ^ parity,
        ]
