// SPDX-License-Identifier: Apache-2.0
//
// Arrivals at barriers in shared memory by generic addresses: the barrier's address comes from
// memory, so that the compiler cannot tell which memory it is in.
//   nvcc -std=c++17 -arch=sm_80 -cubin -o generic_arrivals.cubin generic_arrivals.cu
#include <cstdint>

__device__ __forceinline__ uint64_t arrive(uint64_t *barrier) {
    uint64_t token;
    asm volatile("mbarrier.arrive.b64 %0, [%1];" : "=l"(token) : "l"(barrier) : "memory");
    return token;
}

__device__ __forceinline__ void wait(uint64_t *barrier, uint64_t token) {
    asm volatile(
        "{\n.reg .pred done;\nagain:\nmbarrier.test_wait.b64 done, [%0], %1;\n"
        "@!done bra again;\n}" ::"l"(barrier), "l"(token) : "memory");
}

extern "C" __global__ void generic_arrivals(const uint32_t *a, const uint32_t *b, uint32_t *out,
                                            int n) {
    __shared__ uint64_t barriers[3];
    __shared__ uint64_t *places[3];
    __shared__ uint32_t box[128];
    const int t = threadIdx.x, i = blockIdx.x * 128 + t;
    if (t < 3) {
        asm volatile("mbarrier.init.b64 [%0], %1;" ::"l"(barriers + t), "r"(128) : "memory");
        places[t] = barriers + t;
    }
    __syncthreads();
    uint64_t *const first = const_cast<uint64_t *volatile *>(places)[0];
    uint64_t *const drop = const_cast<uint64_t *volatile *>(places)[t >> 9 | 2];
    uint32_t x = a[i] + b[i] * n;
    for (int k = 0; k < 4; ++k) {
        box[t] = x;
        wait(first, arrive(first));
        x = x * 3 + box[(t + 33) & 127];
        wait(first, arrive(first));
    }
    if (t & 1) {  // 64 expected from the next phase on
        asm volatile("{\n.reg .b64 token;\nmbarrier.arrive_drop.b64 token, [%0];\n}" ::"l"(drop)
                     : "memory");
    } else {
        wait(drop, arrive(drop));
        for (int k = 0; k < 3; ++k) {
            box[t] = x;
            wait(drop, arrive(drop));
            x = x * 5 + box[t ^ 2];
            wait(drop, arrive(drop));
        }
    }
    out[i] = x;
}
