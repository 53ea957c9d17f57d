// Loads the libraries that it is given, then prints the compute capability that the device reports.
#include <cstdio>
#include <cuda_runtime.h>
#include <dlfcn.h>
__global__ void nothing() {}
int main(int count, char **arguments) {
  for (int i = 1; i < count; i++)
    if (!dlopen(arguments[i], RTLD_NOW)) return puts(dlerror());
  int major = 0, minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  nothing<<<1, 1>>>();
  printf("%d.%d %s\n", major, minor, cudaGetErrorName(cudaDeviceSynchronize()));
}
