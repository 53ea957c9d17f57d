#include <cassert>
#include <cstdio>
__global__ void check(int *out, const int *in, int limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = in[i];
  assert(v < limit);
  out[i] = v * 3 + 1;
}
int main() {
  int *in, *out, n = 256;
  cudaMallocManaged(&in, 4 * n); cudaMallocManaged(&out, 4 * n);
  for (int i = 0; i < n; i++) in[i] = i;
  check<<<4, 64>>>(out, in, 1000);
  printf("fine: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  long sum = 0; for (int i = 0; i < n; i++) sum += out[i];
  printf("sum %ld\n", sum);
  check<<<4, 64>>>(out, in, 255);
  printf("failed: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
