#include <cstdio>
__global__ void triple(int *out) { out[threadIdx.x] = 3 * threadIdx.x; }
int main() {
  int *device, host[32];
  if (cudaMalloc(&device, sizeof host)) return 1;
  triple<<<1, 32>>>(device);
  if (cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost)) return 2;
  printf("last %d\n", host[31]);
}
