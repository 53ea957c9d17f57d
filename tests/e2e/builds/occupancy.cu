// The runtime's occupancy beside NVIDIA's own calculator (cuda_occupancy.h), for kernels of several numbers of registers.
#include <cstdio>
#include <cuda_occupancy.h>
#include <cuda_runtime.h>

template <int N>
__global__ void __launch_bounds__(256) holds(float *out, const float *in) {
  float a[N];
#pragma unroll
  for (int i = 0; i < N; ++i) a[i] = in[threadIdx.x + i * 256];
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] = a[i] * a[(i * 7 + 3) % N] + a[(i + N / 2) % N];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += a[i];
  out[threadIdx.x] = sum;
}

static int bad = 0;

template <class Kernel>
void compare(Kernel kernel) {
  cudaDeviceProp device;
  cudaFuncAttributes function;
  bad += cudaGetDeviceProperties(&device, 0) || cudaFuncGetAttributes(&function, kernel);
  const cudaOccDeviceProp properties(device);
  const cudaOccFuncAttributes attributes(function);
  const cudaOccDeviceState state;
  for (int threads = 16; threads <= 256; threads += 16)
    for (size_t shared : {0, 1000, 20000, 49152}) {
      cudaOccResult expected;
      int blocks = -1;
      bad += cudaOccMaxActiveBlocksPerMultiprocessor(&expected, &properties, &attributes, &state, threads, shared) != 0;
      bad += cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared) != 0;
      if (blocks == expected.activeBlocksPerMultiprocessor) continue;
      ++bad;
      printf("%d registers, %d threads, %zu bytes: %d, not %d blocks\n", function.numRegs, threads, shared, blocks,
             expected.activeBlocksPerMultiprocessor);
    }
  int grid = 0, block = 0, expected_grid = 0, expected_block = 0;
  bad += cudaOccupancyMaxPotentialBlockSize(&grid, &block, kernel, 0, 0) != 0;
  bad += cudaOccMaxPotentialOccupancyBlockSize(&expected_grid, &expected_block, &properties, &attributes, &state, 0,
                                               size_t{0}) != 0;
  bad += grid != expected_grid || block != expected_block;
}

int main() {
  compare(holds<16>);
  compare(holds<40>);
  compare(holds<90>);
  printf("bad %d\n", bad);
  return bad != 0;
}
