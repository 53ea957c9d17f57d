"""Common shapes of CUDA kernels, with random types, operators, sizes and statements in them."""

from __future__ import annotations

import random
from collections.abc import Callable

from sassxlate.llm.dataset.generate.scope import Scope

_SCALARS = ("int", "unsigned", "float", "double", "long long", "unsigned long long")


class _Shape:
    """The choices of a shape."""

    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng = rng
        self.name = name
        self.kind = rng.choice(("float", "float", "int", "unsigned", *_SCALARS))
        self.tile = rng.choice((8, 16, 32))
        self.block = rng.choice((64, 128, 256))

    def join(self, a: str, b: str) -> str:
        """An expression that combines two values."""
        ops = [f"({a} + {b})", f"max({a}, {b})", f"min({a}, {b})", f"({a} * {b})"]
        if self.kind not in ("float", "double"):
            ops += [f"({a} ^ {b})", f"({a} | {b})", f"({a} & {b})"]
        return self.rng.choice(ops)

    def map(self, *names: str, depth: int = 0) -> str:
        """An expression over names of the shape's type."""
        scope = Scope(self.rng)
        for name in names:
            scope.add(self.kind, name)
        scope.add("int", "n")
        return f"({self.kind})({scope.expression(self.kind, depth)})"

    def head(self, parameters: str) -> str:
        return f'extern "C" __global__ void {self.name}({parameters}) {{'


def _reduction(c: _Shape) -> str:
    k = c.kind
    step = (
        "for (int o = blockDim.x / 2; o > 0; o >>= 1) {"
        if c.rng.random() < 0.5
        else f"#pragma unroll\n  for (int o = {c.block // 2}; o > 0; o >>= 1) {{"
    )
    join = c.join("s[threadIdx.x]", "s[threadIdx.x + o]")
    return f"""{c.head(f"const {k}* __restrict__ in, {k}* out, int n")}
  __shared__ {k} s[{c.block}];
  {k} a = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {{
    {k} x = in[i];
    a = {c.join("a", c.map("x", "a"))};
  }}
  s[threadIdx.x] = a;
  __syncthreads();
  {step}
    if (threadIdx.x < o) s[threadIdx.x] = {join};
    __syncthreads();
  }}
  if (threadIdx.x == 0) out[blockIdx.x] = s[0];
}}"""


def _warps(c: _Shape) -> str:
    k = c.kind
    call = c.rng.choice(("__shfl_down_sync", "__shfl_xor_sync"))
    return f"""{c.head(f"const {k}* in, {k}* out, int n")}
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {k} a = i < n ? in[i] : ({k})0;
  a = {c.map("a")};
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {{ {k} b = {call}(~0u, a, o); a = {c.join("a", "b")}; }}
  if ((threadIdx.x & 31) == 0) {c.rng.choice(("out[i >> 5] = a", "out[blockIdx.x] = a"))};
}}"""


def _scan(c: _Shape) -> str:
    k = c.kind
    return f"""{c.head(f"const {k}* in, {k}* out, {k}* sums, int n")}
  __shared__ {k} s[2][{c.block}];
  int t = threadIdx.x, i = blockIdx.x * {c.block} + t, p = 0;
  s[0][t] = i < n ? {c.map("in[i]")} : ({k})0;
  __syncthreads();
  for (int d = 1; d < {c.block}; d <<= 1) {{
    {k} v = s[p][t];
    if (t >= d) v = {c.join("v", "s[p][t - d]")};
    p ^= 1;
    s[p][t] = v;
    __syncthreads();
  }}
  if (i < n) out[i] = s[p][t];
  if (t == {c.block - 1}) sums[blockIdx.x] = s[p][t];
}}"""


