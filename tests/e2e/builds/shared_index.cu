// Indices into shared memory that begin below zero: nvcc keeps the constant part in the instruction's offset.
#include <cstdio>

__global__ void sums(int *out, int from) {
  __shared__ int cells[96];
  int i = threadIdx.x;
  cells[i] = 100 + i;
  cells[i + 32] = 200 + i;
  cells[i + 64] = 300 + i;
  __syncthreads();
  int total = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) total += cells[i + from + 32 + k];
  out[i] = total;
}

int main() {
  int *out, host[32], bad = 0;
  cudaMalloc(&out, sizeof host);
  for (int from = -32; from <= 24; from += 7) {
    sums<<<1, 32>>>(out, from);
    cudaError_t error = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    if (error) return printf("%s\n", cudaGetErrorName(error)), 1;
    for (int i = 0; i < 32; ++i) {
      int total = 0;
      for (int k = 0; k < 8; ++k) {
        int at = i + from + 32 + k;
        total += (at / 32 + 1) * 100 + at % 32;
      }
      bad += total != host[i];
    }
  }
  printf("bad %d \n", bad);
  return bad != 0;
}
