// SPDX-License-Identifier: Apache-2.0
//
// As much of HIP's interface as the programs beside this file use, so that they compile without ROCm's headers.
#pragma once
#include <cstddef>
#include <cstdint>

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

struct dim3 {
    unsigned x, y, z;
    constexpr __host__ __device__ dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
using hipError_t = int;
using hipStream_t = struct ihipStream_t*;
using hipEvent_t = struct ihipEvent_t*;
using hipGraph_t = struct ihipGraph*;
using hipGraphExec_t = struct hipGraphExec*;
constexpr int hipMemcpyHostToDevice = 1, hipMemcpyDeviceToHost = 2, hipMemcpyDeviceToDevice = 3;

extern "C" {
// What clang calls for <<<...>>> and for the program's fat binary.
hipError_t __hipPushCallConfiguration(dim3, dim3, size_t = 0, hipStream_t = nullptr);
hipError_t __hipPopCallConfiguration(dim3*, dim3*, size_t*, hipStream_t*);
hipError_t hipLaunchKernel(const void*, dim3, dim3, void**, size_t, hipStream_t);

hipError_t hipGetDeviceCount(int*);
hipError_t hipGetLastError();
hipError_t hipDeviceSynchronize();
hipError_t hipMalloc(void**, size_t);
hipError_t hipMallocManaged(void**, size_t, unsigned);
hipError_t hipMallocAsync(void**, size_t, hipStream_t);
hipError_t hipFreeAsync(void*, hipStream_t);
hipError_t hipHostMalloc(void**, size_t, unsigned);
hipError_t hipHostFree(void*);
hipError_t hipFree(void*);
hipError_t hipMemcpy(void*, const void*, size_t, int);
hipError_t hipMemcpyAsync(void*, const void*, size_t, int, hipStream_t);
hipError_t hipMemcpyPeerAsync(void*, int, const void*, int, size_t, hipStream_t);
hipError_t hipMemset(void*, int, size_t);
hipError_t hipMemsetAsync(void*, int, size_t, hipStream_t);
hipError_t hipMemcpyToSymbol(const void*, const void*, size_t, size_t, int);
hipError_t hipMemcpyFromSymbol(void*, const void*, size_t, size_t, int);
hipError_t hipGetSymbolAddress(void**, const void*);
hipError_t hipStreamCreate(hipStream_t*);
hipError_t hipStreamDestroy(hipStream_t);
hipError_t hipStreamSynchronize(hipStream_t);
hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned);
hipError_t hipStreamAddCallback(hipStream_t, void (*)(hipStream_t, hipError_t, void*), void*, unsigned);
hipError_t hipEventCreate(hipEvent_t*);
hipError_t hipEventDestroy(hipEvent_t);
hipError_t hipEventRecord(hipEvent_t, hipStream_t);
hipError_t hipEventSynchronize(hipEvent_t);
hipError_t hipEventElapsedTime(float*, hipEvent_t, hipEvent_t);
hipError_t hipStreamBeginCapture(hipStream_t, int);
hipError_t hipStreamEndCapture(hipStream_t, hipGraph_t*);
hipError_t hipGraphInstantiate(hipGraphExec_t*, hipGraph_t, void*, char*, size_t);
hipError_t hipGraphLaunch(hipGraphExec_t, hipStream_t);
hipError_t hipGraphExecDestroy(hipGraphExec_t);
hipError_t hipGraphDestroy(hipGraph_t);
hipError_t hipLaunchCooperativeKernel(const void*, dim3, dim3, void**, unsigned, hipStream_t);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int*, const void*, int, size_t);
}

inline __device__ unsigned thread_x() { return __builtin_amdgcn_workitem_id_x(); }
inline __device__ unsigned block_x() { return __builtin_amdgcn_workgroup_id_x(); }
inline __device__ unsigned block_size() { return __builtin_amdgcn_workgroup_size_x(); }
inline __device__ unsigned grid_size() { return __builtin_amdgcn_grid_size_x(); }
inline __device__ unsigned index_x() { return block_x() * block_size() + thread_x(); }
inline __device__ void synchronize() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
