"""Pieces of the shape ``paths``: what loops carry, carries, jumps, predicates, uniform values, calls.

A piece is as in :mod:`.launch_pieces`.  Streams 4 and 5 hold numbers of 64 bits.  All threads of a
block come past a piece, and operations of warps name the lanes that are there.
"""

from __future__ import annotations

import random
from collections.abc import Callable


def _carried(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """What a loop hands to its next turn comes from another lane and from shared memory."""
    kind = rng.choice(("u32", "u64", "i32", "u32"))
    trips = rng.choice(
        (f"{rng.randrange(2, 9)}", "1 + (b & 3)", "(in[0] & 7)", "__shfl_sync(warp, n & 7, 0)")
    )
    mix = rng.choice(
        (
            "a = c + w * 3;",
            "a = c > w ? c - w : w ^ k;",
            "a ^= w >> 3; c += a;",
            "a = w; c = c * 5 + a;",
        )
    )
    read = rng.choice((f"(l * {rng.choice((1, 3, 5))} + k) % {size}", f"(l + (u32)a) % {size}"))
    leave = rng.choice(("", "", "if (s[0] == 77) break;"))
    return f"""  __shared__ {kind} s[{size}];
  {kind} a = ({kind})GET(0), c = ({kind})GET64(4);
  s[l] = a; __syncthreads();
  for (u32 k = 0, most = {trips}; k < most; ++k) {{
    {kind} w = __shfl_sync(warp, a, (lane + {rng.randrange(1, 31)} + k) % lanes), d = s[{read}];
    {mix} c ^= d; {leave}
    __syncthreads(); s[l] = a + c; __syncthreads();
  }}
  h = h * 31 + (u64)a + (u64)c * 7;
  __syncthreads();"""


def _thinning(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Lanes leave a loop at turns of their own; those that are left work together."""
    trips = rng.choice(("GET(2) & 7", "(GET(3) >> 4) % 9", "lane % 5", "GET(0) & 3"))
    ops = [
        rng.choice((
            "a ^= __match_any_sync(live, a & 3);", "a += __popc(__ballot_sync(live, a & 1));",
            "a = a * 3 + __shfl_sync(live, a, nth_lane(live, k + lane));", "c += __shfl_sync(live, a, __ffs(live) - 1);",
            f"c ^= r_{rng.choice(('add', 'and', 'or', 'xor', 'min', 'max'))}(live, a);",
            "{ int all; a += __match_all_sync(live, c & 1, &all) + all; }", "if (__any_sync(live, a == 5)) c += 9; else c ^= a;",
            "s[l] = c; __syncwarp(live); a += s[(l & ~31u) + nth_lane(live, k)]; __syncwarp(live);",
            "{ u64 w = __shfl_sync(live, (u64)a << 32 | c, nth_lane(live, a)); a ^= (u32)(w >> 20); }",
        ))
        for _ in range(rng.randrange(2, 5))
    ]  # fmt: skip
    after = rng.choice(
        ("", "if (a & 4) c += k;", "if (c % 3 == 0) { a >>= 1; c += 2; } else a ^= c;")
    )
    return f"""  __shared__ u32 s[{size}]; (void)s;
  u32 a = GET(0), c = GET(3), live = warp, most = {trips};
  {rng.choice(("", "#pragma unroll 1"))}
  for (u32 k = 0; ; ++k) {{
    bool on = k < most; live = __ballot_sync(live, on); if (!on) break;
    {" ".join(ops)} {after}
  }}
  __syncwarp(warp);
  h = h * 33 + a; g ^= c;"""


def _partial(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Votes, matches and sums of the lanes of both arms, one in the other."""

    def ops(mask: str) -> str:
        return " ".join(
            rng.choice((
                "a ^= __ballot_sync(@, (c >> 2) & 1);", "c += __match_any_sync(@, a & 3);", "a += r_add(@, c);",
                "c ^= r_max(@, a) + (u32)r_min(@, (i32)c);", "a = __shfl_sync(@, a, nth_lane(@, c));", "c += __all_sync(@, a & 1) * 2 + __any_sync(@, c & 2);",
                "a ^= __match_any_sync(@, (u64)(c & 1) << 40 | (a & 1));", "c = c * 3 + __popc(@ & ((1u << lane) - 1));",
            ))
            for _ in range(rng.randrange(1, 4))
        ).replace("@", mask)  # fmt: skip

    one, two = rng.sample(
        ("GET(1) & 1", "lane < 11", "GET(2) % 3 == 0", "(a ^ c) & 2", "(i32)GET(0) < 0"), 2
    )
    return f"""  u32 a = GET(0), c = GET(3); bool p = {one}; u32 m = __ballot_sync(warp, p);
  if (p) {{
    {ops("m")}
    bool q2 = {two}; u32 m2 = __ballot_sync(m, q2);
    if (q2) {{ {ops("m2")} }} {rng.choice(("", "else { u32 o2 = m & ~m2; " + ops("o2") + " }"))}
    __syncwarp(m); {ops("m")}
  }} else {{ u32 o = warp & ~m; {ops("o")} }}
  __syncwarp(warp); {ops("warp")}
  h = h * 5 + a; g += c;"""


def _jumped(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """A machine of states: a dense switch in a loop, whose cases name the next state."""
    count = rng.choice((6, 9, 14, 20))
    cases: list[str] = []
    for k in range(count):
        body = rng.choice((
            "v = v * 5 + k;", "v ^= GET(3) >> (k & 7);", "w += v / (k + 3);", "v = (v << 7) | (v >> 25); w ^= v;", "w = own[v & 3]; own[k & 3] = v;",
            "if (v & 8) { w += 3; break; } v += w;", "for (u32 j = 0; j < (v & 3); ++j) w = w * 3 + j;", "w -= v; if (w & 1) goto end_NAME;",
        )).replace("NAME", name)  # fmt: skip
        to = rng.choice(
            (
                f"at = (at + 1 + (v & 1)) % {count};",
                f"at = v % {count};",
                f"at = {rng.randrange(count)} + (w & 1); at %= {count};",
            )
        )
        cases.append(f"      case {k}: {body} {to}{rng.choice((' break;', ' break;', ''))}")
    start = rng.choice((f"GET(2) % {count}", f"lane % {count}", f"b % {count}", "0"))
    return f"""  u32 at = {start}, v = GET(0), w = GET(1), own[4] = {{ 1, v, w, l }};
  for (u32 k = 0; k < {rng.choice(("12", "25", "(GET(2) & 15)"))}; ++k) {{
    switch (at) {{
{chr(10).join(cases)}
    }}
    w ^= k;
  }}
  end_{name}: h = h * 31 + v + own[v & 3]; g ^= w;"""


def _tangled(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Loops that are entered at several places, and left from inside of others."""
    count = rng.randrange(3, 7)
    parts: list[str] = []
    for k in range(count):
        work = rng.choice(
            (
                "v = v * 3 + w;",
                "w ^= v >> 5;",
                "v += GET(3) & 0xFF; w++;",
                "w = w * 7 + lane;",
                "v = (v >> 1) ^ (v & 1 ? 0xEDB88320u : 0);",
            )
        )
        tests = [
            f"if ({rng.choice(('v & 1', 'w & 2', '(v ^ w) & 4', 'v > w', '(i32)v < 0', 'w % 3 == 0'))}) goto {name}_{rng.randrange(count)};"
            for _ in range(rng.randrange(1, 3))
        ]
        parts.append(
            f"  {name}_{k}: if (++turns > {rng.choice((9, 17, 30))}) goto {name}_end; {work} {' '.join(tests)}"
        )
    way = " ".join(f"case {k}: goto {name}_{rng.randrange(count)};" for k in range(3))
    return f"""  u32 v = GET(0), w = GET(1), turns = 0;
  switch (GET(2) % 4) {{ {way} }}
{chr(10).join(parts)}
  {name}_end: h = h * 37 + v; g += w ^ turns;"""


def _carries(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Numbers of 128 and 160 bits by carries, and what their comparisons decide together.

    The PTX copies its inputs first: nvcc may keep one in the register of a result that is written early.
    """
    lines = [
        rng.choice((
            'asm("{ .reg .u32 i, j, k; mov.u32 i, %5; mov.u32 j, %6; mov.u32 k, %7; add.cc.u32 %0, %0, i; addc.cc.u32 %1, %1, j; addc.cc.u32 %2, %2, k; addc.cc.u32 %3, %3, 0; addc.u32 %4, %4, 0; }" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]), "+r"(x[4]) : "r"(y[0]), "r"(y[1]), "r"(y[2]));',
            'asm("{ .reg .u32 i, j, k; mov.u32 i, %5; mov.u32 j, %6; mov.u32 k, %7; sub.cc.u32 %0, %0, i; subc.cc.u32 %1, %1, j; subc.cc.u32 %2, %2, k; subc.cc.u32 %3, %3, 0; subc.u32 %4, %4, 0; }" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]), "+r"(x[4]) : "r"(y[0]), "r"(y[1]), "r"(y[2]));',
            'asm("{ .reg .u32 i, j, k; mov.u32 i, %5; mov.u32 j, %6; mov.u32 k, %7; mad.lo.cc.u32 %0, i, j, %0; madc.hi.cc.u32 %1, i, j, %1; madc.lo.cc.u32 %2, i, k, %2; madc.hi.cc.u32 %3, i, k, %3; addc.u32 %4, %4, 0; }" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]), "+r"(x[4]) : "r"(y[0]), "r"(y[1]), "r"(y[3]));',
            'asm("{ .reg .u64 i, j; mov.u64 i, %2; mov.u64 j, %3; mad.lo.cc.u64 %0, i, j, %0; madc.hi.u64 %1, i, j, %1; }" : "+l"(p), "+l"(q2) : "l"(p ^ y[0]), "l"(q2 | 5));',
            'asm("{ .reg .u64 i, j; mov.u64 i, %2; mov.u64 j, %3; add.cc.u64 %0, %0, i; addc.u64 %1, %1, j; }" : "+l"(p), "+l"(q2) : "l"(q2), "l"((u64)x[4]));',
            "wide = wide * (((unsigned __int128)p << 64) | q2) + x[1];", "wide = (wide << (y[1] & 127)) ^ (wide >> (x[0] & 127));",
            "wide -= ((unsigned __int128)q2 << 40) + p;", "if ((__int128)wide < (__int128)p) x[2] ^= 9;", "if (wide > ((unsigned __int128)x[3] << 70)) y[2] += 3; else y[3] ^= x[1];",
            "p = (u64)(wide >> 64); q2 ^= (u64)wide;", "y[0] = x[4] ^ y[3]; y[1] += x[2]; y[2] = x[0] - y[2];",
            "{ bool u = x[0] < y[0], v = (i64)p < (i64)q2, w = (x[1] & y[1]) != 0; if ((u && !v) ^ w) y[3]++; if ((u | v) & (w ^ 1)) x[3] -= 5; q2 += (u ? v : w) + 2 * ((u + v + w) > 1); }",
            "x[4] += p + y[0] < p; x[3] += (i32)(y[1] - x[1]) < 0;", "p = __umul64hi(p, q2) + (u64)x[0] * y[0]; q2 += p < (u64)y[2];",
        ))
        for _ in range(rng.randrange(4, 10))
    ]  # fmt: skip
    return f"""  u32 x[5] = {{ GET(0), GET(1), GET(3), ~GET(0), 1 }}, y[4] = {{ GET(3), GET(0) | 1, ~0u, GET(1) }};
  u64 p = GET64(4), q2 = h ^ 0x8000000000000000ull; unsigned __int128 wide = ((unsigned __int128)p << 64) | GET64(4);
  {rng.choice(("", "#pragma unroll 1"))}
  for (u32 k = 0; k < {rng.choice(("1", "3", "(GET(2) & 3)"))}; ++k) {{
    {(chr(10) + "    ").join(lines)}
  }}
  for (u32 k = 0; k < 5; ++k) h = h * 31 + x[k];
  h ^= p + q2 * 3 + (u64)wide + (u64)(wide >> 64) * 5; g += y[0] ^ y[1] ^ y[2] ^ y[3];"""


def _predicates(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Eight answers of comparisons, and random functions of them."""
    tests = (
        "GET(0) < GET(3)", "(i32)GET(0) < (i32)GET(1)", "GET64(4) > h", "(i64)GET64(4) <= (i64)GET(0)", "(GET(2) & 5) == 1", "l > 40", "(b & 1) != 0",
        "(i16)GET(1) == (i16)GET(0)", "(i8)GET(3) < 0", "lane == (GET(2) & 31)", "n > 100u", "__uint_as_float(GET(6)) < 1.0f", "isnan(__uint_as_float(GET(6)))",
        "(GET(0) ^ GET(1)) % 3 == 1", "threadIdx.x < blockDim.x / 2",
    )  # fmt: skip
    chosen = rng.sample(tests, 8)
    head = " ".join(f"bool p{k} = {test};" for k, test in enumerate(chosen))

    def some(depth: int = 0) -> str:
        if depth > 2 or rng.random() < 0.2:
            return rng.choice("!~").replace("~", "") + f"p{rng.randrange(8)}"
        a, c = some(depth + 1), some(depth + 1)
        return rng.choice(
            (
                f"({a} && {c})",
                f"({a} || {c})",
                f"({a} ^ {c})",
                f"({a} ? {c} : {some(depth + 1)})",
                f"({a} == {c})",
            )
        )

    lines = [
        rng.choice((
            f"p{rng.randrange(8)} = {some()};", f"if ({some()}) g += {rng.randrange(99)};", f"h = {some()} ? h * 3 : h + 5;",
            f"if ({some()}) {{ h ^= g; p{rng.randrange(8)} = {some()}; }} else g -= 3;", f"g ^= (u32){some()} << {rng.randrange(32)};",
            f"p{rng.randrange(8)} = __any_sync(warp, {some()});", f"g += __ballot_sync(warp, {some()});",
        ))
        for _ in range(rng.randrange(5, 14))
    ]  # fmt: skip
    return (
        f"  {head}\n  "
        + "\n  ".join(lines)
        + "\n  h = h * 2 + p0 + p1 * 3 + p2 * 5 + p3 * 7 + p4 * 11 + p5 * 13 + p6 * 17 + p7 * 19;"
    )


def _uniform(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Numbers that a block shares, in loops and branches of their own, beside those of lanes."""
    lines = [
        rng.choice((
            "u = u & 1 ? u * 3 + 1 : u / 2;", "u ^= (u << 5) + w;", "w = __popc(u) + __clz((i32)w) + (w >> 3);", "y = y * u + w; u += (u32)(y >> 33);",
            "if (u > w) { w += 7; a ^= u; } else u += k;", "a = a * 5 + u; v ^= a >> (w & 15);", "w = min(u, w) ^ max((i32)u, 9);", "y = (i64)y >> (u & 63); w -= (u32)y;",
            f"u = {name}_c[(u + k) & 7] + w;", "if ((u & w) == 0) v += GET(w & 1); else a -= u;", "w = __byte_perm(u, w, 0x2103) + __brev(u);", "y += (u64)u * w; u = (u32)(y % 1000003u);",
            "for (u32 j = 0; j < (w & 3); ++j) { u += j * w; a ^= u; }", "if (w & 4) { if (u & 8) break; v += 3; }", "s[u % 8] = w + u; __syncthreads(); w ^= s[w % 8] & 0xFF; __syncthreads();",
            "u = __shfl_sync(warp, u + 1, 0); a += u;", "u += __ballot_sync(warp, w & 1) & 1;", "w = (u32)(((u64)u << 32 | w) >> (k & 31)); v += u < w;",
        ))
        for _ in range(rng.randrange(4, 10))
    ]  # fmt: skip
    values = ", ".join(f"{rng.getrandbits(31)}u" for _ in range(8))
    return f"""__constant__ u32 {name}_c[8] = {{ {values} }};
//--
  __shared__ u32 s[8]; if (l < 8) s[l] = l * 3; for (u32 k = nt + l; k < 8; k += nt) s[k] = k * 3; __syncthreads();
  u32 u = b * {rng.randrange(3, 99)} + n, w = {rng.choice(("gridDim.x", "in[b & 1]", "n ^ b", f"{name}_c[b & 7]"))}, a = GET(0), v = GET(1);
  u64 y = ((u64)n << 33) + {rng.choice(("b", "in[0]", "7"))};
  {rng.choice(("", "#pragma unroll 1"))}
  for (u32 k = 0; k < {rng.choice(("3", "(n & 7) + 1", "(b % 5)", "6"))}; ++k) {{
    {(chr(10) + "    ").join(lines)}
  }}
  h = h * 31 + a + y; g ^= u + w * 3 + v;
  __syncthreads();"""


def _pointed(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Functions by pointers, which call others by pointers, with structures in and out."""
    count = rng.randrange(2, 6)
    inner = "".join(
        f"static __device__ __noinline__ u32 {name}_i{k}(u32 a, u64 c) {{ {rng.choice(('return a * 3 + (u32)c;', 'for (u32 j = 0; j < (a & 7); ++j) c = c * 5 + j; return (u32)(c >> 9);', 'u32 o[4] = { a, 1, 2, (u32)c }; return o[a & 3] ^ o[c & 3];', 'if (a & 1) return (u32)c; return a / ((u32)c | 1);'))} }}\n"
        for k in range(count)
    )
    inner += f"static __device__ u32 (*const {name}_it[{count}])(u32, u64) = {{ {', '.join(f'{name}_i{k}' for k in range(count))} }};\nstruct {name}_p {{ u64 x; u32 y; u32 z; }};\n"
    outer = "".join(
        f"static __device__ __noinline__ {name}_p {name}_o{k}({name}_p p, u32 a) {{ {rng.choice(('p.x = p.x * 3 + I(a, p.x);', 'for (u32 j = 0; j < (a & 3); ++j) p.y ^= I(p.y + j, p.x + j);', 'if (p.z & 1) p.z = I(p.z, a); else p.y += I(a, p.y) * 3;', 'u32 t = I(a, 5); p.z += t; p.x ^= (u64)t << 20;'))} p.z += {k}; return p; }}\n".replace(
            "I(", f"{name}_it[(a + {k}) % {count}]("
        )
        for k in range(2)
    )
    by = rng.choice(("(p.z + k) & 1", "l & 1", "(l >> 5) & 1", "k & 1", "(u32)(p.x >> 3) & 1"))
    return f"""{inner}{outer}static __device__ {name}_p (*const {name}_ot[2])({name}_p, u32) = {{ {name}_o0, {name}_o1 }};
//--
  {name}_p p = {{ GET64(4), GET(0), GET(2) }};
  for (u32 k = 0; k < {rng.randrange(1, 5)}; ++k) p = {name}_ot[{by}](p, GET(3) + k);
  h = h * 3 + p.x + p.y; g += p.z;"""


PIECES: list[Callable[[random.Random, str, int, int], str]] = [
    _carried, _carried, _thinning, _thinning, _partial, _partial, _jumped, _jumped, _tangled, _carries, _carries,
    _predicates, _predicates, _uniform, _uniform, _pointed,
]  # fmt: skip


def recursive(rng: random.Random, name: str) -> str:
    """Functions that call each other; for the end of a kernel, since lanes may come back apart."""
    one = rng.choice(
        (
            "return a * 3 + d;",
            "return (u32)(a >> 3) ^ d;",
            "u32 o[4] = { 1, d, 3, (u32)a }; return o[a & 3];",
        )
    )
    two = rng.choice(
        (
            f"u64 r = {name}_b(a / 2 + d, d - 1); return r + (a & 4 ? {name}_a(r, d - 1) : 3);",
            f"u64 r = a; for (u32 k = 0; k < (a & 1) + 1; ++k) r = r * 5 + {name}_b(r + k, d - 1); return r;",
            f"u32 own[3] = {{ (u32)a, d, 7 }}; u64 r = {name}_b(own[d % 3] + a, d - 1); return r ^ own[(r & 1) + 1];",
        )
    )
    three = rng.choice(
        (
            f"if (a & 1) return {name}_a(a * 3 + 1, d - 1) + d; return {name}_a(a >> 1, d - 1) * 3;",
            f"return d & 1 ? {name}_a(a ^ d, d - 1) : a + {name}_b(a + 1, d - 1);",
        )
    )
    return f"""static __device__ u64 {name}_b(u64, u32);
static __device__ __noinline__ u64 {name}_a(u64 a, u32 d) {{ if (d == 0) {{ {one} }} {two} }}
static __device__ __noinline__ u64 {name}_b(u64 a, u32 d) {{ if (d == 0) return a + 1; {three} }}
//--
  h = h * 31 + {name}_a(GET64(4), GET(2) % {rng.randrange(3, 7)});"""
