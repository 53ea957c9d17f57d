// Quotients and remainders of 64-bit integers.
#define LANE long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x
typedef long long s64;
typedef unsigned long long u64;

extern "C" __global__ void udiv(const u64 *a, const u64 *b, u64 *o) { LANE; o[i] = a[i] / b[i]; }
extern "C" __global__ void urem(const u64 *a, const u64 *b, u64 *o) { LANE; o[i] = a[i] % b[i]; }
extern "C" __global__ void sdiv(const s64 *a, const s64 *b, s64 *o) { LANE; o[i] = a[i] / b[i]; }
extern "C" __global__ void srem(const s64 *a, const s64 *b, s64 *o) { LANE; o[i] = a[i] % b[i]; }
// By 32 bits: the divisor's high word is 0.
extern "C" __global__ void udiv_word(const u64 *a, const u64 *b, u64 *o) {
    LANE;
    o[i] = a[i] / (unsigned)b[i];
}
extern "C" __global__ void urem_word(const u64 *a, const u64 *b, u64 *o) {
    LANE;
    o[i] = a[i] % (unsigned)b[i];
}
// Operands that are sums, two divisions that share nvcc's function.
extern "C" __global__ void sums(const u64 *a, const u64 *b, u64 *o) {
    LANE;
    u64 x = (a[i] * 3 + b[i]) / (b[i] - 7);
    o[i] = (x + a[i]) / (a[i] + b[i]) + x;
}
// In a loop, under a condition; quotient and remainder of one division, which nvcc computes together.
extern "C" __global__ void mixed(const u64 *a, const s64 *b, u64 *o) {
    LANE;
    u64 x = a[i];
    s64 y = b[i];
    for (int n = 0; n < 3; n++) {
        u64 q = (x + n) / (u64)(y - n), r = (x + n) % (u64)(y - n);
        x = q * 3 + r;
        if (x > 5) y = (y + n) / (s64)(x >> n);
        else y = (y * 5) % (n - 3);
    }
    o[i] = x + y;
}
