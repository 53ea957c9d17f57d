"""Pieces of the shape ``chains``: halves that end in floats, NaNs on the way, blocks of any size.

A piece is as in :mod:`.launch_pieces`, with ``float f, e`` beside the hashes: sums that go into
slots of their own, in which a NaN's bits are told apart from other differences.  Roundings are
said (``_rn``), so that no compiler may contract.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two 16-bit numbers in a word: how CUDA calls them."""

    kind: str
    one: str
    of: str  # a number of its bits
    bits: str
    to_float: str
    low: str
    high: str
    join: str
    stream: int


HALF = _Pair(
    "__half2", "__half", "__ushort_as_half", "__half_as_ushort", "__half2float", "__low2half",
    "__high2half", "__halves2half2", 5,
)  # fmt: skip
BF16 = _Pair(
    "__nv_bfloat162", "__nv_bfloat16", "__ushort_as_bfloat16", "__bfloat16_as_ushort",
    "__bfloat162float", "__low2bfloat16", "__high2bfloat16", "__halves2bfloat162", 6,
)  # fmt: skip
_SELECTORS = (
    "5410",
    "7632",
    "1032",
    "5432",
    "7610",
    "3276",
    "1010",
    "3232",
    "0123",
    "6420",
    "3715",
    "2301",
)


def _pair(rng: random.Random) -> _Pair:
    return HALF if rng.random() < 0.55 else BF16


def _packed(p: _Pair, word: str) -> str:
    return f"{p.join}({p.of}((u16)({word})), {p.of}((u16)(({word}) >> 16)))"


def _word(p: _Pair, value: str) -> str:
    return f"({p.bits}({value}.x) | (u32){p.bits}({value}.y) << 16)"


def _steps(rng: random.Random, count: int) -> list[str]:
    """Operations on pairs x, y, z."""
    return [
        rng.choice((
            "x = __hadd2_rn(x, y);", "y = __hmul2_rn(x, z);", "z = __hfma2(x, y, z);", "x = __hsub2_rn(z, x);",
            "y = __hfma2(y, y, x);", "x = __hneg2(z);", "y = __habs2(y);", "x = __hmax2(x, z);", "z = __hmin2(z, y);",
            "if (__hbgt2(x, y)) z = x;", "y = __hgt2(x, z);", "x = __hmul2_rn(x, y);", "x = __hmax2_nan(x, y);",
        ))
        for _ in range(count)
    ]  # fmt: skip


def _as_float(rng: random.Random, p: _Pair, word: str, other: str) -> str:
    """A float of one half of a packed word, in one of the ways in which programs take it out."""
    ways = [
        f"{p.to_float}({p.of}((u16)({word})))", f"{p.to_float}({p.of}((u16)(({word}) >> 16)))",
        f"{p.to_float}({p.of}((u16)__byte_perm({word}, {other}, 0x{rng.choice(_SELECTORS)})))",
        f"{p.to_float}({p.of}((u16)(__funnelshift_r({word}, {other}, {rng.choice((8, 16, 24))}))))",
        f"{p.to_float}({p.of}((u16)((({word}) & 0xFFFF0000u) >> 16)))",
    ]  # fmt: skip
    if p is BF16:
        ways += [
            f"__uint_as_float(({word}) << 16)", f"__uint_as_float(({word}) & 0xFFFF0000u)",
            f"__uint_as_float(__byte_perm({word}, 0, 0x{rng.choice(('1044', '3244'))}))",
            f"__uint_as_float(__byte_perm({other}, {word}, 0x{rng.choice(('5400', '7632'))}) & 0xFFFF0000u)",
        ]  # fmt: skip
    return rng.choice(ways)


def _summed(rng: random.Random, value: str) -> str:
    """A float that goes into a sum, or whose bits are seen."""
    return rng.choice((
        f"f = __fadd_rn(f, {value});", f"e = __fadd_rn({value}, e);", f"f = __fmaf_rn({value}, 0.5f, f);",
        f"e = __fmaf_rn(f, {value}, e);", f"f = __fsub_rn({value}, f);", f"e = fmaxf(e, {value});",
        f"if ({value} > f) f = {value};", f"h = h * 31 + __float_as_uint({value});", f"f = __fmul_rn(f, {value});",
        f"g ^= isnan({value}) ? 9 : 4;", f"f = __fadd_rn(f, fabsf({value}));", f"e = __fsub_rn(e, -{value});",
    ))  # fmt: skip


