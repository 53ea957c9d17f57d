"""Shape ``features``: a feature of CUDA C++ a kernel, with drawn sizes, types and operators."""

from __future__ import annotations

import random
from collections.abc import Callable

from .kernel import Kernel, named

_INTS = ("u32", "i32", "u64", "i64", "u16", "i8")
_HEAD = 'extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{\n  u32 t = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x; (void)l;\n'


def _kernel(name: str, before: str, body: str, slots: str = "rr", **more: object) -> Kernel:
    text = before + _HEAD.format(name=name) + body + "\n}"
    return Kernel(name, "features", text, slots, "isir", **more)  # type: ignore[arg-type]


def _prints(rng: random.Random, name: str) -> Kernel:
    formats = rng.sample((
        '"%d %u %x|", (i32)IN(0), IN(1), IN(2)', '"%5d|%-8u|%08X|", (i32)IN(0), IN(3), IN(2)',
        '"%lld %llu %llx|", (i64)IN64(0), IN64(2), IN64(0)', '"%c%s|", 65 + (int)(t & 15), (t & 1) ? "odd" : "even"',
        '"%g %e %.3f|", (double)(i32)IN(0), 1.0 / (1 + t), (double)(t * 0.25f)', '"%%%p|", (void *)0x1234',
        '"%hd %i %+d % d|", (i32)(i16)IN(0), (i32)t, (i32)t, (i32)IN(3)', '"%7d|%.2f|", (i32)t, t * 0.5',
        '"%o %#x %#o|", IN(0), IN(3), IN(2)',
    ), 3)  # fmt: skip
    fixed: list[str] = []
    for k, f in enumerate(formats):
        text, _, rest = f.partition(", ")
        guard = rng.choice(("", "if (IN(1) & 1) ", "if (t % 3 == 0) "))
        fixed.append(
            f'  {guard}r += printf("%u.{k} " {text} "\\n", t{", " + rest if rest else ""});'
        )
    return _kernel(name, "", "  int r = 0;\n" + "\n".join(fixed) + "\n  PUT(0, (u32)r);", "r",
                   headers=("cstdio",), prints=True)  # fmt: skip


def _heap(rng: random.Random, name: str) -> Kernel:
    size = rng.choice((1, 4, 17, 64))
    kind = rng.choice(("u32", "u64", "u8"))
    return _kernel(name, "", f"""  {kind} *p = ({kind} *)malloc((IN(1) % {size} + 1) * sizeof({kind})), *q = 0;
  if (t & {rng.choice((1, 2, 4))}) q = new {kind}[{size}];
  u32 h = p != 0;
  if (p) for (u32 k = 0; k <= IN(1) % {size}; ++k) p[k] = ({kind})(IN(0) * (k + 1) + t);
  if (q) for (u32 k = 0; k < {size}; ++k) q[k] = ({kind})(k ^ t);
  if (p) for (u32 k = 0; k <= IN(1) % {size}; ++k) h = h * 31 + (u32)p[k];
  if (q) for (u32 k = 0; k < {size}; ++k) h = h * 37 + (u32)q[k];
  free(p); delete[] q;
  PUT(0, h);""", "r")  # fmt: skip


def _asserts(rng: random.Random, name: str) -> Kernel:
    tail = rng.choice(
        (
            "",
            '\n  if (t == 5) printf("five %d\\n", (int)h);',
            "\n  void *p = malloc(16); h += p != 0; free(p);",
        )
    )
    return _kernel(name, "#undef NDEBUG\n", f"""  u32 h = IN(0);
  assert(t < 128 && n == 128);
  if (IN(1) & 1) {{ assert(IN(1) < {rng.choice((40, 64))}); h ^= 5; }}{tail}
  assert(blockDim.x == 64);
  PUT(0, h);""", "r", headers=("cassert", "cstdio"), prints=True)  # fmt: skip


def _shared(rng: random.Random, name: str) -> Kernel:
    kind = rng.choice(_INTS)
    dynamic = rng.random() < 0.5
    size = rng.choice((64, 128, 256))
    where = (
        f"extern __shared__ u64 raw[]; {kind} *s = ({kind} *)raw;"
        if dynamic
        else f"__shared__ {kind} s[{size}];"
    )
    return _kernel(name, "", f"""  {where}
  for (u32 k = l; k < {size}; k += 64) s[k] = ({kind})(IN(0) + k * 3);
  __syncthreads();
  u64 h = 0;
  for (u32 k = 0; k < {rng.randrange(2, 7)}; ++k) {{
    {kind} v = s[(l * {rng.choice((1, 3, 5, 17))} + IN(1) + k) % {size}];
    __syncthreads();
    s[(l + k) % {size}] = ({kind})(v {rng.choice("+^*-")} k);
    __syncthreads();
    h = h * 31 + (u64)s[l ^ {rng.randrange(64)}];
    __syncthreads();
  }}
  PUT64(0, h)""", shared=2048 if dynamic else 0)  # fmt: skip


