"""Shape ``floats``: NaNs, infinities and denormals through arithmetic, and their bits in numbers.

Three kinds: *exact* programs say each rounding (intrinsics), so that flags and architecture change
nothing but fast-math's flushing; *plain* ones have operators, which compilers contract; *library*
ones are a mathematical function each, whose code begins with an approximation of the hardware.
"""

from __future__ import annotations

import random

from .kernel import Kernel, named

HELPERS = """static __device__ __forceinline__ u32 half_bits(__half h) { return __half_as_ushort(h); }
static __device__ __forceinline__ __half half_of(u32 b) { return __ushort_as_half((u16)b); }
static __device__ __forceinline__ u32 bf_bits(__nv_bfloat16 h) { return __bfloat16_as_ushort(h); }
static __device__ __forceinline__ __nv_bfloat16 bf_of(u32 b) { return __ushort_as_bfloat16((u16)b); }
"""
_ROUND = ("rn", "rz", "ru", "rd")


class _Floats:
    def __init__(self, rng: random.Random, kind: str) -> None:
        self.rng = rng
        self.kind = kind
        self.lines: list[str] = []
        self.oldest = 75
        self.depth = 1

    def f(self, d: int = 0) -> str:
        """A float."""
        rng = self.rng
        if d > 1 or rng.random() < 0.2:
            return rng.choice(
                ("f0", "f1", "f2", "f3", "f0", "f1", f"{rng.choice((0.5, 1.0, -0.0, 3.0, 1e-38))}f")
            )
        a, b, c = self.f(d + 1), self.f(d + 1), self.f(d + 1)
        r = rng.choice(_ROUND)
        exact = [
            f"__fadd_{r}({a}, {b})", f"__fsub_{r}({a}, {b})", f"__fmul_{r}({a}, {b})",
            f"__fmaf_{r}({a}, {b}, {c})", f"__fdiv_rn({a}, {b})", f"__fsqrt_rn({a})", f"fminf({a}, {b})",
            f"fmaxf({a}, {b})", f"copysignf({a}, {b})", f"fabsf({a})", f"(-({a}))",
            f"({self.test(d + 1)} ? {a} : {b})", f"__uint_as_float({self.u(d + 1)})",
            f"__double2float_{r}({self.d(d + 1)})", f"__int2float_{r}((i32){self.u(d + 1)})",
            f"__uint2float_{r}({self.u(d + 1)})", f"floorf({a})", f"ceilf({a})", f"truncf({a})",
            f"rintf({a})", f"__half2float({self.h(d + 1)})", f"__bfloat162float({self.b(d + 1)})",
            f"__ll2float_{r}((i64){self.u(d + 1)} << 20)", f"__saturatef({a})",
            f"__shfl_xor_sync(~0u, f{rng.randrange(4)}, {rng.choice((1, 2, 16))})" if self.depth == 1 and d == 0 else a,
        ]  # fmt: skip
        plain = [f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} * {b} + {c})", f"({a} / {b})",
                 f"sqrtf({a})", f"({a} - {a})", f"({a} * {b} - {c} * {a})"]  # fmt: skip
        picks = exact if self.kind == "exact" else exact + plain * 3
        return rng.choice(picks)

    def d(self, d: int = 0) -> str:
        """A double."""
        rng = self.rng
        if d > 1 or rng.random() < 0.25:
            return rng.choice(("d0", "d1", "0.5", "-3.0", "1e300"))
        a, b, c = self.d(d + 1), self.d(d + 1), self.d(d + 1)
        r = rng.choice(_ROUND)
        exact = [
            f"__dadd_{r}({a}, {b})", f"__dmul_{r}({a}, {b})", f"__fma_{r}({a}, {b}, {c})",
            f"__ddiv_rn({a}, {b})", f"__dsqrt_rn({a})", f"fmin({a}, {b})", f"fmax({a}, {b})",
            f"copysign({a}, {b})", f"fabs({a})", f"(-({a}))", f"(double){self.f(d + 1)}",
            f"(double)(i32){self.u(d + 1)}", f"__longlong_as_double((i64){self.u(d + 1)} << 32)",
            f"({self.test(d + 1)} ? {a} : {b})", f"floor({a})", f"rint({a})", f"trunc({a})",
        ]  # fmt: skip
        plain = [
            f"({a} + {b})",
            f"({a} * {b})",
            f"({a} * {b} + {c})",
            f"({a} - {b})",
            f"({a} / {b})",
        ]
        return rng.choice(exact if self.kind == "exact" else exact + plain * 3)

    def h(self, d: int = 0) -> str:
        """A half."""
        rng = self.rng
        if d > 1 or rng.random() < 0.2:
            return rng.choice(("h0", "h1"))
        a, b, c = self.h(d + 1), self.h(d + 1), self.h(d + 1)
        return rng.choice((
            f"__hadd_rn({a}, {b})", f"__hsub_rn({a}, {b})", f"__hmul_rn({a}, {b})", f"__hfma({a}, {b}, {c})",
            f"__hneg({a})", f"__habs({a})", f"__float2half_{rng.choice(_ROUND)}({self.f(d + 1)})",
            f"__hadd_sat({a}, {b})", f"half_of({self.u(d + 1)})", f"__int2half_rn((i32){self.u(d + 1)})",
            f"({self.test(d + 1)} ? {a} : {b})", f"__hmax({a}, {b})", f"__hmin({a}, {b})",
        ))  # fmt: skip

    def b(self, d: int = 0) -> str:
        """A bf16."""
        rng = self.rng
        if d > 1 or rng.random() < 0.3:
            return rng.choice(("b0", "b1"))
        a = self.b(d + 1)
        made = rng.choice((
            f"__float2bfloat16_{rng.choice(_ROUND)}({self.f(d + 1)})", f"bf_of({self.u(d + 1)})",
            f"({self.test(d + 1)} ? {a} : b1)", f"__hfma({a}, b0, {self.b(d + 1)})",
        ))  # fmt: skip
        self.oldest = 80 if made.startswith("__hfma") else self.oldest
        return made

    def u(self, d: int = 0) -> str:
        """An integer, of the bits of floats as likely as not."""
        rng = self.rng
        if d > 1 or rng.random() < 0.15:
            return rng.choice(("u0", "u1", "t", f"{rng.choice((1, 31, 0x80000000, 0x7F800000))}u"))
        a, r = self.u(d + 1), rng.choice(_ROUND)
        return rng.choice((
            f"__float_as_uint({self.f(d + 1)})", f"(u32)__double2hiint({self.d(d + 1)})",
            f"(u32)(__double_as_longlong({self.d(d + 1)}) >> {rng.choice((0, 20, 32))})",
            f"half_bits({self.h(d + 1)})", f"bf_bits({self.b(d + 1)})", f"(u32)(signbit({self.f(d + 1)}) ? 3 : 5)",
            f"(u32)__float2int_{r}({self.f(d + 1)})", f"__float2uint_{r}({self.f(d + 1)})",
            f"(u32)__double2int_{r}({self.d(d + 1)})", f"(u32)__float2ll_{r}({self.f(d + 1)})",
            f"(u32)({self.test(d + 1)})", f"({a} ^ __float_as_uint({self.f(d + 1)}))", f"({a} + {self.u(d + 1)})",
            f"({a} >> {rng.randrange(1, 31)})", f"__byte_perm({a}, {self.u(d + 1)}, 0x{rng.choice(('7632', '5410', '3715'))})",
            f"__half2int_{r}({self.h(d + 1)})",
        ))  # fmt: skip

    def test(self, d: int = 0) -> str:
        rng = self.rng
        op = rng.choice(("<", ">", "<=", ">=", "==", "!="))
        return rng.choice((
            f"({self.f(d + 1)} {op} {self.f(d + 1)})", f"({self.d(d + 1)} {op} {self.d(d + 1)})",
            f"isnan({self.f(d + 1)})", f"isinf({self.f(d + 1)})", f"signbit({self.f(d + 1)})",
            f"__hlt({self.h(d + 1)}, {self.h(d + 1)})", f"__hequ({self.h(d + 1)}, {self.h(d + 1)})",
            f"isfinite({self.d(d + 1)})", f"({self.u(d + 1)} & 1)", f"!({self.f(d + 1)} {op} {self.f(d + 1)})",
        ))  # fmt: skip

    def statement(self) -> None:
        rng = self.rng
        r = rng.random()
        pad = "  " * self.depth
        if r < 0.72 or self.depth > 2:
            kind = rng.choice("fffdduuhb")
            name = f"{kind}{rng.randrange({'f': 4}.get(kind, 2))}"
            self.lines.append(f"{pad}{name} = {getattr(self, kind)()};")
        elif r < 0.9:
            self.lines.append(f"{pad}if ({self.test()}) {{")
            self.depth += 1
            for _ in range(rng.randrange(1, 3)):
                self.statement()
            self.depth -= 1
            self.lines.append(pad + "}")
        else:
            self.lines.append(f"{pad}for (u32 k = 0; k < (u0 & 3); ++k) {{")
            self.depth += 1
            self.statement()
            self.depth -= 1
            self.lines.append(pad + "}")