def _halves(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """A chain of pairs whose halves are taken out and summed as floats."""
    p = _pair(rng)
    loads = ", ".join(f"GET({k})" for k in rng.sample((p.stream, p.stream, 3, 0, 1), 3))
    steps = " ".join(_steps(rng, rng.randrange(2, 8)))
    ends = "\n  ".join(
        f"{{ float v = {_as_float(rng, p, 'a', 'b')}; {_summed(rng, 'v')} }}"
        for _ in range(rng.randrange(2, 6))
    )
    return f"""  u32 r[3] = {{ {loads} }};
  {p.kind} x = {_packed(p, "r[0]")}, y = {_packed(p, "r[1]")}, z = {_packed(p, "r[2]")};
  for (u32 k = 0; k < {rng.choice(("1", "2", "3", "(GET(2) & 3)"))}; ++k) {{ {steps} }}
  u32 a = {_word(p, "x")}, b = {_word(p, rng.choice("yz"))};
  {rng.choice(("", "", "a = __byte_perm(a, b, 0x7632);", "b = (a >> 16) | (b << 16);", "h ^= a;", "a ^= 0x80008000u;", "b &= 0x7FFF7FFFu;"))}
  {ends}"""


def _extracted(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Words are taken apart and put together between operations on pairs."""
    p = _pair(rng)
    lines: list[str] = []
    for _ in range(rng.randrange(2, 6)):
        lines.append(
            rng.choice((
                f"a = __byte_perm(a, b, 0x{rng.choice(_SELECTORS)});", f"b = __byte_perm(b, a, 0x{rng.choice(_SELECTORS)});",
                "a = (a << 16) | (b >> 16);", "b = __funnelshift_l(a, b, 16);", "a = (a & 0xFFFFu) | (b & 0xFFFF0000u);",
                "b = (u32)(u16)a * 0x10001u;", f"a ^= (b & 0x80008000u) >> {rng.choice((0, 0, 1))};", "a = (u32)((i32)a >> 16);",
                "{ u32 w = __shfl_sync(warp, a, (lane ^ 1) < lanes ? lane ^ 1 : lane); a = (a & 0xFFFFu) | (w << 16); }",
            ))
        )  # fmt: skip
        lines.append(
            f"{{ {p.kind} x = {_packed(p, 'a')}, y = {_packed(p, 'b')}, z = {_packed(p, 'c')}; {' '.join(_steps(rng, rng.randrange(1, 4)))} a = {_word(p, 'x')}; b = {_word(p, rng.choice('yz'))}; }}"
        )
        if rng.random() < 0.5:
            lines.append(f"{{ float v = {_as_float(rng, p, 'a', 'c')}; {_summed(rng, 'v')} }}")
    end = rng.choice(
        (
            "h = h * 5 + a;",
            "g += a ^ b;",
            f"f = __fadd_rn(f, {_as_float(rng, p, 'a', 'b')});",
            "q ^= b;",
        )
    )
    body = "\n  ".join(lines)
    return f"  u32 a = GET({p.stream}), b = GET({rng.choice((p.stream, 3, 0))}) ^ {rng.choice((0, 0x80008000, 7))}u, c = GET(1); (void)c;\n  {body}\n  {end}"


def _shuffled(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Numbers that are shuffled and only summed, or compared, after that."""
    kind = rng.choice(("float", "float", "float", "double", "__half2", "__nv_bfloat162"))
    if kind == "float":
        value = f"__fmul_rn(GETF(4), {rng.choice(('1.0f', 'GETF(7)', '0.5f'))})"
        join = rng.choice(
            (
                "__fadd_rn(v, o)",
                "__fadd_rn(v, o)",
                "fmaxf(v, o)",
                "fminf(v, o)",
                "__fmaf_rn(v, 0.5f, o)",
            )
        )
        fold = _summed(rng, "v")
    elif kind == "double":
        value = "__dmul_rn(GETD(8), 0.25)"
        join = rng.choice(("__dadd_rn(v, o)", "fmax(v, o)", "__fma_rn(v, 0.5, o)"))
        fold = rng.choice(
            ("f = __fadd_rn(f, (float)v);", "if (v > 0) g += 3; else h += 5;", "e = (float)v;")
        )
    else:
        p = HALF if kind == "__half2" else BF16
        value = f"__hmul2_rn({_packed(p, f'GET({p.stream})')}, {_packed(p, 'GET(3)')})"
        join = rng.choice(("__hadd2_rn(v, o)", "__hmax2(v, o)", "__hfma2(v, o, o)"))
        fold = f"{{ u32 a = {_word(p, 'v')}; float w = {_as_float(rng, p, 'a', 'a')}; {_summed(rng, 'w')} }}"
    lines: list[str] = []
    for o in rng.choice(((16, 8, 4, 2, 1), (1, 2, 4, 8, 16), (4, 2, 1), (1,))):
        if size % 32 == 0 and rng.random() < 0.8:
            way = rng.choice(("xor", "xor", "down", "up"))
            lines.append(f"o = __shfl_{way}_sync(~0u, v, {o}); v = {join};")
        else:
            lines.append(
                f"o = __shfl_sync(warp, v, (lane ^ {o}) < lanes ? lane ^ {o} : lane); v = {join};"
            )
    return f"  {kind} v = {value}, o;\n  " + "\n  ".join(lines) + f"\n  {fold}"


def _normalised(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Each row by its maximum and sum, as softmax and norms do it."""
    at = rng.choice((4, 7))
    weigh = rng.choice(("__fmul_rn(x, x)", "__fsub_rn(x, top)", "fabsf(x)", "fminf(x, 3.0f)"))
    end = rng.choice(
        (
            "__fdiv_rn(x, total)",
            "__fmul_rn(x, __frsqrt_rn(total))",
            "__fsqrt_rn(__fdiv_rn(x, top))",
            "__fmul_rn(x, __frcp_rn(total))",
        )
    )
    return f"""  __shared__ float s[{size}];
  float x = GETF({at}); s[l] = x; __syncthreads();
  float top = s[0], total = 0;
  for (u32 k = 0; k < {size} && k < 64; ++k) top = fmaxf(top, s[(k * {rng.choice((1, 3))}) % {size}]);
  x = {weigh}; __syncthreads(); s[l] = x; __syncthreads();
  for (u32 k = 0; k < {size} && k < 64; ++k) total = __fadd_rn(total, s[k]);
  {{ float v = {end}; {_summed(rng, "v")} }}
  __syncthreads();"""


def _nans(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """NaNs with payloads through what keeps their bits, and through what does not."""
    lines = [
        rng.choice((
            "v = isnan(v) ? w : v;", "v = fmaxf(v, w);", "w = copysignf(w, v);", "v = -v;", "w = fabsf(w);",
            "v = (GET(1) & 1) ? v : w;", "w = __fadd_rn(v, w);", "s[l] = v; __syncthreads(); w = s[(l + 1) % {0}]; __syncthreads();",
            "own[GET(2) & 3] = v; w = own[l & 3];", "v = __uint_as_float(__float_as_uint(v) ^ 0x80000000u);",
            "g += __float_as_uint(w);", "v = __fmul_rn(v, 1.0f);", "if (v != v) {{ h += __float_as_uint(v) >> 20; v = 1.0f; }}",
            "v = __shfl_sync(warp, v, 0);", "w = (float)(double)v;", "v = __half2float(__float2half_rn(w));", "v = fminf(fmaxf(v, -2.0f), 2.0f);",
            "w = __saturatef(w);", "v = __fmaf_rn(v, w, v);", "w = __int_as_float(max(__float_as_int(v), __float_as_int(w)));",
            "h = h * 3 + (v < w) + 2 * !(v >= w) + 4 * (v == v);", "v = __bfloat162float(__float2bfloat16_rn(v));",
        )).format(size)
        for _ in range(rng.randrange(4, 11))
    ]  # fmt: skip
    return (
        f"  __shared__ float s[{size}];\n  float own[4] = {{ 1, GETF(4), 2, GETF(7) }}; (void)own; (void)s;\n  float v = GETF(4), w = GETF(7);\n  "
        + "\n  ".join(lines)
        + f"\n  {_summed(rng, 'v')} {_summed(rng, 'w')}"
    )


def _quantised(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Small integers that are made halves by their bits, as kernels for quantised weights do."""
    bits = rng.choice((4, 8))
    if bits == 4:
        at = rng.choice((0, 4, 8, 12))
        word = f"(((GET(3) >> {at}) & 0x000F000Fu) | 0x64006400u)"
    else:
        word = f"__byte_perm(GET(3), 0x64646464u, 0x{rng.choice(('4140', '4342', '4143', '4240'))})"
    p = HALF
    scale = _packed(p, f"GET({rng.choice((5, 3))})")
    zero = _packed(p, f"0x{rng.choice(('64006400', '64086408', '64806480'))}u")
    return f"""  {p.kind} x = {_packed(p, word)};
  x = __hsub2_rn(x, {zero});
  {p.kind} y = {rng.choice((f"__hmul2_rn(x, {scale})", f"__hfma2(x, {scale}, x)", "x"))};
  u32 a = {_word(p, "y")};
  for (u32 k = 0; k < {rng.randrange(1, 4)}; ++k) {{ f = __fmaf_rn({_as_float(rng, p, "a", "a")}, GETF(7), f); a = {rng.choice(("a >> 16 | a << 16", "a ^ 0x8000u", "__byte_perm(a, a, 0x1032)"))}; }}
  {rng.choice(("h ^= a;", "e = __fadd_rn(e, __low2float(y));", "e = __fsub_rn(__high2float(y), e);"))}"""


def _small_floats(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """FP8 and back, by the header's own functions."""
    kind = rng.choice(("__NV_E4M3", "__NV_E5M2"))
    keep = rng.choice(("__NV_SATFINITE", "__NV_NOSAT"))
    source = rng.choice((
        f"__nv_cvt_float_to_fp8(GETF({rng.choice((4, 7))}), {keep}, {kind})",
        f"__nv_cvt_halfraw_to_fp8((__half_raw)__ushort_as_half((u16)GET(5)), {keep}, {kind})",
        f"__nv_cvt_double_to_fp8(GETD(8), {keep}, {kind})", "(u8)GET(3)",
    ))  # fmt: skip
    return f"""  u8 b8 = (u8){source};
  h = h * 5 + b8;
  {{ float v = __half2float((__half)__nv_cvt_fp8_to_halfraw(b8, {kind})); {_summed(rng, "v")} }}
  {{ __half2 y = (__half2)__nv_cvt_fp8x2_to_halfraw2((u16)(GET(3) >> 8), {kind}); float v = {rng.choice(("__low2float(y)", "__high2float(y)"))}; {_summed(rng, "v")} }}"""


def _doubles(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Doubles through words, floats and integers."""
    lines = [
        rng.choice((
            "d = __dadd_rn(d, c);", "c = __dmul_rn(d, c);", "d = __fma_rn(c, d, c);", "d = __ddiv_rn(d, c);", "d = __dsqrt_rn(fabs(c));",
            "c = (double)(float)d;", "d = (double)(i64)GET(1);", "if (d < c) { double x = c; c = d; d = x; }", "d = fmax(c, d);",
            "d = __hiloint2double(__double2hiint(c), __double2loint(d));", "g += (u32)__double2int_rz(d);", "h += (u64)__double2ll_rd(c);",
            "d = __longlong_as_double(__double_as_longlong(d) ^ (i64)0x8000000000000000ll);", "c = __shfl_sync(warp, d, (lane ^ 1) < lanes ? lane ^ 1 : lane);",
            "e = __fadd_rn(e, __double2float_rn(d));", "c = __uint2double_rn(GET(3));",
        ))
        for _ in range(rng.randrange(3, 9))
    ]  # fmt: skip
    return (
        "  double d = GETD(8), c = (double)GETF(7);\n  "
        + "\n  ".join(lines)
        + "\n  f = __fadd_rn(f, (float)d); g += c > d ? 2 : c < d ? 3 : 5;"
    )


PIECES: list[Callable[[random.Random, str, int, int], str]] = [
    _halves, _halves, _extracted, _extracted, _shuffled, _shuffled, _normalised, _nans, _nans, _quantised,
    _small_floats, _doubles,
]  # fmt: skip