def _stencil(c: _Shape) -> str:
    k, r = c.kind, c.rng.randint(1, 3)
    names = [f"in[i + {d}]" for d in range(-r, r + 1)]
    rows = c.rng.random() < 0.5
    if rows:
        names += [f"in[i - w * {d}]" for d in range(1, r + 1)] + ["in[i + w]"]
    total = "0"
    for name in names:
        total = f"{total} + {name} * ({k}){c.rng.choice((1, 2, 3, 4, 7, 0.25, 0.5, 1.5))}"
    return f"""{c.head(f"const {k}* __restrict__ in, {k}* __restrict__ out, int w, int h, int n")}
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < {r} || y < {r} || x >= w - {r} || y >= h - {r}) return;
  int i = y * w + x;
  {k} a = {total};
  out[i] = {c.map("a", "in[i]")};
}}"""


def _matmul(c: _Shape) -> str:
    k, t = c.kind, c.tile
    return f"""{
        c.head(f"const {k}* __restrict__ a, const {k}* __restrict__ b, {k}* o, int n, int m")
    }
  __shared__ {k} sa[{t}][{t}{c.rng.choice(("", " + 1"))}], sb[{t}][{t}];
  int x = blockIdx.x * {t} + threadIdx.x, y = blockIdx.y * {t} + threadIdx.y;
  {k} acc = 0;
  for (int p = 0; p < n; p += {t}) {{
    sa[threadIdx.y][threadIdx.x] = {
        c.rng.choice(
            (
                "a[y * n + p + threadIdx.x]",
                "(y < m && p + threadIdx.x < n) ? a[y * n + p + threadIdx.x] : 0",
            )
        )
    };
    sb[threadIdx.y][threadIdx.x] = b[(p + threadIdx.y) * m + x];
    __syncthreads();
    #pragma unroll {c.rng.choice((1, 2, 4, 8))}
    for (int q = 0; q < {t}; q++) acc += sa[threadIdx.y][q] * sb[q][threadIdx.x];
    __syncthreads();
  }}
  if (x < m) o[y * m + x] = {c.map("acc", "o[y * m + x]", depth=1)};
}}"""


def _tiles(c: _Shape) -> str:
    k, r = c.kind, c.rng.choice((2, 4))
    return f"""{c.head(f"const {k}* a, const {k}* b, {k}* o, int n")}
  {k} acc[{r}][{r}] = {{}};
  int x = (blockIdx.x * blockDim.x + threadIdx.x) * {r};
  int y = (blockIdx.y * blockDim.y + threadIdx.y) * {r};
  for (int p = 0; p < n; p++) {{
    {k} u[{r}], v[{r}];
    #pragma unroll
    for (int i = 0; i < {r}; i++) {{ u[i] = a[(y + i) * n + p]; v[i] = b[p * n + x + i]; }}
    #pragma unroll
    for (int i = 0; i < {r}; i++)
      for (int j = 0; j < {r}; j++) acc[i][j] += u[i] * v[j];
  }}
  #pragma unroll
  for (int i = 0; i < {r}; i++) for (int j = 0; j < {r}; j++) o[(y + i) * n + x + j] = acc[i][j];
}}"""


def _histogram(c: _Shape) -> str:
    bins = c.rng.choice((64, 256, 1024))
    c.kind = "unsigned"
    return f"""{c.head("const unsigned* in, unsigned* out, int n")}
  __shared__ unsigned s[{bins}];
  for (int i = threadIdx.x; i < {bins}; i += blockDim.x) s[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {{
    unsigned x = in[i];
    atomicAdd(&s[{c.map("x")} & {bins - 1}], {c.rng.choice(("1u", "x & 3u"))});
  }}
  __syncthreads();
  for (int i = threadIdx.x; i < {bins}; i += blockDim.x) atomicAdd(&out[i], s[i]);
}}"""


