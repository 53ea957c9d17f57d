"""Pieces of the shape ``launches`` for blocks of any size.

A piece is C++ for the inside of a block; what stands before a line ``//--`` goes before the kernel.
It is given the random numbers, a name of its own, the threads of a block and the blocks of the grid.
"""

from __future__ import annotations

import random
from collections.abc import Callable

_INTS = ("u32", "i32", "u64", "i64", "u16", "i8")


def _coordinates(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Comparisons of thread numbers with and without sign, sums that wrap included."""
    places = [
        "threadIdx.x", "threadIdx.y", "threadIdx.z", "blockIdx.x", "l", "lane", "blockDim.x", "(l >> 5)",
        "blockIdx.y", "gridDim.x", "b",
    ]  # fmt: skip
    lines: list[str] = []
    for _ in range(rng.randrange(3, 9)):
        a, c = rng.choice(places), rng.choice(places)
        kind = rng.choice(("u32", "i32", "u32", "i32", "u64", "i64", "u16", "i8"))
        k = rng.choice(
            (0, 1, 2, 5, 31, 32, 33, 63, 64, size - 1, size, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0)
        )
        op, test = rng.choice("+-*^"), rng.choice(("<", "<=", ">", ">=", "==", "!="))
        right = rng.choice(
            (
                c,
                f"{rng.choice((1, 3, 16, 32, 40, size // 2))}u",
                f"({c} {rng.choice('+-*')} {rng.randrange(1, 9)}u)",
                "n",
                "(n - b)",
            )
        )
        effect = rng.choice((
            f"h = h * 5 + {rng.randrange(99)};", f"g ^= GET({rng.randrange(4)});", "h ^= GET(0) * 3ull; else g += 11;",
            f"for (u32 k = 0; k < {rng.randrange(2, 9)}; ++k) h += GET(k & 3) >> k; else h -= l;",
        ))  # fmt: skip
        lines.append(f"  if (({kind})({a} {op} {k}u) {test} ({kind}){right}) {effect}")
    return "\n".join(lines)


def _switch(rng: random.Random, name: str, size: int, blocks: int) -> str:
    count = rng.choice((3, 5, 8, 13, 24))
    cases: list[str] = []
    for k in range(count):
        value = k if rng.random() < 0.8 else k * 7 + 100
        body = rng.choice((
            f"h = h * {rng.randrange(3, 99)} + g;", f"g += GET({rng.randrange(4)}) ^ {rng.randrange(99)};",
            "h ^= h >> 7; h *= 0x9E3779B97F4A7C15ull;", f"g = (g << {rng.randrange(1, 31)}) | (g >> {rng.randrange(1, 31)});",
            f"if (g & {rng.choice((1, 2, 8))}) break; h += 3;", f"h = (i64)h >> {rng.randrange(1, 60)};",
            f"h += g / (GET(2) + {rng.randrange(1, 9)});",
        ))  # fmt: skip
        cases.append(f"    case {value}: {body}{' break;' if rng.random() < 0.75 else ''}")
    turns = rng.choice(("1", "3", "GET(2) & 7"))
    by = rng.choice(
        (f"(GET(0) + k) % {count + 2}", f"(l + k) % {count}", "(GET(2) ^ k)", f"(b + k) % {count}")
    )
    return (
        f"  for (u32 k = 0; k < ({turns}); ++k) switch ({by}) {{\n"
        + "\n".join(dict.fromkeys(cases))
        + f"\n    default: h += {rng.randrange(9)};\n  }}"
    )


def _functions(rng: random.Random, name: str, size: int, blocks: int) -> str:
    count = rng.randrange(2, 7)
    kind = rng.choice(("u32", "u64", "i32"))
    made = "".join(
        f"static __device__ __noinline__ {kind} {name}_f{k}({kind} a, u32 b) {{ return "
        + rng.choice(
            (f"a * {rng.randrange(99)} + b", "a ^ (b << 3)", "b & 1 ? a + b : a - b", "a / (b | 1)")
        )
        + "; }\n"
        for k in range(count)
    )
    table = ", ".join(f"{name}_f{k}" for k in range(count))
    by = rng.choice(
        (f"(GET(0) + k) % {count}", f"(l + k) % {count}", f"k % {count}", f"(l >> 5) % {count}")
    )
    return f"""{made}static __device__ {kind} (*const {name}_t[{count}])({kind}, u32) = {{ {table} }};
//--
  {kind} a = ({kind})GET(1);
  for (u32 k = 0; k < {rng.randrange(1, 6)}; ++k) a = {name}_t[{by}](a, GET(3) + k);
  h = h * 3 + (u64)a;"""


def _locals(rng: random.Random, name: str, size: int, blocks: int) -> str:
    length, kind = rng.choice((3, 8, 17, 40)), rng.choice(_INTS)
    return f"""  struct {{ {kind} a; u16 b; u64 c; }} s[{length}];
  for (u32 k = 0; k < {length}; ++k) {{ s[k].a = ({kind})(GET(0) + k); s[k].b = (u16)(l * k); s[k].c = h ^ k; }}
  for (u32 k = 0; k < {rng.randrange(2, 12)}; ++k) {{
    u32 i = (GET(1) + k * {rng.choice((1, 3, 7))}) % {length}, j = (s[i].b + k) % {length};
    s[j].c += (u64)s[i].a; s[i].a = ({kind})(s[j].c >> {rng.randrange(1, 40)}); s[j].b ^= (u16)s[i].c;
  }}
  for (u32 k = 0; k < {length}; ++k) h = h * 31 + (u64)s[k].a + s[k].b + s[k].c;"""


def _structs(rng: random.Random, name: str, size: int, blocks: int) -> str:
    members = ["u8 a;", "u16 b;", "u32 c;", "i8 d;"]
    rng.shuffle(members)
    step = rng.choice((1, 3, 5, 7, 31, 32))
    again = rng.choice((1, 2, 3))
    return f"""  __shared__ struct {{ {" ".join(members)} }} s[{size}];
  s[l].a = (u8)GET(0); s[l].b = (u16)GET(1); s[l].c = GET(3); s[l].d = (i8)l;
  __syncthreads();
  for (u32 k = 0; k < {again}; ++k) {{
    u32 i = (l * {step} + k + GET(2)) % {size};
    u64 v = s[i].a + s[i].b * 3ull + s[i].c * 5ull + (u64)(i64)s[i].d;
    __syncthreads();
    s[(l + k) % {size}].c = (u32)(v >> {rng.randrange(20)}); s[(l + k) % {size}].a ^= (u8)k;
    __syncthreads();
    h = h * 33 + v + s[(l + 1) % {size}].c;
  }}
  __syncthreads();"""


def _unrolled(rng: random.Random, name: str, size: int, blocks: int) -> str:
    turns = rng.choice(
        (f"{rng.randrange(2, 20)}", "(GET(2) & 31)", f"{rng.randrange(3, 9)} + (b & 3)", "(l & 7)")
    )
    word = rng.choice(("v", "v", "(u64)(i64)(i32)v", "(u8)v", "(u64)(i64)(i16)(v >> 8)"))
    return f"""  const u32 *p = in + (t % {rng.choice((1, 3, 8, 64))});
  #pragma unroll {rng.choice((1, 2, 4, 5, 8))}
  for (u32 k = 0; k < {turns}; ++k) {{
    u32 v = p[(k * {rng.choice((1, 2, 7, 32))}) % n];
    {rng.choice(("", "if (v & 1) continue;", "if (v == 0x80000000u) break;", "if ((v ^ k) & 4) g += v;"))}
    h = h * {rng.randrange(3, 999, 2)} + {word};
  }}"""


def _half2(rng: random.Random, name: str, size: int, blocks: int) -> str:
    half = rng.random() < 0.5
    kind = "__half2" if half else "__nv_bfloat162"
    of = "__ushort_as_half" if half else "__ushort_as_bfloat16"
    bits = "__half_as_ushort" if half else "__bfloat16_as_ushort"
    both = "__halves2half2" if half else "__halves2bfloat162"
    lines = [
        rng.choice((
            "x = __hadd2_rn(x, y);", "y = __hmul2_rn(x, z);", "z = __hfma2(x, y, z);", "x = __hneg2(z);", "y = __habs2(y);",
            "x = __hsub2_rn(z, x);", f"z = {both}(__high2{'half' if half else 'bfloat16'}(x), __low2{'half' if half else 'bfloat16'}(y));",
            "g += __hbgt2(x, y) ? 3 : 5;", "g = g * 3 + (__hble2(y, z) ? 1 : 0);", "x = __hlt2(x, y);", "y = __hequ2(x, z);",
            "if (__hbne2(x, z)) y = x;", "z = __hfma2_relu(x, y, z);" if not half else "z = __hfma2_sat(x, y, z);",
        ))
        for _ in range(rng.randrange(3, 9))
    ]  # fmt: skip
    return f"""  u32 r[3] = {{ GET(0), GET(1), GET(3) }};
  {kind} v[3];
  for (int k = 0; k < 3; ++k) v[k] = {both}({of}((u16)r[k]), {of}((u16)(r[k] >> 16)));
  {kind} x = v[0], y = v[1], z = v[2];
  for (u32 k = 0; k < {rng.randrange(1, 4)}; ++k) {{ {" ".join(lines)} }}
  v[0] = x; v[1] = y; v[2] = z;
  for (int k = 0; k < 3; ++k) h = h * 31 + ({bits}(v[k].x) | (u32){bits}(v[k].y) << 16);"""


def _wide_loads(rng: random.Random, name: str, size: int, blocks: int) -> str:
    kind = rng.choice(("uint4", "ulonglong2", "uint2", "double2", "short4"))
    width = {"uint4": 16, "ulonglong2": 16, "uint2": 8, "double2": 16, "short4": 8}[kind]
    parts = "xyzw" if kind in ("uint4", "short4") else "xy"
    word = "(u64)__double_as_longlong(v.{c})" if kind == "double2" else "(u64)v.{c}"
    fold = " ".join(f"h = h * 31 + {word.format(c=c)};" for c in parts)
    load = rng.choice(("p[i]", "__ldg(p + i)", "__ldcs(p + i)", "__ldcg(p + i)"))
    if kind == "short4" and load.startswith("__ld"):
        load = "p[i]"
    return f"""  const {kind} *p = (const {kind} *)in;
  __shared__ {kind} s[{size}];
  u32 i = (t * {rng.choice((1, 1, 2, 5))} + {rng.choice((0, 1, "GET(2)"))}) % (n * 4 * 4 / {width});
  {kind} v = {load};
  {fold}
  s[l] = v; __syncthreads();
  v = s[(l ^ {rng.choice((1, 2, 5))}) % {size}]; {fold}
  __syncthreads();"""


def _atomics(rng: random.Random, name: str, size: int, blocks: int) -> str:
    kind = rng.choice(("unsigned", "int", "unsigned long long", "float", "double"))
    op = rng.choice(
        ("Add",) if kind in ("float", "double") else ("Add", "Min", "Max", "And", "Or", "Xor")
    )
    scope = rng.choice(("", "_block", "_system"))
    mask = rng.choice((0, 1, 7))
    value = (
        f"({kind})(GET(2))" if kind in ("float", "double") else f"({kind})(GET(0) * 0x10001ull + l)"
    )
    take = "(u64)(i64)x" if kind != "unsigned long long" else "x"
    return f"""__device__ {kind} {name}_g[{8 * blocks}];
//--
  __shared__ {kind} s[8];
  for (u32 k = l; k < 8; k += nt) s[k] = ({kind})(k * 3);
  __syncthreads();
  if (GET(1) % {rng.randrange(1, 5)} == 0) atomic{op}{scope}(&s[GET(3) & {mask}], {value});
  atomic{op}{scope}(&{name}_g[b * 8 + (GET(3) & {mask})], {value});
  __threadfence(); __syncthreads();
  for (u32 k = 0; k < 8; ++k) {{ {kind} x = *(volatile {kind} *)&s[k]; h = h * 3 + {take}; x = *(volatile {kind} *)&{name}_g[b * 8 + k]; h ^= {take} << k; }}
  __syncthreads();"""


def _tickets(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """What comes back of atomics, as a sum that no order changes; the block that is last."""
    call = rng.choice((
        "atomicAdd(&c, 1)", f"atomicInc(&c, {size + 5})", "atomicExch(&c, l + 1)", "atomicAdd(&c, 3)",
        f"atomicInc(&c, {max(size // 3, 1)})",
    ))  # fmt: skip
    return f"""__device__ unsigned {name}_n, {name}_v[{blocks}];
//--
  __shared__ unsigned c, sum, last;
  if (l == 0) c = sum = 0;
  __syncthreads();
  unsigned got = {call};
  atomicAdd(&sum, got * {1 if "Exch" in call else rng.choice((1, 5))});
  __syncthreads();
  unsigned end = {"sum + c" if "Exch" in call else "sum"};
  h = h * 7 + end;
  if (l == 0) {{
    *(volatile unsigned *)&{name}_v[b] = end + b; __threadfence();
    last = atomicAdd(&{name}_n, 1) == {blocks - 1};
    __threadfence();
  }}
  __syncthreads();
  if (last && l == 0) {{ unsigned all = 0; for (u32 k = 0; k < {blocks}; ++k) all += *(volatile unsigned *)&{name}_v[k]; atomicAdd(&{name}_n, all); }}
  __syncthreads();"""


def _shuffles(rng: random.Random, name: str, size: int, blocks: int) -> str:
    kind = rng.choice(("u32", "u64", "i64", "double", "i32"))
    width = rng.choice((2, 4, 8, 16, 32, 32))
    start = (
        "__longlong_as_double((i64)(GET(0) | 1ull << 60))"
        if kind == "double"
        else f"({kind})(GET(0) * 0x100000001ull)"
    )
    fold = "(u64)__double_as_longlong(v)" if kind == "double" else "(u64)v"
    lines: list[str] = []
    for _ in range(rng.randrange(1, 4)):
        k = rng.randrange(1, 32)
        # A lane that the last warp lacks must not be read: the lane reads itself there.
        to = rng.choice((f"lane ^ {k}", f"lane + {k % width}", "GET(3) & 31", f"(lane * {k}) & 31"))
        lines.append(
            f"{{ u32 o = ({to}) & 31; o = (lane & ~{width - 1}u) | (o & {width - 1}); if (o >= lanes) o = lane; v = __shfl_sync(warp, v, o, {width}); h = h * 31 + {fold}; }}"
        )
    if size % 32 == 0:
        lines.append(
            f"v = __shfl_{rng.choice(('up', 'down', 'xor'))}_sync(~0u, v, {rng.randrange(1, width)}, {width}); h ^= {fold};"
        )
    return f"  {kind} v = {start};\n  " + "\n  ".join(lines)


def _votes(rng: random.Random, name: str, size: int, blocks: int) -> str:
    bits = rng.choice((1, 3, 7))
    lines = rng.sample((
        f"g += __ballot_sync(warp, GET(1) & {bits});", f"h ^= __match_any_sync(warp, GET(2) & {bits});",
        "int all; h += __match_all_sync(warp, GET(2) >> 4, &all) * 3ull + all;", "g ^= __any_sync(warp, GET(1) == 5) * 8 + __all_sync(warp, GET(1) != 77);",
        "g += __popc(__match_any_sync(warp, GET(1) & 1 ? 5ull << 33 : 4ull));", "h += __reduce_add_sync(warp, GET(0)) + 3ull * __reduce_max_sync(warp, (i32)GET(0));",
        "h ^= (u64)__reduce_xor_sync(warp, GET(3)) << 20;", "if (lane & 1) { g += 9; __nanosleep(20); } __syncwarp(warp);",
    ), 3)  # fmt: skip
    return "  " + "\n  ".join(lines)


def _counts(rng: random.Random, name: str, size: int, blocks: int) -> str:
    return f"""  h = h * 5 + __syncthreads_count(GET(1) & {rng.choice((1, 3))});
  g += __syncthreads_or(GET(0) == {rng.choice((0, 0x7FFFFFFF))}) ? 7 : 2;
  h ^= __syncthreads_and(GET(2) < {rng.choice((39, 40, 41))}) ? 1000 : 20;"""


def _bits(rng: random.Random, name: str, size: int, blocks: int) -> str:
    lines = [
        rng.choice((
            "g = __byte_perm(g, GET(0), GET(3));", "g = __funnelshift_l(g, GET(1), GET(2));", "g = __funnelshift_rc(g, GET(1), GET(2));",
            "g = __dp4a(g, GET(0), 7u);", "g += __vabsdiffs4(GET(0), GET(1));", "g ^= __vmaxs2(g, GET(3));", "g += __brev(g) ^ __ffsll(h);",
            "h = __umul64hi(h, 0x123456789ABCDEFull + GET(0));", "h += (u64)__mulhi((i32)g, (i32)GET(0));", "g = __vaddss2(g, GET(1));",
            "{ struct { u32 a : 5; i32 b : 11; u32 c : 16; } f; memcpy(&f, &g, 4); f.b += 3; f.a ^= f.c; memcpy(&g, &f, 4); }",
            "g = __usad(g, GET(0), GET(1));", "h = (u64)((unsigned __int128)h * (h | 1) >> 37);", "h += (u64)((__int128)(i64)h / (i64)(GET(1) | 1));",
            "g = __rhadd((i32)g, (i32)GET(0)) + __uhadd(g, GET(1));", "g = __vcmpgtu4(g, GET(0)) ^ __vseteq2(g, GET(1));", "g += __clz((i32)GET(0)) * __popcll(h);",
        ))
        for _ in range(rng.randrange(3, 10))
    ]  # fmt: skip
    return "  " + "\n  ".join(lines)


def _copies(rng: random.Random, name: str, size: int, blocks: int) -> str:
    width = rng.choice((4, 8, 16) if size <= 512 else (4, 8))  # the static memory of a block
    words = width // 4
    return f"""  __shared__ __align__(16) u32 s[{size * words}];
  u32 from = (t * {words}) % (n & ~3u);
  from = n < 4 ? 0 : from & ~{words - 1}u;
  for (u32 k = 0; k < {words}; ++k) s[l * {words} + k] = 5;
  if (n >= 4) __pipeline_memcpy_async(&s[l * {words}], in + from, {width}, {rng.choice((0, 0, width // 2))});
  __pipeline_commit(); __pipeline_wait_prior(0);
  __syncthreads();
  for (u32 k = 0; k < {words}; ++k) h = h * 31 + s[(l * {rng.choice((1, 3))} + k) % {size * words}];
  __syncthreads();"""


def _stencil(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Rows that threads load side by side and backwards, whose stores meet later loads."""
    back = rng.choice(("i", "nt - 1 - i", "(i * 2) % nt", "i ^ 1"))
    keep = rng.choice(("", "volatile "))
    return f"""  __shared__ {keep}u32 row[{size + 4}];
  for (u32 i = l; i < {size + 4}; i += nt) row[i] = in[i % n];
  __syncthreads();
  for (u32 k = 0; k < {rng.randrange(1, 5)}; ++k) {{
    u32 i = l, v = row[{back} < {size} ? {back} : l] * 3 + row[l + 1] + row[l + {rng.randrange(4)}];
    __syncthreads();
    row[l] = v ^ k;
    {rng.choice(("", "if (l == 0) row[nt] = v;", "if (l < 4) row[nt + l] += 1;"))}
    __syncthreads();
    h = h * 17 + row[l];
  }}
  __syncthreads();"""


def _aliases(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Loads and stores of one array that may meet, in a loop, through global memory."""
    kind = rng.choice(("u32", "u16", "u8", "u64"))
    step = rng.choice((1, 1, 2, 4))
    return f"""__device__ {kind} {name}_a[{blocks * size * 4 + 8}];
//--
  {kind} *a = {name}_a + b * {size * 4};
  for (u32 k = 0; k < 4; ++k) a[k * nt + l] = ({kind})(GET(k) + k);
  __syncthreads();
  {kind} *p = a + l * 4, *q = p + (GET(2) & {rng.choice((0, 1, 3))});
  {rng.choice(("volatile ", "", ""))}{kind} *w = q;
  for (u32 k = 0; k + 1 < 4; k += {step}) {{ {kind} x = p[k]; if (w - p + k < 4) w[k] = ({kind})(x + p[k + 1] + 1); h = h * 31 + p[k] + p[3]; }}
  __syncthreads();
  for (u32 k = 0; k < 4; ++k) h = h * 7 + a[(l * 4 + k * 5) % (nt * 4)];
  __syncthreads();"""


PIECES: list[Callable[[random.Random, str, int, int], str]] = [
    _coordinates, _coordinates, _switch, _functions, _locals, _structs, _unrolled, _unrolled, _half2,
    _wide_loads, _atomics, _tickets, _shuffles, _votes, _counts, _bits, _copies, _stencil, _aliases,
]  # fmt: skip