def _reduction(rng: random.Random, name: str) -> Kernel:
    kind = rng.choice(("u32", "i32", "u64", "i64"))
    join = rng.choice(("a + b", "a ^ b", "min(a, b)", "max(a, b)", "a & b", "a * b"))
    volatile = rng.choice(("", "volatile "))
    return _kernel(name, f"static __device__ {kind} {name}_join({kind} a, {kind} b) {{ return {join}; }}\n", f"""  __shared__ {volatile}{kind} s[64];
  s[l] = ({kind})IN64(0);
  __syncthreads();
  for (u32 o = 32; o > 0; o >>= 1) {{
    if (l < o) s[l] = {name}_join(s[l], s[l + o]);
    __syncthreads();
  }}
  {kind} r = s[0];
  {kind} w = ({kind})IN(2);
  for (int o = 16; o; o >>= 1) w = {name}_join(w, __shfl_xor_sync(~0u, w, o));
  PUT64(0, (u64)r) PUT64(2, (u64)w)""", "rrrr")  # fmt: skip


def _named(rng: random.Random, name: str) -> Kernel:
    a, b = rng.sample(range(1, 16), 2)
    return _kernel(name, "", f"""  __shared__ u32 s[64];
  s[l] = IN(0);
  if (l < 32) {{
    asm volatile("bar.sync {a}, 64;" ::: "memory");
    s[l] += s[l + 32];
    asm volatile("bar.arrive {b}, 64;" ::: "memory");
  }} else {{
    asm volatile("bar.arrive {a}, 64;" ::: "memory");
    asm volatile("bar.sync {b}, 64;" ::: "memory");
    s[l] ^= s[l - 32];
  }}
  __syncthreads();
  u32 p, c = IN(1) & 1;
  asm volatile("{{ .reg .pred q, r; setp.ne.u32 q, %1, 0; barrier.red.{rng.choice(("or", "and"))}.pred r, {a}, 64, q; selp.u32 %0, 1, 0, r; }}" : "=r"(p) : "r"(c));
  u32 z;
  asm volatile("{{ .reg .pred q; setp.ne.u32 q, %1, 0; barrier.red.popc.u32 %0, {b}, 64, q; }}" : "=r"(z) : "r"(c));
  PUT(0, s[l ^ {rng.randrange(64)}]); PUT(1, p + z * 2);""")  # fmt: skip


def _groups(rng: random.Random, name: str) -> Kernel:
    tile = rng.choice((2, 4, 8, 16, 32))
    return _kernel(name, "", f"""  namespace cg = cooperative_groups;
  cg::thread_block block = cg::this_thread_block();
  auto part = cg::tiled_partition<{tile}>(block);
  u32 v = IN(0), h = part.thread_rank() + part.meta_group_rank() * 100;
  h ^= part.shfl_xor(v, 1) + part.shfl(v, IN(1) % {tile}) * 3;
  h += part.ballot(v & 1) + part.any(v & 2) + part.all(v & 4) * 2;
  h ^= cg::reduce(part, v, cg::{rng.choice(("plus", "less", "greater", "bit_xor", "bit_and"))}<u32>());
  block.sync();
  if (v & {rng.choice((1, 3, 8))}) {{
    cg::coalesced_group g = cg::coalesced_threads();
    h += g.size() * 0 + 1;
  }}
  auto half = cg::labeled_partition(part, v & 1);
  h ^= half.size() + half.thread_rank() * 5;
  PUT(0, h);""", "r", headers=("cooperative_groups.h", "cooperative_groups/reduce.h"))  # fmt: skip


def _grid(rng: random.Random, name: str) -> Kernel:
    return _kernel(name, f"__device__ u32 {name}_g[128];\n", f"""  namespace cg = cooperative_groups;
  cg::grid_group grid = cg::this_grid();
  u32 v = IN(0);
  for (u32 k = 0; k < {rng.randrange(1, 4)}; ++k) {{
    {name}_g[t] = v;
    grid.sync();
    v = v * 3 + {name}_g[(t + {rng.randrange(1, 127)}) & 127];
    grid.sync();
  }}
  PUT(0, v); PUT(1, (u32)grid.size());""", cooperative=True, headers=("cooperative_groups.h",))  # fmt: skip


