// Matrix products of warpgroups (wgmma): several types and layouts, and a ring of two tiles.
#include <cstdint>

// a: the image of shared memory, 16 KiB; b: a round's two descriptors without the address of the
// image, four words; out: the registers of each thread.  Round 0 overwrites, later ones add.
#define PRODUCT(NAME, TYPE, REGS, SOURCES, TAIL)                                                  \
    extern "C" __global__ void NAME(const uint4 *a, const uint64_t *b, TYPE *out, int rounds) {    \
        __shared__ alignas(1024) uint4 image[1024];                                                \
        for (int i = threadIdx.x; i < 1024; i += blockDim.x) image[i] = a[i];                      \
        asm volatile("fence.proxy.async;" ::: "memory");                                           \
        __syncthreads();                                                                           \
        uint64_t at = (uint32_t)__cvta_generic_to_shared(image) >> 4;                              \
        TYPE d[REGS];                                                                              \
        uint32_t w[4];                                                                             \
        for (int k = 0; k < REGS; k++) d[k] = 0;                                                   \
        for (int k = 0; k < 4; k++) w[k] = ((const uint32_t *)a)[threadIdx.x * 4 + k];             \
        for (int i = 0; i < rounds; i++) {                                                         \
            int group = threadIdx.x / 128;                                                         \
            uint64_t left = b[4 * i + 2 * group] + at, right = b[4 * i + 2 * group + 1] + at;      \
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                                \
            SOURCES(TAIL)                                                                          \
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");                         \
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");                         \
        }                                                                                          \
        for (int k = 0; k < REGS; k++) out[threadIdx.x * REGS + k] = d[k];                         \
    }
#define TILES4(TAIL)                                                                               \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned." TAIL        \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                 \
                 : "l"(left), "l"(right), "r"(i));
#define TILES8(TAIL)                                                                               \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned." TAIL       \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]),        \
                   "+r"(d[6]), "+r"(d[7])                                                         \
                 : "l"(left), "l"(right), "r"(i));
#define ROWS8(TAIL)                                                                                \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %13, 0; wgmma.mma_async.sync.aligned." TAIL       \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),        \
                   "+f"(d[6]), "+f"(d[7])                                                         \
                 : "r"(w[0]), "r"(w[1]), "r"(w[2]), "r"(w[3]), "l"(right), "r"(i));
#define FLOATS4(TAIL)                                                                              \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %6, 0; wgmma.mma_async.sync.aligned." TAIL        \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                 \
                 : "l"(left), "l"(right), "r"(i));
#define FLOATS8(TAIL)                                                                              \
    asm volatile("{.reg .pred p; setp.ne.b32 p, %10, 0; wgmma.mma_async.sync.aligned." TAIL       \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),        \
                   "+f"(d[6]), "+f"(d[7])                                                         \
                 : "l"(left), "l"(right), "r"(i));
#define D4 " {%0, %1, %2, %3}, "
#define D8 " {%0, %1, %2, %3, %4, %5, %6, %7}, "

PRODUCT(halves, float, 8, FLOATS8, "m64n16k16.f32.f16.f16" D8 "%8, %9, p, 1, 1, 0, 0;}")
PRODUCT(turned, float, 8, FLOATS8, "m64n16k16.f32.f16.f16" D8 "%8, %9, p, 1, -1, 1, 1;}")
PRODUCT(rows, float, 8, ROWS8, "m64n16k16.f32.bf16.bf16" D8 "{%8, %9, %10, %11}, %12, p, -1, 1, 1;}")
PRODUCT(short_sums, uint32_t, 4, TILES4, "m64n16k16.f16.f16.f16" D4 "%4, %5, p, -1, 1, 0, 1;}")
PRODUCT(tensor_floats, float, 4, FLOATS4, "m64n8k8.f32.tf32.tf32" D4 "%4, %5, p, 1, 1;}")
PRODUCT(small_floats, float, 4, FLOATS4, "m64n8k32.f32.e4m3.e5m2" D4 "%4, %5, p, 1, 1;}")
PRODUCT(small_halves, uint32_t, 4, TILES4, "m64n16k32.f16.e4m3.e4m3" D4 "%4, %5, p, 1, 1;}")
PRODUCT(bytes, uint32_t, 8, TILES8, "m64n16k32.s32.s8.u8.satfinite" D8 "%8, %9, p;}")

