// Stores to surfaces at the edges of 32-bit coordinates: `surfaces zero`, or `surfaces trap X Y` for one store.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

constexpr int kWidth = 64, kRows = 4;  // bytes
constexpr unsigned kX[] = {0, 16, 48, 49, 60, 61, 62, 63, 64, 65, 80, 128, 1u << 16, 0x7ffffff0, 0x80000000, 0x80000010,
                           0xffffff00, 0xffffffc0, 0xffffffe0, 0xfffffff0, 0xfffffff1, 0xfffffff8, 0xfffffff9,
                           0xfffffffc, 0xfffffffd, 0xfffffffe, 0xffffffff};
constexpr unsigned kY[] = {0, 3, 4, 5, 1u << 26, 0x3fffffff, 0x40000000, 0x7fffffff, 0x80000000, 0xc0000000, 0xfffffffc,
                           0xffffffff};

template <typename T>
__device__ T filled();
template <> __device__ unsigned char filled() { return 0xa5; }
template <> __device__ unsigned short filled() { return 0xa5a5; }
template <> __device__ unsigned filled() { return 0xa5a5a5a5; }
template <> __device__ uint2 filled() { return {0xa5a5a5a5, 0xa5a5a5a5}; }
template <> __device__ uint4 filled() { return {0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5, 0xa5a5a5a5}; }

template <typename T>
__global__ void one(cudaSurfaceObject_t s, unsigned x, unsigned y) {
  surf2Dwrite(filled<T>(), s, (int)x, (int)y, cudaBoundaryModeTrap);
}
template <typename T>
__global__ void edge(cudaSurfaceObject_t s, unsigned x, unsigned y) {
  surf2Dwrite(filled<T>(), s, (int)x, (int)y, cudaBoundaryModeZero);
}
template <typename T>
int check(cudaSurfaceObject_t s, cudaArray_t array) {
  static unsigned char got[kRows][kWidth], want[kRows][kWidth];
  const int size = sizeof(T);
  auto compare = [&] {
    memset(got, 0x5a, sizeof got);
    cudaMemcpy2DFromArray(got, kWidth, array, 0, 0, kWidth, kRows, cudaMemcpyDeviceToHost);
    return memcmp(got, want, sizeof got) != 0;
  };
  auto clear = [&] {
    memset(want, 0, sizeof want);
    cudaMemcpy2DToArray(array, 0, 0, want, kWidth, kWidth, kRows, cudaMemcpyHostToDevice);
  };
  int bad = 0;
  for (unsigned y : kY)
    for (unsigned x : kX) {
      // Inside, an address that is no multiple of the size has no meaning.
      bool inside = (unsigned long long)x + size <= kWidth && y < kRows;
      if (inside && x % size) continue;
      clear();
      if (inside) memset(&want[y][x], 0xa5, size);
      edge<T><<<1, 1>>>(s, x, y);
      bad += cudaDeviceSynchronize() != cudaSuccess || compare();
    }
  return bad;
}

int main(int argc, char **argv) {
  auto format = cudaCreateChannelDesc<unsigned char>();
  cudaArray_t array;
  cudaMallocArray(&array, &format, kWidth, kRows, cudaArraySurfaceLoadStore);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaSurfaceObject_t s;
  cudaCreateSurfaceObject(&s, &resource);
  if (argc > 3) {
    one<unsigned><<<1, 1>>>(s, strtoul(argv[2], nullptr, 0), strtoul(argv[3], nullptr, 0));
    printf("%d\n", cudaDeviceSynchronize());
    return 0;
  }
  printf("bad %d %d %d %d %d, %s\n", check<unsigned char>(s, array), check<unsigned short>(s, array),
         check<unsigned>(s, array), check<uint2>(s, array), check<uint4>(s, array), cudaGetErrorName(cudaGetLastError()));
  return 0;
}
