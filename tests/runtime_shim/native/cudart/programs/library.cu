// A library with a runtime of its own, used already in its constructor.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void twice(int n, float *p) { p[threadIdx.x] *= n; }

static int launch() {
  float *p = nullptr;
  if (cudaError_t error = cudaMalloc(&p, 64)) return error;
  twice<<<1, 16>>>(2, p);
  return cudaGetLastError();
}

static int early = launch();

extern "C" int run_library() { return early * 1000 + launch(); }

extern "C" int fail_library() {
  float *p = nullptr;
  return cudaMalloc(&p, size_t{1} << 40);
}

extern "C" int last_error_of_library() { return cudaPeekAtLastError(); }
