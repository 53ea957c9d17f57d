"""Random CUDA kernels of divergent calls: recursion, mutual and through pointers, of functions with
branches and loops of their own; votes, shuffles and barriers directly after the calls.

In a "masked" kernel each operation across lanes names the lanes that the program has brought there,
so that its result is defined.  In a "seen" one lanes also write down ``__activemask()`` wherever
they are, which CUDA leaves open; at the kernel's top level they do what names the whole warp.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WORDS = 64  # words per thread; the same number of words after them hold the clock
BLOCK = 64
GRID = 2
_HEADER = f"""#include <cstdint>
typedef uint32_t u32;
#define FULL 0xffffffffu
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
__device__ u32 __reduce_add_sync(u32 m, u32 v) {{
    u32 sum = 0;
    for (u32 left = m; left; left &= left - 1) sum += __shfl_sync(m, v, __ffs(left) - 1);
    return sum;
}}
__device__ u32 __reduce_or_sync(u32 m, u32 v) {{
    u32 all = 0;
    for (u32 left = m; left; left &= left - 1) all |= __shfl_sync(m, v, __ffs(left) - 1);
    return all;
}}
#endif
struct Log {{ u32 *at; u32 n; }};
__device__ __forceinline__ void put(Log &log, u32 value) {{
    if (log.n < {WORDS}) {{ log.at[log.n] = value; log.at[{WORDS} + log.n] = CLOCK; ++log.n; }}
}}
"""


@dataclass(slots=True)
class Writer:
    rng: random.Random
    masked: bool
    prefix: str
    lines: list[str] = field(default_factory=list[str])
    names: list[str] = field(default_factory=list[str])
    table: bool = False
    calls: int = 0

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def condition(self) -> str:
        r = self.rng
        return r.choice((
            f"((x >> {r.randrange(12)}) & 1)", f"((x ^ d) & {r.choice((1, 3, 5))}) != 0",
            f"(x & 31) < {r.randrange(4, 28)}", f"((lane >> {r.randrange(5)}) & 1)",
            f"x % {r.choice((3, 5))} == 0",
        ))  # fmt: skip

    def arithmetic(self, depth: int) -> None:
        r = self.rng
        self.put(depth, r.choice((
            f"x = x * {r.choice((3, 5, 7, 0x101))}u + d;", f"x ^= x >> {r.randrange(1, 9)};",
            f"x += lane * {r.randrange(1, 9)}u;", "x = (x << 3) | (x >> 29);",
        )))  # fmt: skip

    def across(self, depth: int, mask: str) -> None:
        """An operation between the lanes of a mask, recorded."""
        r = self.rng
        self.put(depth, r.choice((
            f"put(log, __ballot_sync({mask}, x & 1));",
            f"x += __shfl_sync({mask}, x, __ffs({mask}) - 1) & 0xff; put(log, x);",
            f"put(log, __match_any_sync({mask}, x & 3));",
            f"x ^= __reduce_add_sync({mask}, x & 7); put(log, x);",
            f"x += __reduce_or_sync({mask}, x & 0x30); put(log, x);",
            f"__syncwarp({mask}); put(log, __any_sync({mask}, (x & 15) == 3));",
        )))  # fmt: skip

    def see(self, depth: int, mask: str) -> None:
        if self.masked:
            self.across(depth, mask)
            return
        self.put(depth, "put(log, __activemask());" if self.rng.random() < 0.8 else "put(log, x);")

    def body(self, depth: int, mask: str, most: int) -> None:
        for _ in range(self.rng.randrange(1, most)):
            kind = self.rng.random()
            if kind < 0.25 or depth > 4:
                self.arithmetic(depth)
            elif kind < 0.5:
                self.branch(depth, mask)
            elif kind < 0.62:
                self.loop(depth, mask)
            elif kind < 0.85:
                self.call(depth, mask)
            else:
                self.see(depth, mask)

    def branch(self, depth: int, mask: str) -> None:
        n = len(self.lines)
        self.put(depth, f"const bool c{n} = {self.condition()};")
        if self.masked:
            self.put(depth, f"const u32 m{n} = __ballot_sync({mask}, c{n});")
        self.put(depth, f"if (c{n}) {{")
        self.body(depth + 1, f"m{n}", 3)
        if self.rng.random() < 0.6:
            self.put(depth, "} else {")
            self.body(depth + 1, f"({mask} & ~m{n})", 3)
        self.put(depth, "}")
        if self.rng.random() < 0.6:
            self.see(depth, mask)

    def loop(self, depth: int, mask: str) -> None:
        n = len(self.lines)
        shift, most = self.rng.randrange(8), self.rng.choice((1, 3))
        self.put(depth, f"const u32 t{n} = (x >> {shift}) & {most};")
        if self.masked:
            self.put(depth, f"u32 m{n} = {mask};")
        self.put(depth, "#pragma unroll 1")
        self.put(depth, f"for (u32 i{n} = 0;; ++i{n}) {{")
        if self.masked:
            self.put(depth + 1, f"m{n} = __ballot_sync(m{n}, i{n} < t{n});")
        self.put(depth + 1, f"if (i{n} >= t{n}) break;")
        self.body(depth + 1, f"m{n}", 3)
        self.put(depth, "}")
        if self.rng.random() < 0.5:
            self.see(depth, mask)

    def call(self, depth: int, mask: str) -> None:
        if self.calls >= 2:
            self.see(depth, mask)
            return
        self.calls += 1
        if self.table and self.rng.random() < 0.5:
            n = len(self.lines)
            self.put(depth, f"const u32 w{n} = (x >> 4) % {len(self.names)}u;")
            given = f"__match_any_sync({mask}, w{n})" if self.masked else "0"
            if self.masked:
                self.put(depth, f"const u32 g{n} = {given};")
                given = f"g{n}"
            called = f"{self.prefix}table[w{n}]"
            self.put(depth, f"x = d ? {called}(x, d - 1, lane, {given}, log) : x + 1;"
                     if not self.masked else
                     f"x = {called}(x, d, lane, {given}, log);")  # fmt: skip
        else:
            name = self.rng.choice(self.names)
            given = mask if self.masked else "0"
            if self.masked:
                self.put(depth, f"x = {name}(x, d, lane, {given}, log);")
            else:
                self.put(depth, f"x = d ? {name}(x + d, d - 1, lane, 0, log) : x ^ 5;")
        if self.rng.random() < 0.7:
            self.see(depth, mask)

    def function(self, name: str) -> None:
        self.calls = 0
        parameters = "u32 x, u32 d, u32 lane, u32 m, Log &log"
        self.put(0, f"__device__ __noinline__ u32 {name}({parameters}) {{")
        if self.masked:  # how deep each lane goes is its own matter
            self.put(1, "const bool more = d != 0;")
            self.put(1, "const u32 deeper = __ballot_sync(m, more);")
            self.put(1, "if (more) {")
            self.put(2, "--d;")
            self.body(2, "deeper", 5)
            if not self.calls:
                self.call(2, "deeper")
            self.put(1, "}")
            self.across(1, "m")
        else:
            if self.rng.random() < 0.5:
                self.put(1, f"if (d == 0) return x * 3 + {self.rng.randrange(9)};")
            self.body(1, "", 5)
            if not self.calls:
                self.call(1, "")
            if self.rng.random() < 0.3:
                self.put(1, f"if ({self.condition()}) return x + 1;")
                self.see(1, "")
        self.put(1, "return x;")
        self.put(0, "}")

    def top(self, depth: int) -> None:
        """Directly after a call of all lanes."""
        r = self.rng
        self.put(depth, r.choice((
            "put(log, __activemask());", "put(log, __ballot_sync(FULL, x & 1));",
            f"x += __shfl_sync(FULL, x, {r.randrange(32)}); put(log, x);",
            f"x += __shfl_xor_sync(FULL, x, {r.randrange(1, 32)}); put(log, x);",
            "put(log, __match_any_sync(FULL, x & 7));",
            "put(log, __syncthreads_count(x & 1));",
            "__syncwarp(); put(log, __any_sync(FULL, (x & 63) == 1));",
            "shared[threadIdx.x] = x; __syncthreads(); x += shared[threadIdx.x ^ 33]; "
            "__syncthreads(); put(log, x);",
            "put(log, __reduce_add_sync(FULL, x & 0xffff));",
        )) if not self.masked or r.random() < 0.7 else
        f"shared[threadIdx.x] = x; __syncwarp(); x ^= shared[threadIdx.x ^ {r.randrange(1, 32)}]; "
        "__syncwarp(); put(log, x);")  # fmt: skip

    def kernel(self, name: str) -> None:
        parameters = "const u32 *a, const u32 *b, u32 *out, int n"
        self.put(0, f'extern "C" __global__ void {name}({parameters}) {{')
        self.put(1, f"__shared__ u32 shared[{BLOCK}];")
        self.put(1, "const u32 t = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;")
        self.put(1, f"Log log = {{out + t * {2 * WORDS}, 0}};")
        self.put(1, "u32 x = a[t]; const u32 y = b[t];")
        for k in range(self.rng.randrange(2, 4)):
            called = self.rng.choice(self.names)
            if self.table and self.rng.random() < 0.5:
                self.put(1, f"const u32 w{k} = (y >> {3 * k}) % {len(self.names)}u;")
                called = f"{self.prefix}table[w{k}]"
                if self.masked:
                    self.put(1, f"const u32 g{k} = __match_any_sync(FULL, w{k});")
            mask = f"g{k}" if "table" in called else "FULL"
            deep = f"(y >> {self.rng.randrange(20)}) & {self.rng.choice((1, 3, 3))}"
            self.put(1, f"x = {called}(x, {deep}, lane, {mask if self.masked else '0'}, log);")
            for _ in range(self.rng.randrange(1, 3)):
                self.top(1)
        self.put(1, "put(log, x);")
        self.put(0, "}")


def kind_of(seed: int) -> str:
    return "masked" if seed % 2 else "seen"


def source(seed: int, *, clock: bool = False) -> str:
    """A file with one kernel, ``calls<seed>``; its parameters are (const u32 *a, const u32 *b,
    u32 *out, int n), a thread has 2 * WORDS words of ``out``.  ``clock``: the second half holds
    when each was written, otherwise 0."""
    rng = random.Random(f"calls {seed}")
    w = Writer(rng, kind_of(seed) == "masked", f"s{seed}_", table=rng.random() < 0.4)
    w.names = [f"s{seed}_f{k}" for k in range(rng.randrange(1, 4))]
    head = [f"__device__ __noinline__ u32 {n}(u32, u32, u32, u32, Log &);" for n in w.names]
    if w.table:
        head.append("typedef u32 (*Function)(u32, u32, u32, u32, Log &);")
        names = ", ".join(w.names)
        head.append(f"__device__ Function {w.prefix}table[{len(w.names)}] = {{{names}}};")
    for name in w.names:
        w.function(name)
    w.kernel(f"calls{seed}")
    top = _HEADER.replace("CLOCK", "(u32)clock()" if clock else "0")
    return "\n".join([top, *head, *w.lines]) + "\n"


def flags(seed: int) -> list[str]:
    """nvcc's options; some programs are less optimised."""
    return ["-Xptxas", "-O1"] if seed % 6 > 3 else ["-O3"]
