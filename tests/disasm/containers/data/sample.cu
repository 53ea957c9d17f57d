// Kernels whose cubins exercise what disasm/containers reads; see README.md for how they were built.
#include <cstdio>

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter;
__device__ int table[5] = {1, 2, 3, 4, 5};

struct Mixed {
  float a;
  double b;
  char c;
};

__device__ __noinline__ float helper(float x) { return x / 3.1f; }

// Static shared memory, a barrier, a callee in the same section, __constant__ and __device__ data.
__global__ void saxpy(float a, const float *x, float *y, int n) {
  __shared__ float s[64];
  s[threadIdx.x & 63] = a;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = helper(a * x[i] + s[(i + 1) & 63] * coefficients[i & 3]) + table[i % 5];
  atomicAdd(&counter, 1);
}

// A jump table, a system call, launch bounds, a struct parameter, blockIdx.z.
__global__ __launch_bounds__(256) void jump(int *p, int k, Mixed q) {
  switch (k) {
    case 0: p[0] = p[1] * 3; break;
    case 1: p[1] = p[5] / 7; break;
    case 2: p[3] = p[2] ^ 9; break;
    case 3: p[9] = __popc(p[8]); break;
    case 4: p[4] = p[9] << 3; break;
    case 5: p[8] = p[0] + k; break;
    case 6: p[11] = p[12] * p[13]; break;
    case 7: p[20] = blockIdx.z;
  }
  p[6] = q.c + q.b;
  if (k == 99) printf("%d\n", k);
}

// Local memory, dynamic shared memory, four barriers, a template.
template <class T>
__global__ void local(T *p) {
  extern __shared__ int dynamic[];
  T v[12];
  for (int i = 0; i < 12; i++) v[i] = p[i];
  p[(int)v[(int)v[threadIdx.x] % 12]] = v[5];
  dynamic[threadIdx.x] = 1;
  asm volatile("bar.sync 3, 64;");
  p[20] = dynamic[threadIdx.x + 1];
}
template __global__ void local<double>(double *);
