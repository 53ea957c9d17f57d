// Copies of tiles by a tensor map (cp.async.bulk.tensor).  b: the map, whose address is put in here,
// then five coordinates and the bytes to wait for.
#include <cstdint>

static __device__ void begin(uint32_t bar, uint32_t *tile, const void *tensor, uint32_t *map, uint32_t fill) {
    for (int i = threadIdx.x; i < 2048; i += 32) tile[i] = fill + i * (fill >> 31);
    if (threadIdx.x == 0) {
        *(const void **)map = tensor;
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncwarp();
}
static __device__ void arrived(uint32_t bar) {
    int done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                     "selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
}
#define EXPECT asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(b[37]) : "memory");

#define COPIES(N, AT, ...)                                                                         \
    extern "C" __global__ void load##N(const uint32_t *a, uint32_t *b, uint32_t *out, int words) { \
        __shared__ alignas(1024) uint32_t tile[2048];                                              \
        __shared__ alignas(8) uint64_t word;                                                       \
        uint32_t bar = __cvta_generic_to_shared(&word), to = __cvta_generic_to_shared(tile);       \
        begin(bar, tile, a, b, 0xA5A5A5A5 & 0x7FFFFFFF);                                           \
        if (threadIdx.x == 0) {                                                                    \
            EXPECT                                                                                 \
            asm volatile("cp.async.bulk.tensor." #N "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes" \
                         " [%0], [%1, {" AT "}], [%2];" :: "r"(to), "l"(b), "r"(bar), __VA_ARGS__ : "memory"); \
        }                                                                                          \
        arrived(bar);                                                                              \
        for (int i = threadIdx.x; i < words; i += 32) out[i] = tile[i];                            \
    }                                                                                              \
    extern "C" __global__ void store##N(uint32_t *a, uint32_t *b, uint32_t *out, int words) {      \
        __shared__ alignas(1024) uint32_t tile[2048];                                              \
        __shared__ alignas(8) uint64_t word;                                                       \
        uint32_t bar = __cvta_generic_to_shared(&word), to = __cvta_generic_to_shared(tile);       \
        begin(bar, tile, out, b, 0x80000000);                                                      \
        if (threadIdx.x == 0) {                                                                    \
            asm volatile("cp.async.bulk.tensor." #N "d.global.shared::cta.tile.bulk_group [%1, {" AT "}], [%0];" \
                         "// %2" :: "r"(to), "l"(b), "r"(bar), __VA_ARGS__ : "memory");            \
            asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");  \
        }                                                                                          \
    }
#define C(i) "r"(b[32 + i])
COPIES(1, "%3", C(0))
COPIES(2, "%3, %4", C(0), C(1))
COPIES(3, "%3, %4, %5", C(0), C(1), C(2))
COPIES(4, "%3, %4, %5, %6", C(0), C(1), C(2), C(3))
COPIES(5, "%3, %4, %5, %6, %7", C(0), C(1), C(2), C(3), C(4))
// To the blocks of a cluster that a mask (word 38) has.
extern "C" __global__ void multicast2(const uint32_t *a, uint32_t *b, uint32_t *out, int words) {
    __shared__ alignas(1024) uint32_t tile[2048];
    __shared__ alignas(8) uint64_t word;
    uint32_t bar = __cvta_generic_to_shared(&word), to = __cvta_generic_to_shared(tile);
    begin(bar, tile, a, b, 0xA5A5A5A5 & 0x7FFFFFFF);
    if (threadIdx.x == 0) {
        EXPECT
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                     " [%0], [%1, {%3, %4}], [%2], %5;" :: "r"(to), "l"(b), "r"(bar), C(0), C(1), "h"((short)b[38]) : "memory");
    }
    arrived(bar);
    for (int i = threadIdx.x; i < words; i += 32) out[i] = tile[i];
}
