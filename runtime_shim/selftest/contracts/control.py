"""The expected results of the control-flow kernels of ``fixtures/kernels``: locks, barriers,
warp-wide operations, calls through pointers.  As `selftest_rules`, over lists of words."""

from __future__ import annotations

from collections.abc import Sequence

from sassxlate.runtime_shim.selftest.contracts.numbers import M32, signed

Lanes = list[int]


def _warps(words: Sequence[int]) -> list[Lanes]:
    return [list(words[k : k + 32]) for k in range(0, len(words), 32)]


# --- locks ---------------------------------------------------------------------------------------


def lock(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    """A lock that guards a count and a sum; every thread takes it once."""
    out[:3] = [0, n, sum(a[:n])]


def lock_in_function(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    taken = sum(x != M32 for x in a[:n])
    product = 0
    for _ in range(taken):
        product = (product * 3 + 1) & M32
    out[:4] = [taken, taken, product, taken]


def lane_flags(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    for start in range(0, grid * block, block):
        flag = 1
        for t in reversed(range(block)):
            out[start + t] = (a[start + t] + flag) & M32
            flag = out[start + t] | 1


# --- warps ---------------------------------------------------------------------------------------


def split_warp_sync(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    result: Lanes = []
    for xs, ys in zip(_warps(a), _warps(b), strict=True):
        cell = [x if x & 1 else x * 3 for x in xs]
        xs = [(x + cell[t ^ 1] if x & 1 else x ^ cell[t ^ 1]) & M32 for t, x in enumerate(xs)]
        sent = [y if x & 2 else y * 3 for x, y in zip(xs, ys, strict=True)]
        xs = [(x + sent[t ^ 1] if x & 2 else x ^ sent[t ^ 1]) & M32 for t, x in enumerate(xs)]
        for first in range(0, 32, 4):
            for k in range(first >> 2):
                cell = [x + k for x in xs]
                for t in range(first, first + 4):
                    xs[t] = (xs[t] * 5 + cell[t ^ 1]) & M32
        result += [x + xs[t ^ 2] for t, x in enumerate(xs)]
    out[:] = result


def _mask(lanes: Sequence[bool]) -> int:
    return sum(1 << k for k, yes in enumerate(lanes) if yes)


def group_votes(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    result: Lanes = []
    for xs, ys in zip(_warps(a), _warps(b), strict=True):
        for x in xs:
            same = [k for k in range(32) if xs[k] & 3 == x & 3]
            ballot = _mask([k in same and bool(ys[k] & 1) for k in range(32)])
            result.append(ballot ^ sum(ys[k] for k in same) & M32)
        start = len(result) - 32
        for t, (x, y) in enumerate(zip(xs, ys, strict=True)):
            if not x & 4:
                continue
            # The active mask may be a part of the arm; the groups are the same if it is all of it.
            part = [k for k in range(32) if xs[k] & 7 == x & 7]
            alike = sum(ys[k] & 16 == y & 16 for k in part)
            result[start + t] = result[start + t] * 3 + max(ys[k] for k in part) + alike
    out[:] = result


def shuffle_forms(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    result: Lanes = []
    for number, (xs, cs) in enumerate(zip(_warps(a), _warps(b), strict=True)):
        control = b[number * 32 // block] & 0x1C00 | 0x1F
        rows = (
            ("idx", [c & 63 for c in cs], 0x1F),
            ("up", [5] * 32, 0),
            ("down", [3] * 32, 0x1F),
            ("bfly", [17] * 32, 0x1F),
            ("idx", [c & 31 for c in cs], control),
            ("up", [c >> 5 & 7 for c in cs], control & 0x1F00),
            ("down", [c & 15 for c in cs], control),
            ("bfly", [c >> 3 & 31 for c in cs], control),
            ("down", [2] * 32, 0x0707),
        )
        totals = [0] * 32
        for mode, steps, limits in rows:
            for lane, step in enumerate(steps):
                source, inside = _source(mode, lane, step & 31, limits >> 8 & 31, limits & 31)
                value = xs[source if inside else lane] + 1000 * inside
                totals[lane] = (totals[lane] * 3 + value) & M32
        result += totals
    out[:] = result


def _source(mode: str, lane: int, step: int, segment: int, clamp: int) -> tuple[int, bool]:
    """The lane that shfl reads and whether it is in the segment (PTX manual, shfl)."""
    last = lane & segment | clamp & ~segment
    match mode:
        case "up":
            return lane - step, lane - step >= last
        case "down":
            return lane + step, lane + step <= last
        case "bfly":
            return lane ^ step, lane ^ step <= last
        case _:
            source = lane & segment | step & ~segment
            return source, source <= last


def vote_forms(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    result: Lanes = []
    for number, xs in enumerate(_warps(a)):
        tests = [bool(x & b[number * 32 // block] & 3) for x in xs]
        alike = len({x & b[0] & 1 for x in xs}) == 1
        numbers = [signed(x) for x in xs]
        common, parity = M32, 0
        for x in xs:
            common &= x | 0xFF
            parity ^= x
        sums = sum(xs) + min(xs) + max(numbers) + common + parity + min(y >> 3 for y in numbers)
        odd = [x & 1 for x in xs]
        union = 0
        for x in xs:
            union |= x if x & 1 else 0
        for lane, x in enumerate(xs):
            total = int(len(set(tests)) == 1)
            total = total * 3 + _mask([y & 3 == x & 3 for y in xs])
            total = total * 3 + (M32 + 1 if alike else 0)
            total = total * 5 + sums
            if x & 1:
                pairs = zip(odd, xs, strict=True)
                total += union + _mask([bool(o) and y & 12 == x & 12 for o, y in pairs])
            total += (5 in xs) + 2 * (5 not in xs)
            result.append(total + (lane == 0))
    out[:] = result


# --- barriers ------------------------------------------------------------------------------------


def barrier_reduce(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    for number in range(grid):
        start = number * block
        xs = [x & (b[number] | 0xFF07) for x in a[start : start + block]]
        results = [0] * block
        for k in range(9):
            here = block if k < 5 else 96
            some = xs[:here]
            count = sum(x >> k & 1 for x in some)
            every = all(x >> k & 0xFFF for x in some)
            one = any(x >> k & 0xFF == 7 for x in some)
            for t in range(here):
                results[t] = (((results[t] * 7 + count) * 2 + every) * 2 + one) & M32
        out[start : start + block] = [r + t for t, r in enumerate(results)]


def named_barriers(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    for start in range(0, grid * block, block):
        xs = a[start : start + block]
        for k in range(6):
            for t in range(64):
                xs[64 + t] = (xs[64 + t] * 3 + xs[t] + k) & M32
        for half in range(2):
            mine = range(64 * half, 64 * half + 64)
            for _ in range(3 + half):
                box = list(xs)
                for t in mine:
                    xs[t] = (xs[t] * 3 + box[t ^ 33]) & M32
        for half in range(2):
            tests = [bool((t & 64) | (xs[t] & 15)) for t in range(64 * half, 64 * half + 64)]
            for t in range(64 * half, 64 * half + 64):
                out[start + t] = xs[127 - t] + all(tests) * 1000 + sum(tests)


def async_copies(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    for first in range(0, grid * block, block):
        mine, other = a[first : first + block], b[first : first + block]
        one = [0 if y & 1 else x for x, y in zip(mine, other, strict=True)]
        two = [0 if other[t >> 1] & 2 else x for t, x in enumerate(mine)]
        for t in range(block):
            x = (one[t ^ 5] * 9 + two[t ^ 3] * 3 + other[t ^ 9]) & M32
            for k in range(5):
                x = (x * 3 + mine[((t ^ 1) + 8 * k) % 128]) & M32
            out[first + t] = x


def arrive_barriers(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    for first in range(0, grid * block, block):
        xs = a[first : first + block]
        for k in range(5):
            for t in range(64, 128):
                xs[t] = (xs[t] * 3 + xs[t - 64] + k) & M32
        for k in range(3):
            waits = [(b[first + (t & ~1)] >> k ^ t) & 1 for t in range(128)]
            box = [(x + k) & M32 for x in xs]
            xs = [(x * 3 + box[t ^ 1]) & M32 if waits[t] else x for t, x in enumerate(xs)]
        for _ in range(3):
            xs[:64] = [(xs[t] * 5 + xs[t ^ 33]) & M32 for t in range(64)]
        out[first : first + block] = xs


def divergent_barrier(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    for start in range(0, grid * block, block):
        xs = a[start : start + block]
        box = [x if x & 1 else x * 3 for x in xs]
        for t, x in enumerate(xs):
            out[start + t] = x + box[t ^ 77] if x & 1 else x ^ box[t ^ 77]


# --- calls and jumps -----------------------------------------------------------------------------


def function_pointers(i: int, a: Lanes, b: Lanes, n: int, out: Lanes) -> None:
    x, y = a[i], b[i]
    for k in range(4):
        match (x >> k) % 3:
            case 0:
                x = (x * 3 + y) & M32
            case 1:
                for step in range(y & 7):
                    x = (x * 5 + step) & M32
            case _:
                x //= y | 1
    for k in range(3):
        square = a[i] * a[i] + k
        triangle = (a[i] * y & M32) // (k | 1)
        x = (x * 3 + (triangle if a[i] >> k & 1 else square)) & M32
    out[i] = x


def _odd(x: int, depth: int) -> int:
    if depth == 0:
        return (x + 1) & M32
    return (_even((x * 3 + depth) & M32, depth - 1) + (x >> 3)) & M32


def _even(x: int, depth: int) -> int:
    if depth == 0:
        return x
    y = _odd((x * 5 + depth) & M32, depth - 1)
    if x & 1:
        y = (y + _odd(x ^ y, depth >> 1)) & M32
    return y ^ x


def mutual_recursion(i: int, a: Lanes, b: Lanes, n: int, out: Lanes) -> None:
    out[i] = _even(a[i], b[i] % 6)


def _far_breaks(x: int) -> int:
    r = 0
    for _ in range(9):
        outcome = ""
        for _ in range(7):
            outcome = ""
            for _ in range(5):
                x = (x * 1664525 + 1013904223) & M32
                outcome = {3: "next", 5: "outer"}.get(x >> 28, "")
                if not outcome and x >> 26 == 17:
                    outcome = "done"
                if outcome or x >> 28 == 9:
                    break
                r = (r + (x >> 20)) & M32
            if outcome in ("outer", "done"):
                break
            if not outcome:
                r ^= x
        if outcome == "done":
            return r
        if outcome != "outer":
            r = r * 3 & M32
    return r


def far_breaks(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    results = [_far_breaks(x) for x in a]
    out[:] = [r + results[i ^ 1] for i, r in enumerate(results)]


def exit_in_regions(a: Lanes, b: Lanes, n: int, grid: int, block: int, out: Lanes) -> None:
    result: Lanes = []
    for xs in _warps(a):
        totals, ends = [0] * 32, [0] * 32
        alive = list(range(32))
        for _ in range(8):
            staying: Lanes = []
            for t in alive:
                x = xs[t] = (xs[t] * 1664525 + 1013904223) & M32
                ends[t] = totals[t]
                if x >> 28 == 3:
                    continue
                if x & 0x100 and x >> 24 == 7:
                    ends[t] = ~totals[t]
                    continue
                totals[t] = totals[t] + (x >> 9) if x & 0x100 else totals[t] ^ x
                staying.append(t)
            alive = staying
            for t in alive:
                totals[t] = (totals[t] * 3 + len(alive)) & M32
        for t in alive:
            ends[t] = totals[t]
        result += ends
    out[:] = result
