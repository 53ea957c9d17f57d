"""Pieces of the shape ``paths`` that are about memory: atomics that answer, structures, copies, barriers.

They are as those of :mod:`.path_pieces`.
"""

from __future__ import annotations

import random
from collections.abc import Callable

_INTS = ("u32", "i32", "u64", "i64", "u16", "i8")


def _answered(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Atomics on words of the thread's own, or sums of answers that no order changes."""
    kind = rng.choice(
        ("unsigned", "int", "unsigned long long", "float", "double", "unsigned short")
    )
    scope = rng.choice(("", "", "_block", "_system"))
    where = rng.choice(("shared", "global"))
    if kind == "unsigned short":
        names = [("CAS", "old, ({t})GET(1)"), ("CAS", "({t})GET(0), ({t})k")]
        scope = ""
    elif kind in ("float", "double"):
        names = [("Add", "({t})(i32)GET(0)"), ("Add", "({t})0.375"), ("Add", "({t})-1e-30")]
        names += [("Exch", "({t})GET(2)")] if kind == "float" else []
    else:
        names = [(op, "({t})GET64(4)") for op in ("Add", "Min", "Max", "And", "Or", "Xor", "Exch")]
        names += [("CAS", "old, ({t})GET(3)"), ("CAS", "({t})GET(0), ({t})GET(1)")]
        names += [("Sub", "({t})GET(0)")] if kind != "unsigned long long" else []
        names += [("Inc", "GET(2)"), ("Dec", "GET(0)")] if kind == "unsigned" else []
    calls: list[str] = []
    fold = {"float": "(u64)__float_as_uint(old)", "double": "(u64)__double_as_longlong(old)"}.get(
        kind, "(u64)old"
    )
    for _ in range(rng.randrange(2, 7)):
        op, values = rng.choice(names)
        guard = rng.choice(("", "", "if (GET(1) & 1) ", "if (lane != 3) "))
        calls.append(
            f"{guard}{{ old = atomic{op}{scope}(w, {values.format(t=kind)}); h = h * 31 + {fold}; }}"
        )
    body = "\n    ".join(calls)
    place = f"__shared__ {kind} s[{size}]; {kind} *w = &s[(l * {rng.choice((1, 1, 3, 5, 7)) if size % 105 and size % 3 and size % 5 and size % 7 else 1}) % {size}];"
    before = ""
    if where == "global":
        before = f"__device__ {kind} {name}_g[{size * blocks}];\n//--\n"
        place = f"{kind} *w = &{name}_g[t];"
    return f"""{before}  {place}
  *w = ({kind})(i32)GET(0); {kind} old = ({kind})0;
  for (u32 k = 0; k < {rng.choice(("1", "2", "(GET(2) & 3)"))}; ++k) {{
    {body}
  }}
  old = *w; h = h * 3 + {fold};
  __syncthreads();"""


def _packed(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Numbers and vectors at any byte of a structure, copied whole and in parts."""
    words, parts = (
        ["u64 c;", "u32 e;", "float f;", "double x;", "uint3 v;"],
        ["u16 d;", "u8 a;", "u8 z[5];"],
    )
    rng.shuffle(words)
    pack = rng.choice((1, 1, 2, 4))
    members = words + parts  # without gaps, whose bytes no copy need keep
    if pack == 1:
        rng.shuffle(members)
    head = "#pragma pack(push, {0})\nstruct {1}_s {{ {2} }};\n#pragma pack(pop)\n//--\n"
    where = rng.choice(("own", "shared"))
    length = 4 if where == "own" else min(size, 160)
    declared = (
        f"{name}_s own[{length}];"
        if where == "own"
        else f"__shared__ {name}_s s[{length}]; {name}_s *own = s;"
    )
    mine = "GET(2) & 3" if where == "own" else f"l % {length}"
    fill = f"for (u32 k = 0; k < {length}; ++k) {{ memset(&own[k], (int)(k + 3), sizeof own[k]); }}"
    guard = "" if where == "own" else f"if (l < {length}) "
    return (
        head.format(pack, name, " ".join(members))
        + f"""  {declared}
  {rng.choice(("", "__builtin_assume(n > 0);"))}
  if ({int(where == "own")} || l == 0) {fill}
  __syncthreads();
  {guard}{{
    {name}_s &m = own[{mine}];
    m.a = (u8)GET(0); m.c = GET64(4); m.d = (u16)GET(1); m.e = GET(3); m.f = (float)(i32)GET(2); m.x = (double)(i32)GET(0); m.v = make_uint3(GET(0), l, GET(1));
    u8 five[5]; memcpy(five, (const u8 *)&m + (GET(2) & 7), 5); memcpy(m.z, five, 5);
    {name}_s copy = m; copy.e ^= (u32)copy.c; copy.v.y += copy.z[1];
    m = copy; h = h * 31 + m.a + m.c + m.d + m.e + __float_as_uint(m.f) + (u64)__double_as_longlong(m.x) + m.v.x + m.v.y + m.z[3];
  }}
  __syncthreads();
  const u8 *bytes = (const u8 *)own; u64 word; u32 part;
  for (u32 k = 0; k < {rng.randrange(2, 6)}; ++k) {{
    u32 at = (GET(2) * {rng.choice((1, 3, 7))} + k * 5) % ({length} * (u32)sizeof({name}_s) - 16);
    memcpy(&word, bytes + at, 8); memcpy(&part, bytes + at + {rng.randrange(1, 9)}, 4); h = h * 33 + word; g ^= part + bytes[at + 15];
  }}
  __syncthreads();"""
    )


def _indexed(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Arrays of the lane's own, through pointers that functions are given."""
    kind, length = rng.choice(_INTS), rng.choice((5, 16, 33, 64))
    turns = rng.randrange(2, 9)
    return f"""static __device__ __noinline__ {kind} {name}_f({kind} *p, u32 from, u32 len) {{
  {kind} best = p[from % len]; u32 at = 0;
  for (u32 k = 0; k < len; ++k) if (p[(k * {rng.choice((1, 3))} + from) % len] {rng.choice("<>")} best) {{ best = p[(k * 3 + from) % len]; at = k; }}
  p[at] = ({kind})(best + at); return best;
}}
//--
  {kind} own[{length}], *p = own;
  for (u32 k = 0; k < {length}; ++k) own[k] = ({kind})((GET(0) >> (k & 15)) * (k + 1));
  for (u32 k = 0; k < {turns}; ++k) {{
    u32 skip = GET(2) % {length - 2}, len = {length} - skip;
    h = h * 31 + (u64){name}_f({rng.choice(("p + skip", "p", "&own[skip]"))}, GET(1) + k, {rng.choice(("len", "2 + (len > 4)"))});
    own[(GET(3) + k) % {length}] ^= ({kind})h;
    {rng.choice(("", "if (h & 1) { own[1] = own[0]; own[0] = 3; }", "p = own;"))}
  }}
  for (u32 k = 0; k < {length}; ++k) g = g * 7 + (u32)own[k];"""


def _staged(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Copies that run ahead of the loop that reads them."""
    stages = rng.choice((2, 3, 4)) if size <= 512 else 2
    turns = rng.randrange(2, 8)
    bar = "__syncthreads();"
    return f"""  __shared__ __align__(16) u32 s[{stages * size}];
  u32 to = (u32)__cvta_generic_to_shared(s + l), sum = 0;
  for (u32 k = 0; k < {stages}; ++k) s[k * {size} + l] = k;
  __syncthreads();
  for (u32 k = 0; k < {stages - 1}; ++k) {{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to + k * {size * 4}), "l"(in + (t + k * {rng.choice((1, 7, 64))}) % (n * 4)) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }}
  {rng.choice(("", "#pragma unroll 1", "#pragma unroll 4"))}
  for (u32 k = 0; k < {turns}; ++k) {{
    asm volatile("cp.async.wait_group {stages - 2};" ::: "memory"); {bar}
    sum = sum * 31 + s[(k % {stages}) * {size} + (l * {rng.choice((1, 3))} + k) % {size}]; {bar}
    u32 ahead = k + {stages - 1};
    if (ahead < {turns} {rng.choice(("", "&& (l & 1) == 0", "&& GET(2) != 3"))}) asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to + (ahead % {stages}) * {size * 4}), "l"(in + (t * 3 + ahead) % (n * 4)), "r"({rng.choice(("4", "(GET(2) & 1) * 4", "GET(2) % 5"))}) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }}
  asm volatile("cp.async.wait_all;" ::: "memory"); __syncthreads();
  h = h * 33 + sum;"""


def _phases(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """A barrier in memory, through several phases, by token or by parity."""
    warps = (size + 31) // 32
    by_warp = rng.random() < 0.4
    arrive = (
        'asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(bar) : "memory");'
    )
    if by_warp:
        arrive = f"__syncwarp(warp); if (lane == 0) {{ {arrive} }} "
    parity = rng.random() < 0.5 or by_warp
    test = (
        'mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }}" : "=r"(done) : "r"(bar), "r"(phase & 1)'
        if parity
        else 'mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }}" : "=r"(done) : "r"(bar), "l"(token)'
    ).replace("}}", "}")
    wait = f'{{ {arrive} u32 done = 0; while (!done) asm volatile("{{ .reg .pred p; {test} : "memory"); ++phase; }}'
    return f"""  __shared__ __align__(8) u64 where; __shared__ u32 s[{size}];
  u32 bar = (u32)__cvta_generic_to_shared(&where), phase = 0, a = GET(0); u64 token = 0; (void)token;
  if (l == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "r"({warps if by_warp else size}u) : "memory");
  __syncthreads();
  for (u32 k = 0; k < {rng.randrange(1, 5)}; ++k) {{
    s[(l + k) % {size}] = a;
    {wait}
    a = a * 3 + s[(l * {rng.choice((1, 3, 7))} + k) % {size}];
    {wait}
  }}
  h = h * 31 + a; g += phase;
  __syncthreads(); if (l == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" :: "r"(bar) : "memory");
  __syncthreads();"""


def _bulk(rng: random.Random, name: str, size: int, blocks: int) -> str:
    """Bulk copies with a count of bytes that a barrier waits for."""
    words = rng.choice((4, 32, 64, 100))
    turns = rng.randrange(1, 4)
    return f"""  __shared__ __align__(16) u32 s[{words}]; __shared__ __align__(8) u64 where;
  u32 bar = (u32)__cvta_generic_to_shared(&where), to = (u32)__cvta_generic_to_shared(s), bytes = n * 4 < {words // 4 * 4}u ? 16u : {words // 4 * 16}u; u64 sum = 0;
  for (u32 k = l; k < {words}; k += nt) s[k] = k;
  if (l == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();
  for (u32 k = 0; k < {turns}; ++k) {{
    if (l == 0 && n >= 4) {{
      u64 token; asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(bytes) : "memory");
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(to), "l"((u64)__cvta_generic_to_global(in) + k * 16 / (n < 64 ? 99 : 1)), "r"(bytes), "r"(bar) : "memory");
    }} else if (l == 0) {{ u64 token; asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(bar) : "memory"); }}
    u32 done = 0;
    while (!done) asm volatile("{{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }}" : "=r"(done) : "r"(bar), "r"(k & 1) : "memory");
    for (u32 j = 0; j < {words}; ++j) sum = sum * 31 + s[(j + l) % {words}];
    __syncthreads();
  }}
  h = h * 5 + sum; __syncthreads();"""


MEMORY: list[Callable[[random.Random, str, int, int], str]] = [
    _answered, _answered, _packed, _indexed, _staged, _phases, _bulk,
]  # fmt: skip