def _recursion(rng: random.Random, name: str) -> Kernel:
    kind = rng.choice(("u32", "u64"))
    return _kernel(name, f"""static __device__ __noinline__ {kind} {name}_r({kind} a, u32 deep) {{
  u32 own[{rng.choice((2, 4, 8))}]; own[a & 1] = (u32)a; own[~a & 1] = deep;
  if (deep == 0) return a + {rng.randrange(9)};
  if (a & 1) return {name}_r(a * 3 + 1, deep - 1) ^ own[deep & 1];
  {kind} b = {name}_r(a / 2, deep - 1);
  return b + (deep > 3 ? {name}_r(a + 1, deep - 3) : own[0]);
}}
""", f"  u64 h = {name}_r(({kind})IN64(0), IN(1) % {rng.randrange(5, 10)});\n  PUT64(0, h)")  # fmt: skip


def _pointers(rng: random.Random, name: str) -> Kernel:
    count = rng.choice((2, 3, 4, 8))
    functions = "".join(
        f"static __device__ __noinline__ u32 {name}_f{k}(u32 a, u32 b) {{ return a {rng.choice('+-*^|&')} (b {rng.choice('+^')} {rng.randrange(99)}); }}\n"
        for k in range(count)
    )
    table = ", ".join(f"{name}_f{k}" for k in range(count))
    return _kernel(name, functions + f"typedef u32 (*{name}_t)(u32, u32);\n__device__ {name}_t const {name}_a[{count}] = {{ {table} }};\n", f"""  u32 v = IN(0), w = IN(1);
  for (u32 k = 0; k < {rng.randrange(1, 6)}; ++k) v = {name}_a[(v + w + k) % {count}](v, w + k);
  PUT(0, v);""", "r")  # fmt: skip


def _virtual(rng: random.Random, name: str) -> Kernel:
    return _kernel(name, f"""struct {name}_A {{ u32 x; __device__ {name}_A(u32 y) : x(y) {{}} __device__ virtual u32 go(u32 a) {{ return x + a; }} __device__ virtual ~{name}_A() {{}} }};
struct {name}_B : {name}_A {{ __device__ {name}_B(u32 y) : {name}_A(y) {{}} __device__ u32 go(u32 a) override {{ return x {rng.choice('*^-')} a; }} }};
struct {name}_C : {name}_B {{ u32 z; __device__ {name}_C(u32 y) : {name}_B(y), z(y * 3) {{}} __device__ u32 go(u32 a) override {{ return {name}_B::go(a) + z; }} }};
""", f"""  {name}_A a(IN(0)); {name}_B b(IN(2)); {name}_C c(t);
  {name}_A *p = IN(1) % 3 == 0 ? &a : IN(1) % 3 == 1 ? (({name}_A *)&b) : (({name}_A *)&c);
  PUT(0, p->go(IN(3)) ^ p->go(t));""", "r")  # fmt: skip


def _locals(rng: random.Random, name: str) -> Kernel:
    kind, size = rng.choice(_INTS), rng.choice((3, 7, 16, 33, 100))
    return _kernel(name, "", f"""  {kind} a[{size}];
  for (u32 k = 0; k < {size}; ++k) a[k] = ({kind})(IN(0) * k + t);
  for (u32 k = 0; k < {rng.randrange(2, 20)}; ++k) {{
    u32 i = (IN(1) + k * {rng.choice((1, 5, 7))}) % {size}, j = (u32)a[i] % {size}u;
    {kind} x = a[i]; a[i] = a[j]; a[j] = ({kind})(x + k);
  }}
  u64 h = 0;
  for (u32 k = 0; k < {size}; ++k) h = h * 31 + (u64)a[k];
  PUT64(0, h)""")  # fmt: skip


def _constants(rng: random.Random, name: str) -> Kernel:
    kind, size = rng.choice(_INTS), rng.choice((5, 16, 64, 256))
    values = ", ".join(f"({kind}){rng.getrandbits(40)}ull" for _ in range(size))
    return _kernel(name, f"__constant__ {kind} {name}_c[{size}] = {{ {values} }};\n__constant__ u32 {name}_k = {rng.getrandbits(31)};\n", f"""  u64 h = {name}_k;
  for (u32 k = 0; k < {rng.randrange(1, 8)}; ++k) h = h * 7 + (u64){name}_c[(IN(1) * k + h) % {size}];
  h ^= (u64){name}_c[{rng.randrange(size)}];
  PUT64(0, h)""")  # fmt: skip


