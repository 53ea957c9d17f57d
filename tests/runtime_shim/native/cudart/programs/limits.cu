// Limits of a context: what is set, what is then said, and what a reset leaves.  limits [HUGE]
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void plain() {}
__device__ void *kept;
__global__ void takes() { kept = malloc(64); }

static unsigned long long get(int limit, int *error) {
  size_t value = 12345;
  *error = cudaDeviceGetLimit(&value, static_cast<cudaLimit>(limit));
  return value;
}
static void show(const char *when) {
  printf("%s:", when);
  for (int limit = 0; limit < 9; ++limit) {
    int error;
    unsigned long long value = get(limit, &error);
    if (error) printf(" !%d", error);
    else printf(" %llu", value);
  }
  printf(", %d\n", cudaGetLastError());
}
static void set(int limit, unsigned long long value) {
  int error, result = cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value);
  unsigned long long now = get(limit, &error);
  printf("limit %d, %llu: %d, then %llu\n", limit, value, result, now);
  cudaGetLastError();
}

int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  if (argc > 1) {  // values of the heap that depend on the device's memory
    for (int k = 1; k < argc; ++k) {
      set(2, strtoull(argv[k], nullptr, 10));
      takes<<<1, 1>>>();
      int result = cudaDeviceSynchronize();
      size_t free = 0, all = 0;
      cudaMemGetInfo(&free, &all);
      printf("kernel: %d, taken %llu MiB\n", result, static_cast<unsigned long long>((all - free) >> 20));
      cudaGetLastError();
      cudaDeviceReset();
    }
    return 0;
  }
  show("at first");
  plain<<<1, 1>>>();
  cudaDeviceSynchronize();
  show("after a kernel");
  static const unsigned long long heaps[] = {0, 1, 4194303, 4194304, 4194305, 4259840, 5000000, 8388608, 8388609, 10000000,
                                             16777216, 67108865, 1000000000, 1073741824, 2147483648ull, 4294967296ull};
  for (unsigned long long value : heaps) set(2, value);
  set(2, 8388608);
  static const unsigned long long stacks[] = {0, 1, 15, 16, 17, 100, 1000, 1024, 1025, 4096, 65536, 131072, 262144, 523264, 524288, 524289, 1048576};
  for (unsigned long long value : stacks) set(0, value);
  set(0, 1024);
  static const unsigned long long fifos[] = {0, 1, 1000, 4096, 65536, 1000000, 1048576, 7340032, 7340033, 33554432, 1073741824};
  for (unsigned long long value : fifos) set(1, value);
  for (int limit = 3; limit < 9; ++limit)
    for (unsigned long long value : {0ull, 1ull, 2ull, 3ull, 24ull, 25ull, 31ull, 32ull, 64ull, 100ull, 128ull, 129ull, 1000ull, 2048ull, 65536ull, 1048576ull, 3932160ull, 1073741824ull, ~0ull})
      set(limit, value);
  set(-1, 1);
  set(9, 1);
  set(100, 1);
  cudaDeviceReset();
  show("after a reset");
  set(0, 4096);
  set(1, 2097152);
  set(2, 20000000);
  set(3, 4);
  set(4, 4096);
  set(5, 64);
  set(6, 1048576);
  show("set");
  takes<<<1, 1>>>();
  printf("kernel: %d\n", cudaDeviceSynchronize());
  show("after malloc");
  set(2, 20000000);
  set(2, 40000000);
  set(1, 4194304);
  set(0, 8192);
  cudaDeviceReset();
  show("after a reset");
  set(2, 1);
  cudaDeviceReset();
  show("after another");
  return 0;
}
