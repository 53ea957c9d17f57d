"""Shape ``warps``: control flow with operations of warps, under masks that the kernel computes.

Each piece of code has a variable with the mask of the lanes that run it: a ballot within the
surrounding mask.  A lane reads another one's value only if that one is in the mask.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from .kernel import Kernel, named

HELPERS = """static __device__ __forceinline__ u32 nth_lane(u32 mask, u32 n) {
  n %= __popc(mask);
  while (n--) mask &= mask - 1;
  return __ffs(mask) - 1;
}
#if __CUDA_ARCH__ >= 800
#define REDUCE(name, type, init, join) static __device__ __forceinline__ type r_##name(u32 mask, type v) { return __reduce_##name##_sync(mask, v); }
#else
#define REDUCE(name, type, init, join) static __device__ __forceinline__ type r_##name(u32 mask, type v) { \\
  type a = init; _Pragma("unroll 1") for (u32 k = 0; k < 32; ++k) if (mask >> k & 1) { type b = __shfl_sync(mask, v, k); a = join; } return a; }
#endif
REDUCE(add, u32, 0, a + b)
REDUCE(and, u32, ~0u, a & b)
REDUCE(or, u32, 0, a | b)
REDUCE(xor, u32, 0, a ^ b)
REDUCE(min, i32, 0x7fffffff, min(a, b))
REDUCE(max, u32, 0, max(a, b))
"""

_OPS = "+-*&|^"


class _Warp:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.depth = 1
        self.count = 0
        self.masks = ["~0u"]
        self.functions: list[str] = []

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    @property
    def mask(self) -> str:
        return self.masks[-1]

    def leaf(self) -> str:
        rng = self.rng
        return rng.choice(
            ("u0", "u1", "u2", "u3", "lane", "t", f"{rng.choice((1, 3, 7, 0x55, 255))}u")
        )

    def value(self, depth: int = 0) -> str:
        rng = self.rng
        if depth > 1 or rng.random() < 0.25:
            return self.leaf()
        a, b = self.value(depth + 1), self.value(depth + 1)
        return rng.choice((
            f"({a} {rng.choice(_OPS)} {b})", f"({a} {rng.choice(_OPS)} {b})", f"({a} >> ({b} & 31))",
            f"({a} << {rng.randrange(1, 9)})", f"__popc({a})", f"({self.condition(depth + 1)} ? {a} : {b})",
            f"({a} / ({b} | 1))", f"({a} % ({b} | 1))",
        ))  # fmt: skip

    def condition(self, depth: int = 0) -> str:
        rng = self.rng
        r = rng.random()
        if r < 0.3:
            return f"(({self.leaf()} & {rng.choice((1, 2, 4, 8, 16, 3, 5))}u) != 0)"
        if r < 0.45:
            return f"(lane {rng.choice(('<', '>', '==', '!='))} {rng.randrange(32)})"
        return f"({self.value(depth + 1)} {rng.choice(('<', '>', '<=', '=='))} {self.value(depth + 1)})"

    def var(self) -> str:
        return self.rng.choice(("u0", "u1", "u2", "u3"))

    def inner(self, mask: str, most: int = 3) -> None:
        self.masks.append(mask)
        self.depth += 1
        self.body(most)
        self.depth -= 1
        self.masks.pop()

    # --- operations ---------------------------------------------------------------------------

    def operation(self) -> None:
        rng, m, v, x = self.rng, self.mask, self.var(), self.value(1)
        n = self.fresh("x")
        picks: list[Callable[[], str]] = [
            lambda: f"{v} ^= __ballot_sync({m}, {self.condition()});",
            lambda: f"{v} += __any_sync({m}, {self.condition()}) * 3 + __all_sync({m}, {self.condition()});",
            lambda: f"{v} ^= __match_any_sync({m}, {x} & 3);",
            lambda: f"{{ int p; u32 s = __match_all_sync({m}, {x} & {rng.choice((0, 1))}, &p); {v} += s ^ p; }}",
            lambda: f"{v} ^= __match_any_sync({m}, (u64)({x} & 5) << 32 | 7);",
            lambda: f"{v} ^= __shfl_sync({m}, {x}, nth_lane({m}, {self.leaf()}));",
            lambda: f"{v} += __shfl_sync({m}, {x}, __ffs({m}) - 1);",
            lambda: f"{{ u64 w = __shfl_sync({m}, (u64){x} << 20 | lane, nth_lane({m}, {rng.randrange(32)})); {v} ^= (u32)w + (u32)(w >> 32); }}",
            lambda: f"{v} ^= r_{rng.choice(('add', 'and', 'or', 'xor', 'min', 'max'))}({m}, {x});",
            lambda: f"__syncwarp({m}); sh[threadIdx.x] = {x}; __syncwarp({m}); {v} ^= sh[(threadIdx.x & 32) + nth_lane({m}, {self.leaf()})]; __syncwarp({m});",
            lambda: self.shift(n, x, v, m),
            lambda: self.shift(n, x, v, m),
            lambda: f"{{ u32 p; asm volatile(\"{{ .reg .pred q, r; setp.ne.u32 q, %1, 0; vote.sync.uni.pred r, q, %2; selp.u32 %0, 1, 0, r; }}\" : \"=r\"(p) : \"r\"({x} & 4), \"r\"({m})); {v} += p; }}",
            lambda: f"{v} += __popc({m} & ((1u << lane) - 1));",
        ]  # fmt: skip
        self.put(rng.choice(picks)())

    def shift(self, n: str, x: str, v: str, m: str) -> str:
        rng = self.rng
        width = rng.choice((32, 32, 16, 8, 4))
        d = rng.choice((1, 2, 3, 4, 8, 15, 16, 31)) % width
        own, part = f"(lane & {width - 1})", f"(lane & {31 ^ (width - 1)})"
        kind = rng.choice(("up", "down", "xor", ""))
        source = {
            "up": f"({own} >= {d} ? lane - {d} : lane)",
            "down": f"({own} + {d} < {width} ? lane + {d} : lane)",
            "xor": f"((lane ^ {d}) / {width} * {width} > {part} ? lane : lane ^ {d})",
            "": f"({part} + ({d} & {width - 1}))",
        }[kind]
        call = f"__shfl{'_' if kind else ''}{kind}_sync({m}, {x}, {d}, {width})"
        return f"{{ u32 {n} = {call}; if ({m} >> {source} & 1) {v} ^= {n}; else {v} += 5; }}"

    # --- control ------------------------------------------------------------------------------

    def branch(self) -> None:
        c, m = self.fresh("c"), self.fresh("m")
        self.put(f"bool {c} = {self.condition()}; u32 {m} = __ballot_sync({self.mask}, {c});")
        self.put(f"if ({c}) {{")
        self.inner(m)
        if self.rng.random() < 0.6:
            other = self.fresh("m")
            self.put(f"}} else {{ u32 {other} = {self.mask} & ~{m};")
            self.inner(other)
        self.put("}")

    def switch(self) -> None:
        s, m = self.fresh("s"), self.fresh("m")
        ways = self.rng.choice((3, 4, 5, 8))
        self.put(f"u32 {s} = {self.value()} % {ways}u, {m} = __match_any_sync({self.mask}, {s});")
        self.put(f"switch ({s}) {{")
        for case in range(ways - self.rng.randrange(2)):
            self.put(f"case {case}: {{")
            self.inner(m, 2)
            self.put("} break;")
        self.put("}")

    def loop(self) -> None:
        rng = self.rng
        n, k, live, i, before = (self.fresh(c) for c in "nklib")
        self.put(f"u32 {n} = {self.value(1)} & {rng.choice((3, 7))}u, {live} = {self.mask};")
        self.put(f"for (u32 {i} = 0; ; ++{i}) {{")
        self.put(f"  bool {k} = {i} < {n}; {live} = __ballot_sync({live}, {k}); if (!{k}) break;")
        self.inner(live, 3)
        if rng.random() < 0.4:
            self.put(f"  bool {before} = {self.condition()} && u1 != 77; {live} = __ballot_sync({live}, !{before});"
                     f" if ({before}) break;")  # fmt: skip
        self.put(f"  u{rng.randrange(4)} += {i};")
        self.put("}")

    def rounds(self) -> None:
        """A round for each distinct value among the lanes."""
        r, x, first, v, s = (self.fresh(c) for c in "rxlvs")
        m = self.mask
        self.put(f"u32 {r} = {m}, {x} = {self.value(1)} & 7;")
        self.put(f"while ({r}) {{ u32 {first} = __ffs({r}) - 1, {v} = __shfl_sync({m}, {x}, {first}), "
                 f"{s} = __ballot_sync({m}, {x} == {v});")  # fmt: skip
        self.put(f"  if ({x} == {v}) {{")
        self.inner(s, 2)
        self.put(f"  }} {r} &= ~{s}; }}")

    def leader(self) -> None:
        m, v = self.mask, self.var()
        self.put(
            f"if (lane == __ffs({m}) - 1) {{ {v} = {self.value(1)}; sh[threadIdx.x] = {self.leaf()}; }}"
        )
        self.put(f"{self.var()} ^= __shfl_sync({m}, {v}, __ffs({m}) - 1);")

    def call(self) -> None:
        f = self.rng.choice(self.functions)
        self.put(f"{self.var()} ^= {f}({self.mask}, lane, {self.value(1)}, {self.leaf()});")

    def block(self) -> None:
        """Code for places where the whole block is together."""
        rng, v = self.rng, self.var()
        self.put(rng.choice((
            f"__syncthreads(); sh[threadIdx.x] = {self.value()}; __syncthreads(); {v} ^= sh[(threadIdx.x * "
            f"{rng.choice((1, 3, 5))} + {rng.randrange(64)}) & 63]; __syncthreads();",
            f"{v} += __syncthreads_count({self.condition()});",
            f"{v} += __syncthreads_or({self.condition()}) * 5;",
            f"{v} += __syncthreads_and({self.condition()}) * 7;",
        )))  # fmt: skip

    def body(self, most: int) -> None:
        rng = self.rng
        for _ in range(rng.randrange(1, most + 1)):
            r = rng.random()
            if self.depth > 4 or len(self.lines) > 60:
                r *= 0.5
            if r < 0.2:
                self.put(f"{self.var()} = {self.value()};")
            elif r < 0.5:
                self.operation()
            elif r < 0.68:
                self.branch()
            elif r < 0.78:
                self.loop()
            elif r < 0.84:
                self.switch()
            elif r < 0.9:
                self.rounds()
            elif r < 0.95 or not self.functions:
                self.leader()
            else:
                self.call()


def _function(rng: random.Random, name: str) -> str:
    w = _Warp(rng)
    w.masks = ["mask"]
    w.body(4)
    body = "\n".join(w.lines)
    return f"""static __device__ __noinline__ u32 {name}(u32 mask, u32 lane, u32 u0, u32 u1) {{
  u32 u2 = u0 ^ lane, u3 = u1 + 3, t = lane * 3;
  __shared__ u32 sh[64];
{body}
  return u0 + u1 * 3 + u2 * 5 + u3 * 7;
}}"""


def _recursion(rng: random.Random, name: str) -> str:
    last = rng.choice((
        "__shfl_sync(mask, r, __ffs(mask) - 1)", "r_add(mask, r)", "__ballot_sync(mask, r & 1)",
        "__match_any_sync(mask, r & 3)", "r",
    ))  # fmt: skip
    return f"""static __device__ __noinline__ u32 {name}(u32 mask, u32 lane, u32 v, u32 deep) {{
  deep = __shfl_sync(mask, deep & 7, __ffs(mask) - 1);
  if (deep == 0 || __popc(mask) == 1) return v * 3 + __popc(mask);
  bool b = (v >> deep & 1) != 0;
  u32 m = __ballot_sync(mask, b), r;
  if (b) r = {name}(m, lane, v + {rng.randrange(1, 99)}, deep - 1);
  else r = {name}(mask & ~m, lane, v ^ {rng.randrange(1, 99)}, deep - 1) + 1;
  return r ^ {last};
}}"""


def warp(rng: random.Random, name: str) -> Kernel:
    """A kernel of the shape."""
    w = _Warp(rng)
    parts: list[str] = []
    for k in range(rng.randrange(0, 3)):
        f = f"{name}_f{k}"
        parts.append(_recursion(rng, f) if rng.random() < 0.12 else _function(rng, f))
        w.functions.append(f)
    w.put("u32 lane = t & 31, u0 = IN(0), u1 = IN(1), u2 = IN(2), u3 = t * 7 + n;")
    for _ in range(2):
        w.body(4)
        w.block()
    if rng.random() < 0.3:
        c, m = w.fresh("c"), w.fresh("m")
        w.put(f"bool {c} = {w.condition()}; u32 {m} = __ballot_sync(~0u, !{c});")
        w.put(f"if ({c}) {{ PUT(0, u0); PUT(1, u1); return; }}")
        w.masks = [m]
    w.body(5)
    w.operation()
    body = "\n".join(w.lines)
    text = "\n".join([*parts, f"""extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ u32 sh[64];
{body}
  PUT(0, u0); PUT(1, u1); PUT(2, u2); PUT(3, u3);
}}"""])  # fmt: skip
    return Kernel(name, "warps", text, "rrrr", "sir", helpers=HELPERS)


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count`` of the shape."""
    return [
        warp(random.Random(f"warps {seed} {n}"), named("warps", seed, n))
        for n in range(first, first + count)
    ]