def _vectors(rng: random.Random, name: str) -> Kernel:
    kind = rng.choice(
        ("uint4", "uint2", "int4", "ushort4", "uchar4", "ulonglong2", "short2", "char4")
    )
    width = {
        "uint4": 4,
        "uint2": 2,
        "int4": 4,
        "ushort4": 4,
        "uchar4": 4,
        "ulonglong2": 2,
        "short2": 2,
        "char4": 4,
    }[kind]
    parts = "xyzw"[:width]
    load = rng.choice(("p[i]", "__ldg(p + i)", "__ldcs(p + i)", "__ldcg(p + i)", "__ldca(p + i)"))
    keep = "".join(f" h = h * 31 + (u64)v.{c};" for c in parts)
    change = "".join(f" v.{c} += {rng.randrange(9)};" for c in parts)
    return _kernel(name, f"__device__ {kind} {name}_v[128];\n", f"""  const {kind} *p = (const {kind} *)in;
  u32 i = (t * {rng.choice((1, 3))}) % (512 * 4 / (u32)sizeof({kind}));
  {kind} v = {load};
  u64 h = 0;{keep}{change}
  {name}_v[t] = v; __syncthreads();
  v = *(volatile u32 *)&out[t] == 0 ? {name}_v[t ^ {rng.choice((1, 2, 32))}] : v;{keep}
  PUT64(0, h)""")  # fmt: skip


def _atomics(rng: random.Random, name: str) -> Kernel:
    kind = rng.choice(("u32", "i32", "u64"))
    op = rng.choice(("Add", "Min", "Max", "And", "Or", "Xor"))
    t = {"u32": "unsigned", "i32": "int", "u64": "unsigned long long"}[kind]
    start = {"Min": "~0ull >> 1", "And": "~0ull", "Max": "0"}.get(op, "7")
    scope = rng.choice(("", "", "_block", "_system"))
    return _kernel(name, f"__device__ {t} {name}_g[8];\n", f"""  __shared__ {t} s[8];
  if (l < 8) s[l] = ({t})({start});
  if (l < 4) {name}_g[l + blockIdx.x * 4] = ({t})({start});
  __syncthreads();
  if (IN(1) % {rng.randrange(2, 5)}) atomic{op}{scope}(&s[IN(1) & 7], ({t})IN64(0));
  atomic{op}{scope}(&{name}_g[(IN(1) & 3) + blockIdx.x * 4], ({t})IN64(2));
  atomic{op}(&s[{rng.randrange(8)}], ({t})t);
  __syncthreads();
  PUT64(0, (u64)s[l & 7]) PUT64(2, (u64){name}_g[(l & 3) + blockIdx.x * 4])""", "rrrr")  # fmt: skip


def _cas(rng: random.Random, name: str) -> Kernel:
    kind = rng.choice(("unsigned", "unsigned long long"))
    return _kernel(name, f"__device__ {kind} {name}_g[2];\n__device__ unsigned {name}_lock[2], {name}_sum[2];\n", f"""  {kind} *p = &{name}_g[blockIdx.x], old = *(volatile {kind} *)p, seen;
  do {{ seen = old; old = atomicCAS(p, seen, seen + (IN(0) & 0xFF) + 1); }} while (old != seen);
  for (bool done = false; !done;) {{
    if (atomicExch(&{name}_lock[blockIdx.x], 1) == 0) {{
      *(volatile unsigned *)&{name}_sum[blockIdx.x] += IN(1) * {rng.randrange(1, 9)};
      __threadfence();
      atomicExch(&{name}_lock[blockIdx.x], 0);
      done = true;
    }}
  }}
  __syncthreads();
  PUT64(0, (u64)*(volatile {kind} *)p) PUT(2, *(volatile unsigned *)&{name}_sum[blockIdx.x]);""", "rrr")  # fmt: skip


