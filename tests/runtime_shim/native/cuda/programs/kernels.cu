// Kernels of the driver tests: parameters of several sizes, variables, constants, shared memory, faults.
#include <cstdint>

struct Triple {
  double a;
  short b;
  char c;
};

__constant__ int factors[4] = {3, 5, 7, 11};
__device__ int counter = 40;
__device__ int *counter_pointer = &counter;
__device__ unsigned zeros[64];
__managed__ int everywhere[2000] = {6};

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void mixed(char first, Triple triple, int64_t *out) {
  out[0] = first;
  out[1] = static_cast<int64_t>(triple.a * 4.0);
  out[2] = triple.b;
  out[3] = triple.c;
  out[4] = gridDim.x * 1000000ll + gridDim.y * 1000 + gridDim.z;
  out[5] = blockDim.x * 1000000ll + blockDim.y * 1000 + blockDim.z;
}

extern "C" __global__ void variables(int which, int *out) {
  atomicAdd(counter_pointer, factors[which & 3]);
  out[0] = counter;
  out[1] = factors[which & 3];
  zeros[threadIdx.x & 63] += 1;
}

extern "C" __global__ void reversed(int *data) {
  extern __shared__ int tile[];
  __shared__ int bias;
  if (threadIdx.x == 0) bias = data[1] + 99;
  tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x] + bias;
}

extern "C" __global__ void __launch_bounds__(64) bounded(int *out) { out[threadIdx.x] = 1; }

extern "C" __global__ void stray(int *nowhere) { nowhere[threadIdx.x] = 1; }

extern "C" __global__ void managed() {
  everywhere[1] = everywhere[0] + counter;
}
