"""Random kernels in CUDA C++: integers, floats and doubles, loops, switches, local and shared
arrays, device functions, shuffles and votes where a block is together.

Floats never become integers by their bits, for NaN payloads are free.
"""

from __future__ import annotations

import random

TYPES = ("unsigned", "int", "unsigned long long", "float", "double")
NAMES = {"unsigned": "u", "int": "i", "unsigned long long": "w", "float": "f", "double": "d"}
WORDS = 14  # of ``out`` a thread: 3 u, 3 i, 2 w, 2 f, 1 d (and what is left)
MOST = 45  # lines of a kernel, about
_COUNT = {"unsigned": 3, "int": 3, "unsigned long long": 2, "float": 2, "double": 1}


class _Kernel:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.depth = 0
        self.loops = 0
        self.lines: list[str] = []

    def name(self, kind: str) -> str:
        return f"{NAMES[kind]}{self.rng.randrange(_COUNT[kind])}"

    def leaf(self, kind: str) -> str:
        r = self.rng.random()
        if r < 0.75:
            return self.name(kind)
        if kind in ("float", "double"):
            return self.rng.choice(("0.5", "3.0", "-1.25", "1e-3", "65536.0")) + (
                "f" if kind == "float" else ""
            )
        return f"({kind}){self.rng.choice((1, 2, 7, 31, 255, 0x1234567, 0x80000000))}u"

    def expression(self, kind: str, depth: int = 0) -> str:
        if depth > 1 or self.rng.random() < 0.25:
            return self.leaf(kind)

        def sub(other: str = kind) -> str:
            return self.expression(other, depth + 1)

        if kind in ("float", "double"):
            suffix = "f" if kind == "float" else ""
            return self.rng.choice((
                f"({sub()} + {sub()})", f"({sub()} - {sub()})", f"({sub()} * {sub()})",
                f"({sub()} * {sub()} + {sub()})", f"({sub()} / {sub()})",
                f"fabs{suffix}({sub()})", f"fmin{suffix}({sub()}, {sub()})",
                f"sqrt{suffix}(fabs{suffix}({sub()}))", f"floor{suffix}({sub()})",
                f"({kind}){sub('int')}", f"({kind}){sub('unsigned')}",
                f"({self.condition(depth + 1)} ? {sub()} : {sub()})",
                f"({kind}){sub('double' if kind == 'float' else 'float')}",
            ))  # fmt: skip
        bits = 64 if "long" in kind else 32
        choices = [
            f"({sub()} + {sub()})", f"({sub()} - {sub()})", f"({sub()} * {sub()})",
            f"({sub()} & {sub()})", f"({sub()} | {sub()})", f"({sub()} ^ {sub()})",
            f"(~{sub()})", f"({sub()} / ({sub()} | 1))", f"({sub()} % ({sub()} | 1))",
            f"({sub()} << ({sub('unsigned')} & {bits - 1}))",
            f"({sub()} >> ({sub('unsigned')} & {bits - 1}))",
            f"({self.condition(depth + 1)} ? {sub()} : {sub()})",
            f"({kind}){sub(self.rng.choice(('unsigned', 'int', 'unsigned long long')))}",
            f"({kind}){sub('float')}", f"({kind}){sub('double')}",
        ]  # fmt: skip
        if kind == "unsigned":
            choices += [
                f"__popc({sub()})", f"__clz({sub('int')})", f"__brev({sub()})",
                f"__byte_perm({sub()}, {sub()}, {sub()})", f"__umulhi({sub()}, {sub()})",
                f"__funnelshift_l({sub()}, {sub()}, {sub()})", f"mix({sub()}, {sub()})",
                f"table[{sub()} & 7]", f"own[{sub()} & 3]", f"min({sub()}, {sub()})",
            ]  # fmt: skip
        if kind == "int":
            choices += [f"__mulhi({sub()}, {sub()})", f"max({sub()}, {sub()})", f"abs({sub()})"]
        return self.rng.choice(choices)

    def condition(self, depth: int = 0) -> str:
        kind = self.rng.choice(TYPES[:4])
        op = self.rng.choice(("<", ">", "==", "!=", "<=", ">="))
        if self.rng.random() < 0.4:
            return f"({self.name('unsigned')} & {self.rng.choice((1, 2, 4, 12))}u)"
        return f"({self.expression(kind, depth + 1)} {op} {self.expression(kind, depth + 1)})"

    def put(self, line: str) -> None:
        self.lines.append("  " * (self.depth + 1) + line)

    def assign(self) -> None:
        kind = self.rng.choice(TYPES)
        r = self.rng.random()
        if r < 0.1:
            self.put(f"own[{self.expression('unsigned', 2)} & 3] = {self.expression('unsigned')};")
        else:
            self.put(f"{self.name(kind)} = {self.expression(kind)};")

    def body(self, most: int) -> None:
        for _ in range(self.rng.randrange(1, most)):
            r = self.rng.random()
            if r < 0.5 or self.depth > 2 or len(self.lines) > MOST:
                self.assign()
            elif r < 0.72:
                self.put(f"if ({self.condition()}) {{")
                self.inner(3)
                if self.rng.random() < 0.5:
                    self.put("} else {")
                    self.inner(3)
                self.put("}")
            elif r < 0.88:
                self.loop()
            elif r < 0.95:
                self.switch()
            elif self.loops:
                self.put(f"if ({self.condition()}) {self.rng.choice(('break', 'continue'))};")

    def inner(self, most: int) -> None:
        self.depth += 1
        self.body(most)
        self.depth -= 1

    def loop(self) -> None:
        variable = f"k{self.depth}"
        self.put(f"for (unsigned {variable} = 0; {variable} < ({self.name('unsigned')} & 7u); "
                 f"++{variable}) {{")  # fmt: skip
        self.loops += 1
        self.depth += 1
        self.put(f"if (++steps > 60) break; u0 += {variable};")
        self.depth -= 1
        self.inner(3)
        self.loops -= 1
        self.put("}")

    def switch(self) -> None:
        self.put(f"switch ({self.expression('unsigned', 1)} & 7u) {{")
        for case in self.rng.sample(range(8), self.rng.randrange(3, 8)):
            self.put(f"case {case}:")
            loops, self.loops = self.loops, 0
            self.inner(2)
            self.loops = loops
            if self.rng.random() < 0.7:
                self.put("  break;")
        self.put("}")

    def together(self) -> None:
        self.put("__syncthreads();")
        match self.rng.randrange(4):
            case 0:
                mode = self.rng.choice(("xor", "down", "up"))
                delta = self.rng.randrange(1, 31)
                self.put(f"u1 += __shfl_{mode}_sync(~0u, {self.name('unsigned')}, {delta});")
            case 1:
                self.put(f"u2 ^= __ballot_sync(~0u, {self.condition()});")
            case 2:
                self.put(f"shared[threadIdx.x] = {self.name('unsigned')};")
                self.put("__syncthreads();")
                self.put(f"u1 ^= shared[(threadIdx.x * {self.rng.choice((1, 3, 5))} + "
                         f"{self.rng.randrange(60)}) % blockDim.x];")  # fmt: skip
            case _:
                self.put(f"i1 += __syncthreads_count({self.condition()});")
        self.put("__syncthreads();")