def _sort(c: _Shape) -> str:
    k = c.kind
    return f"""{c.head(f"{k}* d, int j, int k, int n")}
  int i = blockIdx.x * blockDim.x + threadIdx.x, o = i ^ j;
  if (o > i && o < n) {{
    {k} a = d[i], b = d[o];
    bool up = (i & k) == 0;
    if (up ? a > b : a < b) {{ d[i] = b; d[o] = {c.rng.choice(("a", c.map("a", "b", depth=2)))}; }}
  }}
}}"""


def _hash(c: _Shape) -> str:
    rng = c.rng
    k = rng.choice(("unsigned", "unsigned long long"))
    bits = 64 if "long" in k else 32
    rounds: list[str] = []
    for _ in range(rng.randint(2, 6)):
        r = rng.randrange(1, bits)
        odd = rng.getrandbits(bits) | 1
        rounds.append(rng.choice((
            f"h ^= h >> {r};", f"h *= {odd}ull;", f"h += h << {r};",
            f"h = (h << {r}) | (h >> {bits - r});", f"h ^= x + {odd}ull;", "h = ~h;",
            f"h = h * {rng.choice((5, 9, 31, 33))} + {rng.getrandbits(16)};",
        )))  # fmt: skip
    body = " ".join(rounds)
    return f"""{c.head(f"const {k}* in, {k}* out, int n, {k} seed")}
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  {k} x = in[i], h = seed ^ x;
  {f"for (int r = 0; r < {rng.choice(('4', 'n', '16'))}; r++) {{ {body} x += r; }}" if rng.random() < 0.6 else body}
  out[i] = h;
}}"""


def _generator(c: _Shape) -> str:
    rng = c.rng
    step = rng.choice((
        "s ^= s << 13; s ^= s >> 17; s ^= s << 5;",
        "s = s * 1664525u + 1013904223u;",
        "unsigned long long w = s * 4294957665ull + (s >> 7); s = (unsigned)w ^ (unsigned)(w >> 32);",
        "s += 0x9E3779B9u; s = (s ^ (s >> 16)) * 0x85EBCA6Bu; s ^= s >> 13;",
    ))  # fmt: skip
    test = rng.choice(("x * x + y * y <= 1.0f", "x > y", "sqrtf(x * y) < 0.5f", "__expf(-x) < y"))
    return f"""{c.head("unsigned* states, int* hits, float* sums, int n")}
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned s = states[i];
  int count = 0;
  float total = 0.0f;
  for (int r = 0; r < n; r++) {{
    {{ {step} }}
    float x = s * 2.3283064e-10f;
    {{ {step} }}
    float y = {rng.choice(("s * 2.3283064e-10f", "(s >> 8) * (1.0f / 16777216.0f)"))};
    if ({test}) count++;
    total += {rng.choice(("x", "x * y", "fmaxf(x, y)", "__logf(x) * y"))};
  }}
  states[i] = s; hits[i] = count; sums[i] = total;
}}"""


def _nbody(c: _Shape) -> str:
    k = c.rng.choice(("float", "float", "double"))
    c.kind = k
    root = f"rsqrt{'f' if k == 'float' else ''}(d)"
    v = "float4" if k == "float" else "double4"
    soft = c.rng.choice(("1e-9", "0.01", "s"))
    return f"""{c.head(f"const {v}* p, {v}* out, int n, {k} s")}
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  {v} me = p[i];
  {k} ax = 0, ay = 0, az = 0;
  for (int j = 0; j < n; j++) {{
    {v} o = p[j];
    {k} dx = o.x - me.x, dy = o.y - me.y, dz = o.z - me.z;
    {k} d = dx * dx + dy * dy + dz * dz + ({k}){soft};
    {k} r = {c.rng.choice((root, f"({k})1 / d"))};
    {k} f = o.w * r{c.rng.choice((" * r * r", " * r", ""))};
    ax += f * dx; ay += f * dy; az += f * dz;
  }}
  {v} q = me; q.x = ax; q.y = {c.map("ay", "az", depth=1)}; q.z = az;
  out[i] = q;
}}"""


