// The heap of kernels and its limit: `heap LIMIT` (bytes; 0 leaves the default).
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

__device__ int before;
__device__ void *blocks[1 << 16];
__device__ int count, faults;
__device__ unsigned long long held;

__global__ void plain() { before += 1; }
__global__ void until_null(size_t size) {
  count = 0;
  for (void *p; (p = malloc(size));) blocks[count++] = p;
  for (int i = 0; i < count; ++i) {
    if ((unsigned long long)blocks[i] % 32) ++faults;
    free(blocks[i]);
  }
}
// Every thread takes what it gets, of a size of its own, and leaves a mark in it.
__global__ void all_take(unsigned seed) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, random = (i + seed) * 2654435761u;
  unsigned size = 16 + (random >> 8) % (random % 7 ? 600 : 90000);
  char *p = (char *)malloc(size);
  blocks[i] = p;
  if (!p) return;
  *(unsigned *)p = size;
  *(unsigned *)(p + 4) = i;
  p[size - 1] = (char)i;
  atomicAdd(&held, (unsigned long long)size);
  atomicAdd(&count, 1);
}
__global__ void all_give() {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  char *p = (char *)blocks[i];
  if (p && (*(unsigned *)(p + 4) != i || p[*(unsigned *)p - 1] != (char)i)) atomicAdd(&faults, 1);
  free(p);
}

static size_t limit() {
  size_t value = 0;
  cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize);
  return value;
}
static int read(int &symbol) {
  int value = -1;
  cudaMemcpyFromSymbol(&value, symbol, sizeof value);
  return value;
}
static int set(size_t value) { return cudaDeviceSetLimit(cudaLimitMallocHeapSize, value); }

int main(int, char **argv) {
  size_t asked = strtoull(argv[1], nullptr, 10);
  int seven = 7, zero = 0;
  // Neither a variable of the module nor a kernel without malloc settles the heap's size.
  cudaMemcpyToSymbol(before, &seven, sizeof seven);
  plain<<<1, 1>>>();
  cudaDeviceSynchronize();
  printf("default %zu\n", limit());
  if (asked) {
    int result = set(1);
    printf("set 1: %d, %zu\n", result, limit());
    result = set(~size_t{0});  // rounded up to 64 KiB, which is 2**64
    printf("set all: %d, %zu\n", result, limit());
    result = set(size_t{1} << 44);
    printf("set much: %d, %d\n", result, limit() % 32 == 0 && limit() > (64 << 20));
    result = set(asked);
    printf("set: %d, %zu\n", result, limit());
  }
  for (size_t size : {65536, 1000000, 65536}) {
    until_null<<<1, 1>>>(size);
    int result = cudaDeviceSynchronize();
    printf("%d: %d of %zu\n", result, read(count), size);
  }
  until_null<<<1, 1>>>(size_t{1} << 40);
  cudaDeviceSynchronize();
  printf("%d of 1 TiB\n", read(count));
  int larger = set(64 << 20), same = set(limit());
  printf("set later: %d, %d, %zu, %s\n", larger, same, limit(), cudaGetErrorName(cudaGetLastError()));
  bool within = true, full = true;
  for (unsigned seed = 0; seed < 3; ++seed) {
    unsigned long long none = 0, all = 0;
    cudaMemcpyToSymbol(count, &zero, sizeof zero);
    cudaMemcpyToSymbol(held, &none, sizeof none);
    all_take<<<64, 256>>>(seed);
    cudaMemcpyFromSymbol(&all, held, sizeof all);
    all_give<<<64, 256>>>();
    cudaDeviceSynchronize();
    within = within && all <= limit();
    full = full && all > limit() / 2;
  }
  until_null<<<1, 1>>>(65536);
  cudaDeviceSynchronize();
  printf("within %d, full %d, %d of 65536, faults %d, %s\n", within, full, read(count), read(faults),
         cudaGetErrorName(cudaGetLastError()));
  cudaDeviceReset();
  size_t anew = limit();
  printf("reset %zu, set %d\n", anew, set(16 << 20));
  until_null<<<1, 1>>>(65536);
  cudaDeviceSynchronize();
  printf("%d of 65536\n", read(count));
  return 0;
}