// A warp fills one of two tiles of B while four multiply by the other; one thread of the four warps
// says that a tile is free.  a: A's tile, 64 x 16 halves; b: 8 x 16 halves a round.
static __device__ void wait(uint32_t bar, int phase) {
    int done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                     "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar), "r"(phase) : "memory");
}
extern "C" __global__ void ring(const uint4 *a, const uint4 *b, float *out, int rounds) {
    __shared__ alignas(1024) uint4 left[128], right[2][16];
    __shared__ alignas(8) uint64_t bars[4];
    uint32_t full = (uint32_t)__cvta_generic_to_shared(bars), empty = full + 16;
    for (int i = threadIdx.x; i < 128; i += blockDim.x) left[i] = a[i];
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; i++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(full + 8 * i) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(empty + 8 * i) : "memory");
        }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x >= 128) {
        for (int i = 0; i < rounds; i++) {
            if (i >= 2) wait(empty + 8 * (i & 1), i / 2 - 1 & 1);
            if (threadIdx.x < 144) right[i & 1][threadIdx.x - 128] = b[16 * i + threadIdx.x - 128];
            asm volatile("fence.proxy.async;" ::: "memory");
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(full + 8 * (i & 1)) : "memory");
        }
        return;
    }
    float d[4] = {0, 0, 0, 0};
    uint64_t at = (uint32_t)__cvta_generic_to_shared(left) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
    for (int i = 0; i < rounds; i++) {
        wait(full + 8 * (i & 1), i / 2 & 1);
        for (int k = 0; k < 8 * (threadIdx.x / 32); k++) __nanosleep(100);  // later warps come later
        uint64_t to = (uint32_t)__cvta_generic_to_shared(right[i & 1]) >> 4 | 128ull >> 4 << 16;
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" D4 "%4, %5, 1, 1, 1, 0, 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(at), "l"(to));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(empty + 8 * (i & 1)) : "memory");
    }
    for (int k = 0; k < 4; k++) out[threadIdx.x * 4 + k] = d[k];
}

// st.async of words, pairs and quads to the block itself: each lane's bytes arrive at the barrier.
extern "C" __global__ void stores(const uint32_t *a, const uint32_t *b, uint32_t *out, int rounds) {
    __shared__ alignas(16) uint32_t data[32 * 4];
    __shared__ alignas(8) uint64_t bar;
    uint32_t own = __cvta_generic_to_shared(&bar), at = __cvta_generic_to_shared(data), far, to;
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(own) : "memory");
    __syncthreads();
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(far) : "r"(own));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to) : "r"(at));
    for (int k = 0; k < 3; k++) {
        int n = 1 << k, lanes = rounds;
        uint32_t v = a[threadIdx.x] + k, place = to + 4 * n * (threadIdx.x ^ 1);
        if (threadIdx.x == 0)
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(own), "r"(4 * n * lanes) : "memory");
        if (threadIdx.x < lanes) {
#define ASYNC "st.async.shared::cluster.mbarrier::complete_tx::bytes"
            if (k == 0) asm volatile(ASYNC ".b32 [%0], %2, [%1];" :: "r"(place), "r"(far), "r"(v) : "memory");
            if (k == 1) asm volatile(ASYNC ".v2.b32 [%0], {%2, %3}, [%1];" :: "r"(place), "r"(far), "r"(v), "r"(v + 1) : "memory");
            if (k == 2)
                asm volatile(ASYNC ".v4.b32 [%0], {%2, %3, %4, %5}, [%1];"
                             :: "r"(place), "r"(far), "r"(v), "r"(v + 1), "r"(v + 2), "r"(v + 3) : "memory");
        }
        wait(own, k & 1);
        for (int i = 0; i < n; i++) out[128 * k + n * threadIdx.x + i] = data[n * threadIdx.x + i];
        __syncthreads();
    }
}