def _image(c: _Shape) -> str:
    rng = c.rng
    a, b, d = (rng.uniform(0.05, 0.9) for _ in range(3))
    out = rng.choice((
        "(unsigned char)fminf(255.0f, l)", "(unsigned char)(l + 0.5f)", "(p.x + 2 * p.y + p.z) >> 2",
        "p.x > 127 ? 255 : (unsigned char)l",
    ))  # fmt: skip
    return f"""{c.head("const uchar4* in, uchar4* out, int w, int h, float g")}
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  uchar4 p = in[y * w + x];
  float l = {a}f * p.x + {b}f * p.y + {d}f * p.z * g;
  unsigned char v = {out};
  out[y * w + x] = make_uchar4(v, {rng.choice(("v", "p.y", "255 - v"))}, v ^ p.z, 255);
}}"""


def _transpose(c: _Shape) -> str:
    k, t = c.kind, c.tile
    return f"""{c.head(f"const {k}* in, {k}* out, int w, int h, int n")}
  __shared__ {k} s[{t}][{t + c.rng.choice((0, 1))}];
  int x = blockIdx.x * {t} + threadIdx.x, y = blockIdx.y * {t} + threadIdx.y;
  for (int j = 0; j < {t}; j += blockDim.y)
    if (x < w && y + j < h) s[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
  __syncthreads();
  x = blockIdx.y * {t} + threadIdx.x; y = blockIdx.x * {t} + threadIdx.y;
  for (int j = 0; j < {t}; j += blockDim.y)
    if (x < h && y + j < w) out[(y + j) * h + x] = {c.map("s[threadIdx.x][threadIdx.y + j]", depth=1)};
}}"""


def _sparse(c: _Shape) -> str:
    k = c.kind
    return f"""{c.head(f"const int* rows, const int* columns, const {k}* a, const {k}* x, {k}* y, int n")}
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= n) return;
  {k} sum = 0;
  for (int j = rows[r]; j < rows[r + 1]; j++) sum {c.rng.choice(("+=", "-="))} a[j] * x[columns[j]];
  y[r] = {c.map("sum", "y[r]")};
}}"""


def _elements(c: _Shape) -> str:
    k = c.kind
    step = c.rng.choice(("i < n; i += gridDim.x * blockDim.x", "i < n; i += 1024"))
    return f"""{c.head(f"const {k}* a, const {k}* b, {k}* o, int n, {k} s")}
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; {step}) {{
    {k} u = a[i], v = b[i];
    o[i] = {c.map("u", "v", "s")};
    {f"o[i + n] = {c.map('u', 'v', 's')};" if c.rng.random() < 0.5 else ""}
  }}
}}"""


def _fractal(c: _Shape) -> str:
    k = c.rng.choice(("float", "double"))
    return f"""{c.head(f"int* out, int w, int h, int n, {k} x0, {k} y0, {k} d")}
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= w || y >= h) return;
  {k} cx = x0 + x * d, cy = y0 + y * d, a = 0, b = 0;
  int i = 0;
  while (i < n && a * a + b * b < ({k}){c.rng.choice((4, 16, 100))}) {{
    {k} t = a * a - b * b + cx;
    b = {c.rng.choice(("2 * a * b + cy", "fabs(2 * a * b) + cy", "a * b + a * b - cy"))};
    a = t;
    i++;
  }}
  out[y * w + x] = i;
}}"""


SHAPES: tuple[Callable[[_Shape], str], ...] = (
    _reduction, _warps, _scan, _stencil, _matmul, _tiles, _histogram, _sort, _hash, _generator,
    _nbody, _image, _transpose, _sparse, _elements, _elements, _fractal,
)  # fmt: skip


def shaped_kernel(rng: random.Random, name: str) -> str:
    """A kernel of one of the shapes."""
    shape = rng.choice(SHAPES)
    return shape(_Shape(rng, name))


__all__ = ["shaped_kernel"]