# Functions, operands' profiles and how far two right answers may be apart: CUDA's stated errors,
# from both sides.
_LIBRARY = """
expf 1 ulp4, exp2f 1 ulp4, exp10f 1 ulp4, logf 1 ulp4, log2f 1 ulp4, log10f 1 ulp4, sinf 1 ulp4, cosf 1 ulp4,
tanf 1 ulp8, tanhf 1 ulp4, cbrtf 1 ulp2, erff 1 ulp4, erfcf 1 ulp8, atanf 1 ulp4, asinf 1 ulp4, acosf 1 ulp4,
sinhf 1 ulp6, coshf 1 ulp4, expm1f 1 ulp2, log1pf 1 ulp2, rsqrtf 1 ulp4, tgammaf 1 ulp24, rcbrtf 1 ulp2,
sinpif 1 ulp2, cospif 1 ulp2, asinhf 1 ulp6, acoshf 1 ulp8, atanhf 1 ulp6, roundf 1 ulp0, rintf 1 ulp0,
logbf 1 ulp0, nearbyintf 1 ulp0, floorf 1 ulp0, truncf 1 ulp0, sqrtf 1 ulp0, powf 2 ulp16, fmodf 2 ulp0,
remainderf 2 ulp0, atan2f 2 ulp6, hypotf 2 ulp6, nextafterf 2 ulp0, fdimf 2 ulp0, copysignf 2 ulp0,
normcdff 1 ulp10, j0f 0 abs2e-18, lgammaf 0 abs2e-16, __expf 0 ulp24, __logf 0 mix2e-19, __sinf 0 abs2e-18,
__cosf 0 abs2e-18, __log2f 0 mix2e-19, __exp10f 0 ulp32, __tanf 0 rel2e-6, erfinvf 1 ulp8, exp 1d ulp2,
log 1d ulp2, sin 1d ulp4, cos 1d ulp4, tan 1d ulp4, cbrt 1d ulp2, tanh 1d ulp4, exp2 1d ulp2, atan 1d ulp4,
log2 1d ulp2, sqrt 1d ulp0, rint 1d ulp0, pow 2d ulp4, fmod 2d ulp0, hypot 2d ulp4, atan2 2d ulp4, asin 1d ulp4,
erf 1d ulp4, expm1 1d ulp2, log1p 1d ulp2, rsqrt 1d ulp2, sinh 1d ulp4, cosh 1d ulp4, tgamma 1d ulp20
"""


