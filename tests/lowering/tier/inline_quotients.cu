// Quotients and remainders of 32-bit integers, which nvcc computes in line.
#define LANE int i = blockIdx.x * blockDim.x + threadIdx.x
typedef int s32;
typedef unsigned u32;

extern "C" __global__ void udiv(const u32 *a, const u32 *b, u32 *o) { LANE; o[i] = a[i] / b[i]; }
extern "C" __global__ void urem(const u32 *a, const u32 *b, u32 *o) { LANE; o[i] = a[i] % b[i]; }
extern "C" __global__ void sdiv(const s32 *a, const s32 *b, s32 *o) { LANE; o[i] = a[i] / b[i]; }
extern "C" __global__ void srem(const s32 *a, const s32 *b, s32 *o) { LANE; o[i] = a[i] % b[i]; }
// Operands that are sums and results of others; quotient and remainder of the same.
extern "C" __global__ void sums(const u32 *a, const s32 *b, u32 *o) {
    LANE;
    u32 x = a[i] * 3 + 7, y = b[i] - 5, q = x / y, r = x % y;
    s32 z = (s32)(q + r) / (b[i] + (s32)r), w = (s32)(q - 9) % (z + 1);
    o[i] = x + y + q * 5 + r + z * 3 + w;
}
// Divisors that loops and the kernel do not change: their reciprocals serve several divisions.
extern "C" __global__ void mixed(const u32 *a, const s32 *b, u32 *o) {
    LANE;
    u32 x = a[i], y = b[i], d = blockDim.x - 7;
    s32 s = 0;
    for (int n = 0; n < 5; n++) {
        u32 q = x / y;
        s += (s32)(x + n) / b[i ^ 1];
        if (q > 5) x = x * 5 + q % d;
        else s += (s32)y % (n - 3);
    }
    o[i] = x + s;
}
// A divisor whose reciprocal is computed once, before the loop.
extern "C" __global__ void hoisted(const u32 *a, const u32 *b, u32 *o) {
    LANE;
    u32 x = a[i], y = b[i];
#pragma unroll 1
    for (int n = 0; n < 5; n++) x = x / y + b[(i + n) & 255];
    o[i] = x;
}
// The same algorithm in the program, with other corrections; the first quotient has another user.
extern "C" __global__ void own(const u32 *a, const u32 *b, u32 *o) {
    LANE;
    u32 x = a[i], y = b[i], r, e;
    asm("{.reg .f32 f; cvt.rp.f32.u32 f, %1; rcp.approx.ftz.f32 f, f; mov.b32 %0, f;\n"
        "add.u32 %0, %0, 268435454; mov.b32 f, %0; cvt.rzi.ftz.u32.f32 %0, f;}" : "=r"(r) : "r"(y));
    r += __umulhi(r, -y * r);
    u32 q = __umulhi(r, x);
    e = x - q * y;
    u32 before = q;
    if (e >= y) { e -= y; q++; }
    if (e >= y) { q++; }
    if (y == 0) q = ~y;
    o[i] = q + before * 3 + r;
}
