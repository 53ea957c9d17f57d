// A library with a runtime of its own and a kernel, of which nothing is used.
#include <cuda_runtime.h>

__global__ void twice(int n, float *p) { p[threadIdx.x] *= n; }

extern "C" int launch_library(float *p) {
  twice<<<1, 16>>>(2, p);
  return cudaGetLastError();
}

extern "C" int run_library() { return 0; }
