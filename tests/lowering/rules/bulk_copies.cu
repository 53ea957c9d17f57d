// Bulk copies both ways: out = a, by way of shared memory, block by block.
#include <cstdint>
extern "C" __global__ void bulk_copies(const char *a, const char *b, char *out, int n) {
    __shared__ alignas(128) char room[2048];
    __shared__ alignas(8) uint64_t bar;
    uint32_t at = (uint32_t)__cvta_generic_to_shared(room);
    uint32_t meet = (uint32_t)__cvta_generic_to_shared(&bar);
    if (threadIdx.x) return;
    a += blockIdx.x * n;
    out += blockIdx.x * n;
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(meet));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(meet), "r"(n) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
                 "[%3];" ::"r"(at), "l"(a), "r"(n), "r"(meet) : "memory");
    uint32_t over = 0;
    while (!over)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(over) : "r"(meet) : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 ::"l"(out), "r"(at), "r"(n) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
