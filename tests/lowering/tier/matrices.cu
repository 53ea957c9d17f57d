// Products of matrices by one warp per block, and moves of 8 x 8 halves.  in: 16 words of each lane.
#include <cstdint>

#define WORDS const uint32_t* w = in + 16 * (blockIdx.x * 32 + threadIdx.x)
#define GIVE(n) for (int i = 0; i < n; ++i) out[(blockIdx.x * 32 + threadIdx.x) * 4 + i] = d[i]
#define PRODUCT(NAME, FORM)                                                                      \
    extern "C" __global__ void NAME(uint32_t* out, const uint32_t* in) {                         \
        WORDS;                                                                                   \
        uint32_t d[4];                                                                           \
        asm volatile("mma.sync.aligned." FORM " {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"            \
                     "{%10,%11,%12,%13};"                                                        \
                     : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                            \
                     : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[5]),         \
                       "r"(w[6]), "r"(w[7]), "r"(w[8]), "r"(w[9]));                              \
        GIVE(4);                                                                                 \
    }

PRODUCT(f16, "m16n8k16.row.col.f32.f16.f16.f32")
PRODUCT(bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
PRODUCT(tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")

extern "C" __global__ void halves(uint32_t* out, const uint32_t* in) {
    WORDS;
    uint32_t d[4] = {};
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3},{%4},{%5,%6};"
                 : "=r"(d[0]), "=r"(d[1])
                 : "r"(w[0]), "r"(w[1]), "r"(w[4]), "r"(w[6]), "r"(w[7]));
    GIVE(4);
}

extern "C" __global__ void moves(uint32_t* out, const uint32_t* in) {
    __shared__ __align__(16) uint32_t m[512];
    WORDS;
    for (int i = 0; i < 16; ++i) m[threadIdx.x * 16 + i] = w[i];
    __syncthreads();
    uint32_t place = (uint32_t)__cvta_generic_to_shared(m);
    uint32_t at = place + ((threadIdx.x * 7) & 31) * 16 + (threadIdx.x & 8) * 64, d[4], e[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"(at));
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
                 : "=r"(e[0]), "=r"(e[1]), "=r"(e[2]), "=r"(e[3]) : "r"(at));
    for (int i = 0; i < 4; ++i) d[i] = d[i] * 3 + e[i];
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(e[0]) : "r"(d[0]));
    d[1] += e[0];
#if __CUDA_ARCH__ >= 900
    __syncthreads();
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0],{%1,%2};"
                 : : "r"(place + 16 * threadIdx.x), "r"(d[2]), "r"(d[1]));
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0],{%1,%2};"
                 : : "r"(place + 1024 + 16 * threadIdx.x), "r"(d[0]), "r"(d[3]));
    __syncthreads();
    d[3] ^= m[threadIdx.x] * 5 + m[threadIdx.x + 32] * 7 + m[threadIdx.x + 256] + m[threadIdx.x + 288] * 3;
#endif
    GIVE(4);
}

// Sixteen products of two forms, in turns of a loop and one after the other.
extern "C" __global__ void many(uint32_t* out, const uint32_t* in) {
    WORDS;
    uint32_t d[4] = {}, e[4] = {w[6], w[7], w[8], w[9]};
    for (int turn = 0; turn < (int)(w[0] & 0) + 3; ++turn) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},"
                         "{%0,%1,%2,%3};"
                         : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                         : "r"(w[0]), "r"(w[i]), "r"(w[2]), "r"(w[3]), "r"(w[4]), "r"(w[(5 + i) & 15]));
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},"
                         "{%8,%9},{%0,%1,%2,%3};"
                         : "+r"(e[0]), "+r"(e[1]), "+r"(e[2]), "+r"(e[3])
                         : "r"(w[1]), "r"(w[i]), "r"(w[6]), "r"(w[8]), "r"(w[10]), "r"(w[(5 + i) & 15]));
        }
        for (int i = 0; i < 4; ++i) d[i] ^= __shfl_xor_sync(0xffffffff, e[i] >> 4, 1 + turn);
    }
    // A rounding otherwise than to nearest is woven into the same code.
    for (int i = 0; i < 4; ++i) d[i] += __float_as_uint(__fadd_ru(__uint_as_float(e[i]), 1e-30f)) * 3;
    GIVE(4);
}
