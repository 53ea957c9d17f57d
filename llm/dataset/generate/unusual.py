"""Forms that random expressions of CUDA C++ rarely reach, but that real programs have now and then.

Bytes and halves in one register, conversions with their roundings, carries through several words,
three-input logic, conditions that are combined by exclusive or, all kinds of atomics.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

Leaf = Callable[[str], str]  # an expression of a type, from the names in scope

_SIMD = (
    "__vabsdiffu4", "__vabsdiffs4", "__vabsdiffu2", "__vadd4", "__vadd2", "__vaddus4", "__vaddss2",
    "__vsub4", "__vsub2", "__vmaxu4", "__vmaxs2", "__vminu2", "__vmins4", "__vavgu4", "__vavgs2",
    "__vcmpgtu4", "__vcmpges2", "__vcmpeq4", "__vcmpne2", "__vseteq4", "__vsetltu2", "__vsadu4",
    "__vsads2", "__vsadu2", "__vmaxu2", "__vcmpltu2", "__vsubus2", "__vhaddu4",
)  # fmt: skip
_ONE = (
    "__brev",
    "__popc",
    "__clz",
    "__ffs",
    "__vneg4",
    "__vabs2",
    "__vabs4",
    "__vnegss2",
)
_FROM_FLOAT = (
    "__float2int_rn", "__float2int_rz", "__float2int_ru", "__float2int_rd", "__float2uint_rn",
    "__float2uint_rz", "__float2uint_ru", "__float2uint_rd", "__float_as_int",
)  # fmt: skip
_FROM_DOUBLE = (
    "__double2int_rn", "__double2int_rz", "__double2int_ru", "__double2int_rd",
    "__double2uint_rn", "__double2uint_rz", "__double2hiint", "__double2loint",
)  # fmt: skip
_TO_FLOAT = (
    "__int2float_rn", "__int2float_rz", "__int2float_ru", "__int2float_rd", "__uint2float_rn",
    "__uint2float_rz", "__uint2float_ru", "__uint2float_rd", "__int_as_float",
)  # fmt: skip
_FLOAT_TWO = tuple(
    f"__f{op}_{mode}" for op in ("add", "sub", "mul") for mode in ("rn", "rz", "ru", "rd")
)
_DOUBLE_TWO = tuple(
    f"__d{op}_{mode}" for op in ("add", "sub", "mul") for mode in ("rn", "rz", "ru", "rd")
)
_HALF2 = ("__hadd2", "__hsub2", "__hmul2", "__hmax2", "__hmin2", "__hadd2_sat", "__hmul2_sat")
_ATOMICS = (
    ("int", "oi", "Add Max Min And Or Xor Exch"),
    ("unsigned", "ou", "Add Max Min And Or Xor Exch Inc Dec"),
    ("float", "of", "Add Exch"),
    ("double", "od", "Add"),
)  # fmt: skip
_WIDE = "Add Max Min And Or Xor Exch"


def integer(rng: Random, leaf: Leaf) -> str:
    """An int or unsigned."""
    a, b, c = (f"(unsigned)({leaf(rng.choice(('int', 'unsigned')))})" for _ in range(3))
    lut, selector = rng.randrange(256), rng.getrandbits(16)
    wide = leaf(rng.choice(("long long", "unsigned long long")))
    at, bits = rng.randrange(32), rng.randrange(1, 24)
    return rng.choice((
        f"{rng.choice(_SIMD)}({a}, {b})", f"{rng.choice(_SIMD)}({a}, {b})",
        f"{rng.choice(_ONE)}({a})",
        f"__byte_perm({a}, {b}, {selector:#06x})", f"__byte_perm({a}, {b}, {c} & 0x7777)",
        f"__byte_perm({a}, 0, {selector:#06x})",
        f"__funnelshift_lc({a}, {b}, {c})", f"__funnelshift_rc({a}, {b}, {c})",
        f"__funnelshift_l({a}, {b}, {c})", f"__funnelshift_r({a}, {b}, {c})",
        f"lop3<{lut}>({a}, {b}, {c})", f"lop3<{rng.randrange(256)}>({a}, {b}, {rng.getrandbits(32):#x}u)",
        f"bits<{at}, {bits}>({a})", f"signed_bits<{at}, {bits}>((int){a})",
        f"into<{at}, {bits}>({a}, {b})",
        f"(int)(signed char)({a} >> {rng.choice((0, 8, 16, 24))})", f"(int)(short)({a} >> {rng.choice((0, 8, 16))})",
        f"(int)(unsigned char)({a} >> {rng.choice((0, 8, 16, 24))})",
        f"{rng.choice(_FROM_FLOAT)}({leaf('float')})", f"{rng.choice(_FROM_DOUBLE)}({leaf('double')})",
        f"__sad((int){a}, (int){b}, {c})", f"__usad({a}, {b}, {c})", f"abs((int){a} - (int){b})",
        f"__mulhi((int){a}, (int){b})", f"__umulhi({a}, {b})", f"__rhadd((int){a}, (int){b})", f"__uhadd({a}, {b})",
        f"__dp4a((int){a}, (int){b}, (int){c})", f"__dp4a({a}, {b}, {c})", f"__dp2a_lo((int){a}, (int){b}, (int){c})",
        f"(unsigned)({wide} >> {rng.randrange(1, 63)})", f"(unsigned)({wide} >> ({leaf('int')} & 63))",
        f"__clzll((long long){wide})", f"__popcll((unsigned long long){wide})", f"__ffsll((long long){wide})",
        f"(unsigned)(((unsigned long long){a} * {b}) >> 32)",
        f"({a} & {rng.getrandbits(32):#x}u ? {b} : {c})", f"({a} % {rng.choice((3, 5, 7, 10, 60, 1000))}u)",
        f"({a} / {rng.choice((3, 5, 7, 10, 60, 1000))}u)", f"((int){a} / {rng.choice((3, 7, 10, -5))})",
        f"({a} * {rng.choice((3, 5, 9, 17, 33, 255, 257, 511, 769, 65537))}u + {b})",
        f"(unsigned)__half_as_ushort({leaf('__half')})", f"__half2int_rn({leaf('__half')})",
        f"max({a}, {b})", f"min((int){a}, max((int){b}, {rng.randrange(-99, 99)}))",
        f"((({_test(rng, leaf)}) != ({_test(rng, leaf)})) ? {a} : {b})",
        f"((({_test(rng, leaf)}) == ({_test(rng, leaf)})) ? {a} : {b})",
        f"(unsigned)({_test(rng, leaf)}) + (unsigned)({_test(rng, leaf)})",
    ))  # fmt: skip


def _test(rng: Random, leaf: Leaf) -> str:
    """A condition."""
    kind = rng.choice(("int", "unsigned", "float", "double", "long long"))
    a, b = leaf(kind), leaf(kind)
    if kind in ("int", "unsigned") and rng.random() < 0.4:
        return (
            f"({a} & {rng.choice((b, str(1 << rng.randrange(31))))}) {rng.choice(('==', '!='))} 0"
        )
    if kind in ("float", "double") and rng.random() < 0.3:
        return f"{rng.choice(('isnan', 'isinf', 'signbit', 'isfinite'))}({a})"
    return f"{a} {rng.choice(('<', '>', '<=', '>=', '==', '!='))} {b}"


def wide(rng: Random, leaf: Leaf) -> str:
    """A long long or unsigned long long."""
    kind = rng.choice(("long long", "unsigned long long"))
    a, b, c = leaf(kind), leaf(kind), leaf(kind)
    u, v = leaf("unsigned"), leaf("int")
    return rng.choice((
        f"({a} << ({v} & 63))", f"({a} >> ({v} & 63))", f"({a} << {rng.randrange(1, 63)})",
        f"({a} * {b} + {c})", f"({a} + {b} - {c})", f"(({a} ^ {b}) & {c})", f"(~{a} | {b})",
        f"((unsigned long long){u} * {u} + {b})", f"((long long){v} * {v} - {b})", f"__brevll({a})",
        f"__umul64hi({a}, {b})", f"__mul64hi({a}, {b})", f"({a} < {b} ? {a} : {c})",
        f"max({a}, ({kind}){c})", f"min({a}, ({kind}){c})", f"llabs((long long){a})",
        f"high({a}, {b}, {c})", f"__double2ll_{rng.choice(('rn', 'rz', 'ru', 'rd'))}({leaf('double')})",
        f"__float2ll_{rng.choice(('rn', 'rz', 'ru', 'rd'))}({leaf('float')})",
        f"__float2ull_{rng.choice(('rn', 'rz', 'ru', 'rd'))}({leaf('float')})",
        f"__double_as_longlong({leaf('double')})", f"(({kind}){u} << 32 | {u})",
        f"({a} / {rng.choice((3, 10, 1000))})", f"({a} & {rng.getrandbits(64):#x}ull)",
        f"({a} == {b} ? {c} : {rng.getrandbits(40):#x}ll)",
    ))  # fmt: skip


def real(rng: Random, leaf: Leaf) -> str:
    """A float."""
    a, b, c = leaf("float"), leaf("float"), leaf("float")
    mode = rng.choice(("rn", "rz", "ru", "rd"))
    return rng.choice((
        f"{rng.choice(_FLOAT_TWO)}({a}, {b})", f"__fmaf_{mode}({a}, {b}, {c})", f"__frcp_{mode}({a})",
        f"__fsqrt_{mode}({a})", f"__fdiv_{mode}({a}, {b})", f"{rng.choice(_TO_FLOAT)}({leaf('int')})",
        f"__ll2float_{mode}({leaf('long long')})", f"__ull2float_{mode}({leaf('unsigned long long')})",
        f"__double2float_{mode}({leaf('double')})", f"__exp10f({a})", f"__log2f({a})", f"__log10f({a})",
        f"__powf({a}, {b})", f"__tanf({a})", f"ldexpf({a}, {leaf('int')} & 15)", f"fmodf({a}, {b})",
        f"rsqrtf({a})", f"sqrtf({a})", f"rcbrtf({a})", f"hypotf({a}, {b})", f"({a} / {b})", f"(1.0f / {a})",
        f"fmaxf(-{a}, fabsf({b}))", f"fminf(fabsf({a}), {b})", f"fmaxf(fmaxf({a}, {b}), {c})", f"-fabsf({a})",
        f"fmaf(-{a}, {b}, {c})", f"fmaf({a}, -{b}, -{c})", f"fmaf({a}, {rng.uniform(-9, 9):.5f}f, {b})",
        f"roundf({a})", f"nearbyintf({a})", f"floorf({a})", f"ceilf({a})", f"truncf({a})",
        f"__saturatef(fmaf({a}, {b}, {c}))", f"__saturatef({a} * {b})", f"copysignf({a}, {b})", f"nextafterf({a}, {b})",
        f"__low2float({half2(rng, leaf)})", f"__high2float({half2(rng, leaf)})",
        f"__bfloat162float(__float2bfloat16({a}))", f"__half2float(__float2half_{mode}({a}))",
        f"(float)({_test(rng, leaf)})", f"(({_test(rng, leaf)}) ? {a} : -{b})", f"fdimf({a}, {b})",
        f"logbf({a})", f"expm1f({a})", f"log1pf({a})", f"sinpif({a})", f"norm3df({a}, {b}, {c})",
    ))  # fmt: skip


def double(rng: Random, leaf: Leaf) -> str:
    """A double."""
    a, b, c = leaf("double"), leaf("double"), leaf("double")
    mode = rng.choice(("rn", "rz", "ru", "rd"))
    return rng.choice((
        f"{rng.choice(_DOUBLE_TWO)}({a}, {b})", f"__fma_{mode}({a}, {b}, {c})", f"(double){leaf('float')}",
        f"__int2double_rn({leaf('int')})", f"__uint2double_rn({leaf('unsigned')})", f"-fabs({a})",
        f"__ll2double_{mode}({leaf('long long')})", f"__ull2double_{mode}({leaf('unsigned long long')})",
        f"fmax(fmax({a}, -{b}), {c})", f"fmin({a}, fabs({b}))", f"floor({a})", f"ceil({a})", f"trunc({a})", f"rint({a})",
        f"__hiloint2double({leaf('int')}, {leaf('int')})", f"__longlong_as_double({leaf('long long')})",
        f"fma(-{a}, {b}, {c})", f"fma({a}, {rng.uniform(-9, 9):.9f}, {b})", f"({a} / {b})", f"sqrt({a})", f"rsqrt({a})",
        f"(({_test(rng, leaf)}) ? {a} : {b})", f"copysign({a}, {b})", f"ldexp({a}, {leaf('int')} & 31)",
    ))  # fmt: skip


def half2(rng: Random, leaf: Leaf) -> str:
    """A __half2."""

    def one() -> str:
        h = leaf("__half")
        return rng.choice((
            f"__halves2half2({h}, {leaf('__half')})", f"__half2half2({h})", f"__float2half2_rn({leaf('float')})",
            f"__floats2half2_rn({leaf('float')}, {leaf('float')})", f"as_half2({leaf('unsigned')})",
            f"__float2half2_rn({rng.choice((0.5, 1.0, -1.0, 2.0, 0.1))}f)",
        ))  # fmt: skip

    a, b, c = one(), one(), one()
    return rng.choice((
        f"{rng.choice(_HALF2)}({a}, {b})", f"__hfma2({a}, {b}, {c})", f"__hfma2_relu({a}, {b}, {c})",
        f"__hneg2({a})", f"__habs2({a})", f"__lowhigh2highlow({a})", f"__hfma2({a}, {b}, {c})",
        f"__lows2half2({a}, {b})", f"__highs2half2({a}, {b})", f"__hgt2({a}, {b})", f"h2sqrt({a})", f"h2rcp({a})",
    ))  # fmt: skip


def bfloat2(rng: Random, leaf: Leaf) -> str:
    """A __nv_bfloat162."""

    def one() -> str:
        return f"__floats2bfloat162_rn({leaf('float')}, {leaf('float')})"

    return rng.choice((
        f"__hadd2({one()}, {one()})", f"__hmul2({one()}, {one()})", f"__hfma2({one()}, {one()}, {one()})",
        f"__hmax2({one()}, {one()})", f"__float2bfloat162_rn({leaf('float')})",
    ))  # fmt: skip


def atomic(rng: Random, leaf: Leaf) -> str:
    """A statement."""
    at = f"{leaf('int')} & 255"
    draw = rng.random()
    if draw < 0.3:
        kind = rng.choice(("unsigned long long", "unsigned long long", "long long"))
        op = rng.choice((_WIDE if kind[0] == "u" else "Max Min").split())
        return f"atomic{op}(({kind}*)od + ({at}), ({kind}){leaf(kind)});"
    if draw < 0.4:
        return f"oi[{at}] = atomicCAS(&ou[{at}], {leaf('unsigned')}, {leaf('unsigned')});"
    if draw < 0.5:
        return f"atomicAdd((__half2*)of + ({at}), {half2(rng, leaf)});"
    kind, space, ops = rng.choice(_ATOMICS)
    op = rng.choice(ops.split())
    if draw < 0.7:
        return f"ob[{at}] = (unsigned char)atomic{op}(&{space}[{at}], {leaf(kind)});"
    return f"atomic{op}(&{space}[{at}], {leaf(kind)});"


HEAD = """#include <cuda_bf16.h>
template <int LUT> __device__ unsigned lop3(unsigned a, unsigned b, unsigned c) {
  unsigned d; asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(LUT)); return d;
}
template <int AT, int N> __device__ unsigned bits(unsigned a) {
  unsigned d; asm("bfe.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "n"(AT), "n"(N)); return d;
}
template <int AT, int N> __device__ int signed_bits(int a) {
  int d; asm("bfe.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "n"(AT), "n"(N)); return d;
}
template <int AT, int N> __device__ unsigned into(unsigned a, unsigned b) {
  unsigned d; asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "n"(AT), "n"(N)); return d;
}
__device__ unsigned long long high(unsigned long long a, unsigned long long b, unsigned long long c) {
  unsigned __int128 p = (unsigned __int128)a * b + c; return (unsigned long long)(p >> 64) + (unsigned long long)p;
}
__device__ __half2 as_half2(unsigned a) { return *(__half2*)&a; }
__device__ unsigned as_unsigned(__half2 a) { return *(unsigned*)&a; }
__device__ unsigned as_unsigned(__nv_bfloat162 a) { return *(unsigned*)&a; }
"""

__all__ = ["HEAD", "atomic", "bfloat2", "double", "half2", "integer", "real", "wide"]
