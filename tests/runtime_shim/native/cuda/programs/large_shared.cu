// As much shared memory as the device says it has: limits, occupancy, and every word of it by each kind of access.
#include <cstdio>
#include <cstdint>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#include <vector>
__global__ void turned(const uint4 *in, uint32_t *out, int words, uint32_t *sums) {
  extern __shared__ __align__(16) uint32_t s[];
  for (int i = threadIdx.x; i < words / 4; i += blockDim.x) __pipeline_memcpy_async(s + 4 * i, in + i, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  volatile uint32_t *generic = s;
  asm volatile("" : "+l"(generic));
  for (int i = threadIdx.x; i < words; i += blockDim.x) {
    if (i % 3 == 0) atomicAdd(s + i, 1u);
    if (i % 3 == 1) generic[i] = generic[i] + 2;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < words; i += blockDim.x) out[blockIdx.x * words + i] = s[words - 1 - i];
  const uint4 last = *reinterpret_cast<uint4 *>(s + words - 4);
  if (threadIdx.x == 0) sums[blockIdx.x] = last.x + last.y + last.z + last.w;
}
int main() {
  int block, sm, blocks = 0, fit = 0;
  cudaDeviceGetAttribute(&block, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaDeviceGetAttribute(&sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0);
  size_t room = 0;
  cudaError_t more = cudaFuncSetAttribute(turned, cudaFuncAttributeMaxDynamicSharedMemorySize, block + 1);
  cudaGetLastError();
  cudaError_t all = cudaFuncSetAttribute(turned, cudaFuncAttributeMaxDynamicSharedMemorySize, block);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, turned, 256, block);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, turned, 256, 49152);
  cudaOccupancyAvailableDynamicSMemPerBlock(&room, turned, 2, 256);
  printf("%d %d %d %d %d %d %zu\n", sm, block, more, all, blocks, fit, room);
  const int words = block / 4, grid = 3;
  std::vector<uint32_t> in(words), out(size_t(words) * grid), sums(grid);
  for (int i = 0; i < words; i++) in[i] = i * 2654435761u;
  uint32_t *a, *b, *c;
  cudaMalloc(&a, block), cudaMalloc(&b, size_t(block) * grid), cudaMalloc(&c, 4 * grid);
  cudaMemcpy(a, in.data(), block, cudaMemcpyHostToDevice);
  turned<<<grid, 256, block>>>((uint4 *)a, b, words, c);
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaMemcpy(out.data(), b, size_t(block) * grid, cudaMemcpyDeviceToHost);
  cudaMemcpy(sums.data(), c, 4 * grid, cudaMemcpyDeviceToHost);
  int wrong = 0;
  auto value = [&](int i) { return in[i] + (i % 3 == 0 ? 1 : i % 3 == 1 ? 2 : 0); };
  for (int g = 0; g < grid; g++) {
    for (int i = 0; i < words; i++) wrong += out[size_t(g) * words + i] != value(words - 1 - i);
    uint32_t sum = 0;
    for (int i = words - 4; i < words; i++) sum += value(i);
    wrong += sums[g] != sum;
  }
  printf("wrong %d\n", wrong);
}
