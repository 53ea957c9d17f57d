// Aligned 64-bit words in global memory are read and written whole, whatever other blocks do:
// programs keep a link and its rank in one.  Every word has equal halves; a reader counts others.
#include <cstdio>

struct alignas(16) Two {
  unsigned long long a, b;
};

__device__ __forceinline__ unsigned long long twice(unsigned x) { return ((unsigned long long)x << 32) | x; }

__device__ __forceinline__ unsigned torn(unsigned long long w) { return (unsigned)w != (unsigned)(w >> 32); }

// Odd blocks write, even ones read; `stride` 0: one word for all lanes; 1: side by side; else apart.
__global__ void words(volatile unsigned long long *w, volatile Two *t, int stride, int rounds, unsigned *bad) {
  int at = threadIdx.x * stride;
  unsigned found = 0;
  for (int i = 0; i < rounds; i++) {
    if (blockIdx.x & 1) {
      if (stride || threadIdx.x == 0) {
        w[at] = twice(i * 2654435761u + blockIdx.x);
        t[at].a = t[at].b = twice(i * 2246822519u + blockIdx.x);
        if (i & 1) *(ulonglong2 *)(t + at) = make_ulonglong2(twice(~i), twice(i * 3));
      }
    } else {
      found += torn(w[at]);
      ulonglong2 both = *(ulonglong2 *)(t + at);
      found += torn(both.x) + torn(both.y);
      asm volatile("" ::: "memory");
    }
  }
  if (found) atomicAdd(bad, found);
}

int main() {
  const int kMost = 64 * 3;
  unsigned long long *w;
  Two *t;
  unsigned *bad, all[3];
  cudaMalloc(&w, kMost * sizeof *w);
  cudaMalloc(&t, kMost * sizeof *t);
  cudaMalloc(&bad, sizeof all);
  cudaMemset(w, 0, kMost * sizeof *w);
  cudaMemset(t, 0, kMost * sizeof *t);
  cudaMemset(bad, 0, sizeof all);
  const int strides[3] = {0, 1, 3};
  for (int k = 0; k < 3; k++) words<<<8, 64>>>(w, t, strides[k], 4000, bad + k);
  cudaMemcpy(all, bad, sizeof all, cudaMemcpyDeviceToHost);
  printf("bad %u\none word %u, side by side %u, apart %u\n", all[0] + all[1] + all[2], all[0], all[1], all[2]);
  return cudaGetLastError() != cudaSuccess;
}
