// How many blocks of each size one thread gets from the heap of kernels: heap_blocks LIMIT SIZE...
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void take(size_t size, void **blocks, int most, int *count, unsigned long long *bits) {
  int n = 0;
  unsigned long long seen = 0;
  for (void *p; n < most && (p = malloc(size)); ++n) blocks[n] = p, seen |= (unsigned long long)p;
  *count = n;
  *bits = seen;
  for (int i = n; i--;) free(blocks[i]);
}

int main(int argc, char **argv) {
  constexpr int kMost = 1 << 22;
  size_t limit = strtoull(argv[1], nullptr, 10);
  for (int k = 2; k < argc; ++k) {
    size_t size = strtoull(argv[k], nullptr, 10);
    void **blocks;
    int *out, count[2] = {-1, -1};
    unsigned long long *bits, seen = 0;
    int set = cudaDeviceSetLimit(cudaLimitMallocHeapSize, limit);
    cudaMalloc(&blocks, sizeof(void *) * kMost);
    cudaMalloc(&out, 8);
    cudaMemset(out, 255, 8);
    cudaMalloc(&bits, 8);
    for (int again = 0; again < 2 && count[0] < 5000; ++again) {
      take<<<1, 1>>>(size, blocks, kMost, out + again, bits);
      cudaMemcpy(count, out, 8, cudaMemcpyDeviceToHost);
    }
    cudaMemcpy(&seen, bits, 8, cudaMemcpyDeviceToHost);
    printf("%zu %zu: %d %d, aligned to %llu, %s%s\n", limit, size, count[0], count[1], seen & -seen,
           cudaGetErrorName(cudaGetLastError()), set ? ", limit refused" : "");
    fflush(stdout);
    cudaDeviceReset();
  }
  return 0;
}
