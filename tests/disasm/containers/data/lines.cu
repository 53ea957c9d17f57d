// Code inlined twice over and from another file, a call that is relocated, a jump table.
#include "lines.h"

#ifdef __CUDACC_RDC__
extern __device__ int offset(int);
#endif

__device__ __forceinline__ int square(int a) {
  return a * a + 1;
}

__device__ __forceinline__ int cube(int a) {
  int b = square(a);
  return b * a;
}

__device__ __noinline__ int apart(int a) {
  return a % 5;
}

__global__ void first(int *p, int n) {
  int i = threadIdx.x;
  p[i] = cube(p[i]) + twice(n);
  if (i > 3)
    p[i + 1] = square(i) + apart(n);
}

__global__ void second(int *p, int n) {
  __shared__ int cells[32];
  cells[threadIdx.x] = n;
  __syncthreads();
  switch (n) {
    case 0: p[0] = cells[3]; break;
    case 1: p[1] = twice(cells[4]); break;
    case 2: p[7] = n / p[4]; break;
    case 3: p[3] = p[2] + 1; break;
    case 4: p[5] = p[9] * 3; break;
    case 5: p[6] = square(p[1]);
  }
#ifdef __CUDACC_RDC__
  p[8] = offset(n);
#endif
}
