// SPDX-License-Identifier: Apache-2.0
//
// One barrier, whose number is in a register, is now a reduction and now not, and of some warps or of
// all. Four warps to a block.
#include "kernel.h"

__device__ void meet(int barrier, int threads) {
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ uint32_t count(int barrier, int threads, uint32_t bit) {
    uint32_t sum;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0; barrier.cta.red.popc.aligned.u32 %0, %1, %2, p; }"
                 : "=r"(sum)
                 : "r"(barrier), "r"(threads), "r"(bit)
                 : "memory");
    return sum;
}

KERNEL(barrier_sums) {
    const int i = THREAD, warp = threadIdx.x >> 5, barrier = 1 + (n & 3);
    uint32_t x = a[i], y = b[i];
    uint32_t sums = count(barrier, 128, x & 1);
    for (int turn = 0; turn < n; ++turn) {
        for (int k = 0; k < turn; ++k) meet(barrier, 128);
        sums = sums * 5 + count(barrier, 128, x >> turn & 1);
    }
    // Warp 1 may still read the sum when warps 0 and 2 meet where it was made.
    if (warp < 2) sums = sums * 5 + count(barrier, 64, y & 1);
    if (warp == 0 || warp == 2) {
        meet(barrier + 1, 64);
        meet(barrier, 64);
        sums = sums * 5 + count(barrier, 64, y & 2);
    }
    out[i] = sums;
}
