// Walks through what every CUDA program does and prints each call's error code.
#include <cstdio>
#include <cuda_runtime.h>

__constant__ float scale;
__managed__ int shared_number = 5;

__global__ void add(int n, const float *a, float *b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = a[i] * scale + shared_number;
}
__global__ void missing(int n, float *b) { b[n] = 0; }

#define STEP(call) printf("%s %d\n", #call, static_cast<int>(call))

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  float host[256] = {3}, factor = 2, *device = nullptr;
  STEP(cudaMalloc(&device, 1024));
  STEP(cudaMemcpyToSymbol(scale, &factor, 4));
  STEP(cudaMemcpyToSymbol(scale, &factor, 17));
  STEP(cudaMemcpy(device, host, 1024, cudaMemcpyHostToDevice));
  add<<<dim3(2, 3, 4), dim3(32, 2, 1), 48>>>(41, device, device);
  STEP(cudaGetLastError());
  missing<<<1, 1>>>(1, device);
  STEP(cudaGetLastError());
  missing<<<1, 1>>>(1, device);
  STEP(cudaPeekAtLastError());
  STEP(cudaGetLastError());
  STEP(cudaGetLastError());
  STEP(cudaDeviceSynchronize());
  host[0] = 0;
  STEP(cudaMemcpy(host, device, 1024, cudaMemcpyDeviceToHost));
  printf("back %g\n", host[0]);
  int blocks = 0, count = 0, version = 0;
  STEP(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 64, 0));
  cudaFuncAttributes attributes{};
  STEP(cudaFuncGetAttributes(&attributes, add));
  printf("registers %d shared %zu\n", attributes.numRegs, attributes.sharedSizeBytes);
  cudaDeviceProp properties{};
  STEP(cudaGetDeviceProperties(&properties, 0));
  printf("%s %zu warp %d sms %d block %d %d %d\n", properties.name, properties.totalGlobalMem, properties.warpSize,
         properties.multiProcessorCount, properties.maxThreadsDim[0], properties.maxThreadsDim[1],
         properties.maxThreadsDim[2]);
  STEP(cudaGetDeviceCount(&count));
  STEP(cudaRuntimeGetVersion(&version));
  printf("count %d version %d managed %d\n", count, version, shared_number);
  STEP(cudaSetDevice(3));
  STEP(cudaMalloc(&device, size_t{1} << 40));
  STEP(cudaFree(reinterpret_cast<void *>(16)));
  STEP(cudaFree(nullptr));
  STEP(cudaStreamQuery(0));
  STEP(cudaMemcpy(host, host, 4, static_cast<cudaMemcpyKind>(9)));
  STEP(cudaDeviceGetNvSciSyncAttributes(nullptr, 0, 0));
  const void *table = host;
  const cudaUUID_t id = {"private table"};
  STEP(cudaGetExportTable(&table, &id));
  STEP(cudaGetExportTable(&table, &id));
  printf("table %d\n", table != nullptr);
  STEP(cudaFuncGetAttributes(&attributes, host));
  printf("%s %s\n", cudaGetErrorName(cudaErrorNotSupported), cudaGetErrorString(cudaErrorInvalidValue));
  return 0;
}
