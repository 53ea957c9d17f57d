// Loops and branches that whole warps take alike if threadIdx.x is the lane and the warp's number.
// Their shuffles have one function to wait in.
#include <cstdint>

__device__ __forceinline__ uint32_t mixed(uint32_t v, int step) {
    return (v ^ __shfl_xor_sync(0xffffffff, v, step)) * 0x9e3779b9u + (v >> 7);
}

__device__ __forceinline__ int lane_number() {
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

// Turns until the first of the warp's numbers is past the end.
extern "C" __global__ void turns(uint32_t* out, const uint32_t* in, int n) {
    uint32_t v = threadIdx.x * 77 + threadIdx.y;
    int end = n + (int)in[0] + lane_number();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < end; i += gridDim.x * blockDim.x) {
        v = mixed(v + (i < n ? in[i & 63] : 5), 1 + (i >> 5 & 7));
        if (__any_sync(0xffffffff, v & 16)) v = mixed(v, 16) + i;
    }
    v = mixed(v, 3);
    out[(blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] = v;
}

// Each warp has an arm of its own.
extern "C" __global__ void arms(uint32_t* out, const uint32_t* in, int n) {
    uint32_t v = in[threadIdx.x & 63] + threadIdx.y;
    if (threadIdx.x / 32 & 1) {
        v = mixed(v, 4) + n;
        if (in[1] & 1) v = mixed(v * 3, 9);
    } else {
        v = mixed(v ^ n, 5) * 9;
    }
    out[(blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x] = v;
}
