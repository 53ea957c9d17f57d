"""Pieces of the shape ``chains`` in which a block works together, and loops whose turns are quotients."""

from __future__ import annotations

import random
from collections.abc import Callable


def _divided(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Quotients and remainders of 64 bits decide how often a loop runs."""
    kind, small = rng.choice(
        (("u64", "u32"), ("i64", "i32"), ("u64", "u16"), ("u64", "u64"), ("i64", "i64"))
    )
    a = f"({kind})((u64)GET({rng.choice((0, 1, 3))}) << {rng.choice((0, 8, 32))} | GET({rng.choice((0, 3))}))"
    by = rng.choice(
        (
            f"({kind})({small})(GET({rng.choice((0, 1, 3))}) | 1)",
            f"({kind}){rng.choice((3, 7, 10, 100, 1000003, 641))}",
            f"({kind})(GET(2) + {rng.randrange(1, 5)})",
        )
    )
    most = rng.choice((3, 7, 9, 13))
    trips = rng.choice(
        (
            f"(u32)((a / c) % {most})",
            f"(u32)((a % c) & {most | 1})",
            f"(u32)((a % c) % {most}) + (u32)((a / c) & 3)",
        )
    )
    inner = rng.choice((
        "a = a / 3 + c; c ^= k;", "h = h * 7 + (u64)(a % (c | 1)); a += c;", "if ((a % 5) == 2) break; a = (a >> 1) + k;",
        "for (u32 j = 0; j < (u32)(a / (c | 1) & 3); ++j) { h += j * (u64)a; a ^= j; }", "c = c * 3 + (a % 11);",
        f"a = (a * {rng.randrange(3, 99)}) / ((c & 0xFF) + 1); if (a == 0) continue; g += (u32)(a % 10);",
    ))  # fmt: skip
    sign = "if ((i32)(trips) < 0) trips = -trips;" if kind == "i64" else ""
    return f"""  {kind} a = {a}, c = {by};
  if (c == 0) c = 1;
  if (c == ({kind})-1 || c == ({kind})-2) c = 3;
  u32 trips = {trips};
  {sign}
  for (u32 k = 0; k < trips && k < 40; ++k) {{ if (c == 0 || c == ({kind})-1 || c == ({kind})-2) c = 5; {inner} h = h * 3 + (u64)a + (u64)c; }}
  g ^= trips;"""


def _searched(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """A binary search in shared memory, unrolled: a sorted table of any length."""
    kind = rng.choice(("u32", "i32", "float", "u64", "u16"))
    length = rng.choice((size, size, 3, 8, 100, 128, 255))
    step = rng.choice((2, 3, 7, 64))
    rounds = length.bit_length()
    start = "-20" if kind in ("i32", "float") else "0"
    key = rng.choice(
        (
            f"GET(2) * {rng.randrange(1, 30)}",
            "GET(0)",
            f"l * {step} + (GET(2) & 3)",
            f"GET(3) % {length * step + 5}",
        )
    )
    test = rng.choice(("<", "<="))
    unroll = rng.choice(("#pragma unroll", "#pragma unroll 1", "#pragma unroll 4", ""))
    way = rng.choice((
        f"u32 mid = low + ((high - low) >> 1); if (low < high) {{ if (s[mid] {test} x) low = mid + 1; else high = mid; }}",
        f"u32 mid = (low + high) / 2; bool right = low < high && s[mid] {test} x; low = right ? mid + 1 : low; high = right || low >= high ? high : mid;",
        f"u32 half = {1 << (rounds - 1)}u >> k; if (low + half <= {length} && s[low + half - 1] {test} x) low += half;",
    ))  # fmt: skip
    return f"""  __shared__ {kind} s[{length}];
  for (u32 k = l; k < {length}; k += nt) s[k] = ({kind})((i32)(k * {step} + (k * 5 % {step})) + ({start}));
  __syncthreads();
  {kind} x = ({kind})({key});
  u32 low = 0, high = {length};
  {unroll}
  for (u32 k = 0; k < {rounds + (0 if "half" in way else 1)}; ++k) {{ {way} }}
  h = h * 33 + low + (low < {length} ? (u64)s[low] : 7);
  g += low;
  __syncthreads();"""


def _numbers(rng: random.Random) -> tuple[str, str, str, str]:
    """A type, a value of it, how two are joined (a, c), and how the result is seen."""
    return rng.choice((
        ("float", "GETF(4)", "__fadd_rn(a, c)", "f = __fadd_rn(f, r);"),
        ("float", "__fmul_rn(GETF(4), 0.5f)", "fmaxf(a, c)", "e = r;"),
        ("float", "GETF(7)", "__fmaf_rn(a, 0.5f, c)", "f = __fsub_rn(r, f);"),
        ("double", "GETD(8)", "__dadd_rn(a, c)", "e = __fadd_rn(e, (float)r);"),
        ("double", "GETD(8)", "fmin(a, c)", "g ^= r > 0 ? 1 : r < 0 ? 2 : 3;"),
        ("u64", "(u64)GET(0) * GET(3)", "a + c", "h = h * 3 + r;"),
        ("i32", "(i32)GET(0)", "max(a, c)", "h ^= (u32)r;"),
        ("u32", "GET(3)", "a * 31 + c", "g += r;"),
        ("u64", "((u64)(GET(0) & 0xFFFF) << 32) | l", "a > c ? a : c", "h = h * 7 + r;"),
        ("u32", "__popc(GET(0))", "a + c", "g = g * 3 + r;"),
    ))  # fmt: skip


def _reduced(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """A block's reduction: a tree over any number of threads, or warps and then their results."""
    kind, value, join, fold = _numbers(rng)
    warps = (size + 31) // 32
    if rng.random() < 0.5:
        return f"""  __shared__ {kind} s[{size}];
  s[l] = {value}; __syncthreads();
  {rng.choice(("", "#pragma unroll"))}
  for (u32 m = {size}; m > 1; m = (m + 1) / 2) {{
    u32 half = (m + 1) / 2;
    if (l + half < m) {{ {kind} a = s[l], c = s[l + half]; s[l] = {join}; }}
    __syncthreads();
  }}
  {kind} r = s[0]; {fold}
  __syncthreads();"""
    return f"""  __shared__ {kind} s[{warps}];
  {kind} a = {value};
  for (u32 o = 16; o; o >>= 1) {{ {kind} c = __shfl_sync(warp, a, lane + o < lanes ? lane + o : lane); if (lane + o < lanes) a = {join}; }}
  if (lane == 0) s[l >> 5] = a;
  __syncthreads();
  if (l == 0) {{ for (u32 k = 1; k < {warps}; ++k) {{ {kind} c = s[k]; a = {join}; }} s[0] = a; }}
  __syncthreads();
  {kind} r = s[0]; {fold}
  __syncthreads();"""


def _scanned(rng: random.Random, name: str, size: int, blocks: int) -> str:
    kind, value, join, fold = _numbers(rng)
    return f"""  __shared__ {kind} s[{size}];
  {kind} a = {value}; s[l] = a; __syncthreads();
  for (u32 o = 1; o < {size}; o <<= 1) {{
    {kind} c = l >= o ? s[l - o] : a;
    __syncthreads();
    if (l >= o) {{ a = {join}; s[l] = a; }}
    __syncthreads();
  }}
  {kind} r = {rng.choice((f"s[(l + 1) % {size}]", "a", f"s[{size - 1}]"))}; {fold}
  __syncthreads();"""


def _ranked(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Each thread's place among the others, and what is at it: places are different, so no value is a NaN."""
    kind, value = rng.choice((
        ("float", "GETF(7)"), ("i32", "(i32)GET(0)"), ("u64", "(u64)GET(3) << 20 | l"), ("double", "GETD(8)"),
        ("u16", "(u16)GET(2)"),
    ))  # fmt: skip
    length = min(size, 96)
    return f"""  __shared__ {kind} s[{size}]; __shared__ u32 place[{size}];
  {kind} v = {value}; if (v != v) v = 0;
  s[l] = v; place[l] = 0; __syncthreads();
  u32 rank = 0;
  {rng.choice(("", "#pragma unroll 4", "#pragma unroll 1"))}
  for (u32 k = 0; k < {length}; ++k) rank += (s[k] < v) || (s[k] == v && k < l);
  if (l < {length}) place[rank % {size}] = l;
  __syncthreads();
  h = h * 31 + rank; g ^= place[(l * 3) % {size}];
  __syncthreads();"""


BLOCKS: list[Callable[[random.Random, str, int, int], str]] = [
    _divided, _searched, _reduced, _reduced, _scanned, _ranked,
]  # fmt: skip