def library(rng: random.Random, name: str, number: int) -> Kernel:
    """A mathematical function of edges and of ordinary values (``0``: of those alone)."""
    table = _LIBRARY.split(",")
    function, operands, bound = table[number % len(table)].split()
    wide = operands.endswith("d")
    count = max(int(operands[0]), 1)
    first = ("d-" if wide else "a" if operands == "0" else "f") * count
    rest = ("d-" if wide else rng.choice("ap")) * count
    lines: list[str] = []
    for k in range(2):
        step = 2 if wide else 1
        at = [k * count * step + j * step for j in range(count)]
        if wide:
            given = ", ".join(f"__longlong_as_double((i64)IN64({x}))" for x in at)
            lines.append(f"  PUT64({2 * k}, (u64)__double_as_longlong({function}({given})))")
        else:
            given = ", ".join(f"__uint_as_float(IN({x}))" for x in at)
            lines.append(f"  PUT({k}, __float_as_uint({function}({given})));")
    body = "\n".join(lines)
    text = f"""extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
{body}
}}"""
    return Kernel(name, "floats", text, "d-d-" if wide else "ff", first + rest, bound=bound)


def program(rng: random.Random, name: str, kind: str) -> Kernel:
    """A kernel of a kind."""
    made = _Floats(rng, kind)
    for _ in range(rng.randrange(6, 14)):
        made.statement()
    body = "\n".join(made.lines)
    text = f"""extern "C" __global__ void {name}(const u32 *in, u32 *out, u32 n) {{
  u32 t = blockIdx.x * blockDim.x + threadIdx.x, u0 = IN(4), u1 = IN(5);
  float f0 = __uint_as_float(IN(0)), f1 = __uint_as_float(IN(1)), f2 = __uint_as_float(IN(2)), f3 = __uint_as_float(IN(3));
  double d0 = __longlong_as_double((i64)IN64(6)), d1 = __longlong_as_double((i64)IN64(8));
  __half h0 = half_of(IN(10)), h1 = half_of(IN(10) >> 16);
  __nv_bfloat16 b0 = bf_of(IN(11)), b1 = bf_of(IN(11) >> 16);
{body}
  PUT(0, __float_as_uint(f0)); PUT(1, __float_as_uint(f1)); PUT(2, __float_as_uint(f2)); PUT(3, __float_as_uint(f3));
  PUT64(4, (u64)__double_as_longlong(d0)) PUT64(6, (u64)__double_as_longlong(d1))
  PUT(8, half_bits(h0) | half_bits(h1) << 16); PUT(9, bf_bits(b0) | bf_bits(b1) << 16); PUT(10, u0); PUT(11, u1);
}}"""
    return Kernel(
        name, "floats", text, "ffffd-d-EBrr", "ffffisd-d-EB", helpers=HELPERS,
        holds={"exact": "exact", "plain": "code"}[kind],
        headers=("cuda_fp16.h", "cuda_bf16.h"),
        oldest=made.oldest,
    )  # fmt: skip


def kernels(seed: int, first: int, count: int) -> list[Kernel]:
    """Kernels ``first`` to ``first + count``: of five, three exact, one plain, one of the library."""
    made: list[Kernel] = []
    for n in range(first, first + count):
        rng, name = random.Random(f"floats {seed} {n}"), named("floats", seed, n)
        kind = ("exact", "exact", "plain", "exact", "library")[n % 5]
        made.append(library(rng, name, n // 5) if kind == "library" else program(rng, name, kind))
    return made