def _copies(rng: random.Random, name: str) -> Kernel:
    size = rng.choice((4, 8, 16))
    short = rng.choice([k for k in range(0, size + 1, 1)])
    mode = rng.choice(("ca", "cg")) if size == 16 else "ca"
    return _kernel(name, "", f"""  __shared__ __align__(16) u32 s[64 * 4];
  for (u32 k = 0; k < 4; ++k) s[l * 4 + k] = 0xEEEEEEEE;
  u32 bytes = {rng.choice((str(short), f"IN(1) % {size + 1}", str(size)))};
  u32 to = (u32)__cvta_generic_to_shared(&s[l * 4]);
  asm volatile("cp.async.{mode}.shared.global [%0], [%1], {size}, %2;" :: "r"(to), "l"(in + t * 4), "r"(bytes) : "memory");
  {rng.choice(('asm volatile("cp.async.wait_all;" ::: "memory");', 'asm volatile("cp.async.commit_group;" ::: "memory"); asm volatile("cp.async.wait_group 0;" ::: "memory");'))}
  __syncthreads();
  u32 m = l ^ {rng.randrange(64)};
  PUT(0, s[m * 4]); PUT(1, s[m * 4 + 1]); PUT(2, s[m * 4 + 2]); PUT(3, s[m * 4 + 3]);""", "rrrr", oldest=80)  # fmt: skip


def _wide(rng: random.Random, name: str) -> Kernel:
    lines = "\n".join(
        "  " + rng.choice((
            "a = a * b + c;", "b = (u64)((i64)a / (i64)(c | 1));", "c = a % (b | 1);", "a ^= b >> (c & 63);",
            "b += a << (c & 63);", "c = __umul64hi(a, b);", "a = (u64)__mul64hi((i64)b, (i64)c);",
            "if ((i64)a < (i64)b) { u64 x = a; a = b; b = x; }", "c = a > b ? a - b : b - a;",
            "b = __brevll(a) + __clzll((i64)c);", "a = (u64)(double)(i64)b;", "c += (u64)(float)(a >> 40);",
        ))
        for _ in range(rng.randrange(4, 12))
    )  # fmt: skip
    return _kernel(
        name,
        "",
        f"  u64 a = IN64(0), b = IN64(2), c = t * 0x123456789ull;\n{lines}\n  PUT64(0, a) PUT64(2, b ^ c)",
        "rrrr",
    )


def _generic(rng: random.Random, name: str) -> Kernel:
    """A pointer that may lead to any memory."""
    return _kernel(name, f"__device__ u32 {name}_g[128];\n__constant__ u32 {name}_k[4] = {{ 9, 8, 7, 6 }};\n", f"""  __shared__ u32 s[64];
  u32 own[4] = {{ IN(0), t, IN(2), 5 }};
  s[l] = IN(0) + 1; {name}_g[t] = IN(2); __syncthreads();
  const u32 *p = IN(1) % 4 == 0 ? &s[l] : IN(1) % 4 == 1 ? &{name}_g[t] : IN(1) % 4 == 2 ? &own[IN(1) & 3] : &{name}_k[l & 3];
  u32 h = *p + (__isShared(p) ? 1000 : 0) + (__isGlobal(p) && IN(1) % 4 == 1 ? 2000 : 0) + (__isLocal(p) ? 4000 : 0);
  u32 *q = IN(1) & 1 ? &{name}_g[t] : &own[l & 3];
  *q = h * {rng.randrange(3, 99)}; h += own[0] + own[1] + own[2] + own[3] + {name}_g[t];
  PUT(0, h);""", "r")  # fmt: skip


def _bytes(rng: random.Random, name: str) -> Kernel:
    """memcpy, memset and loads at any byte."""
    size, at = rng.choice((1, 3, 7, 16, 33)), rng.randrange(8)
    return _kernel(name, "", f"""  u8 a[64], b[64];
  memset(a, {rng.randrange(256)}, 64); memset(b, (int)(IN(1) & 0xFF), 64);
  memcpy(a + {at}, (const u8 *)in + t * 4, {size});
  memcpy(b + (IN(1) & 7), a + (IN(1) >> 3), {size});
  for (u32 k = 0; k < {size}; ++k) b[(k * 5) & 63] ^= a[(k + IN(1)) & 63];
  u64 h = 0;
  for (u32 k = 0; k < 64; ++k) h = h * 31 + b[k] + (u64)a[k] * 7;
  PUT64(0, h)""")  # fmt: skip


_FEATURES: tuple[Callable[[random.Random, str], Kernel], ...] = (
    _prints, _heap, _asserts, _shared, _reduction, _named, _groups, _grid, _recursion, _pointers, _virtual,
    _locals, _constants, _vectors, _atomics, _cas, _copies, _wide, _generic, _bytes,
)  # fmt: skip


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count``: the features in turn."""
    return [
        _FEATURES[n % len(_FEATURES)](
            random.Random(f"features {seed} {n}"), named("features", seed, n)
        )
        for n in range(first, first + count)
    ]