def source(seed: int, kernels: int) -> str:
    """Kernels ``fuzz0`` ... (const unsigned *a, const unsigned *b, unsigned *out, int n)."""
    rng = random.Random(seed)
    words = ", ".join(f"{rng.randrange(1 << 32)}u" for _ in range(8))
    parts = [
        f"__constant__ unsigned table[8] = {{{words}}};",
        "__device__ __noinline__ unsigned mix(unsigned x, unsigned y) {"
        " return (x ^ (x >> 7)) * 0x9E3779B1u + (y & 1 ? y / 3 : x % 11); }",
    ]
    for number in range(kernels):
        k = _Kernel(rng)
        for _ in range(3):
            k.body(5)
            k.together()
        k.body(3)
        body = "\n".join(k.lines)
        parts.append(f"""
extern "C" __global__ void
fuzz{number}(const unsigned *a, const unsigned *b, unsigned *out, int n) {{
  __shared__ unsigned shared[1024];
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x, own[4] = {{t, a[t], b[t], 5}}, steps = 0;
  unsigned u0 = a[t], u1 = b[t], u2 = t;
  int i0 = (int)a[t] >> 3, i1 = (int)b[t] % 1000, i2 = (int)t - 7;
  unsigned long long w0 = (unsigned long long)a[t] << 20 | b[t], w1 = t;
  float f0 = (int)a[t] * 1e-3f, f1 = (float)t;
  double d0 = (int)b[t] * 0.25;
{body}
  unsigned *to = out + {WORDS} * t;
  to[0] = u0; to[1] = u1; to[2] = u2; to[3] = i0; to[4] = i1; to[5] = i2;
  to[6] = (unsigned)w0; to[7] = w0 >> 32; to[8] = (unsigned)w1; to[9] = w1 >> 32;
  to[10] = __float_as_uint(f0); to[11] = __float_as_uint(f1);
  *(double *)(to + 12) = d0;
}}""")
    return "\n".join(parts) + "\n"
