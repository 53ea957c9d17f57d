// Memory that is registered read-only, written by copies and fills: registered WAY
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

#include <cuda.h>
#include <dlfcn.h>
#include <cuda_runtime.h>

// Not linked with the driver's library: a machine that builds this may have none.
static void *driver(const char *name) { return dlsym(dlopen("libcuda.so.1", RTLD_NOW), name); }
#define DRIVER(name, ...) (reinterpret_cast<decltype(&name)>(driver(#name))(__VA_ARGS__))

#define STEP(x) printf("%-62s %d\n", #x, static_cast<int>(x))

int main(int, char **argv) {
  setvbuf(stdout, nullptr, _IONBF, 0);
  int way = atoi(argv[1]);
  constexpr size_t kSize = 1 << 16;
  bool closed = way & 1;  // the host may not write there either
  char *h = static_cast<char *>(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memset(h, 'a', kSize);
  if (closed) mprotect(h, kSize, PROT_READ);
  char *d = nullptr, *own = nullptr, back[16] = {};
  STEP(cudaMalloc(&own, kSize));
  STEP(cudaMemset(own, 'o', kSize));
  STEP(cudaHostRegister(h, kSize, cudaHostRegisterReadOnly | cudaHostRegisterMapped));
  STEP(cudaHostGetDevicePointer(&d, h, 0));
  printf("same %d\n", d == h);
  cudaStream_t s;
  STEP(cudaStreamCreate(&s));
  switch (way / 2) {
    case 0: STEP(cudaMemset(d, 'x', 100)); break;
    case 1: STEP(cudaMemsetAsync(d, 'x', 100, s)); break;
    case 2: STEP(cudaMemset2D(d, 64, 'x', 10, 10)); break;
    case 3: STEP(cudaMemset3D(make_cudaPitchedPtr(d, 64, 64, 10), 'x', make_cudaExtent(10, 10, 2))); break;
    case 4: STEP(cudaMemset(d, 'x', 0)); break;
    case 5: STEP(cudaMemset(d + kSize - 4, 'x', 8)); break;
    case 6: STEP(cudaMemcpy(d, own, 100, cudaMemcpyDeviceToDevice)); break;
    case 7: STEP(cudaMemcpy(d, own, 100, cudaMemcpyDeviceToHost)); break;
    case 8: STEP(cudaMemcpyAsync(d, own, 100, cudaMemcpyDefault, s)); break;
    case 9: STEP(cudaMemcpy2D(d, 64, own, 64, 10, 10, cudaMemcpyDefault)); break;
    case 10: STEP(DRIVER(cuMemsetD8_v2, (CUdeviceptr)d, 7, 100)); break;
    case 11: STEP(DRIVER(cuMemsetD32_v2, (CUdeviceptr)d, 7, 100)); break;
    case 12: STEP(DRIVER(cuMemsetD16Async, (CUdeviceptr)d, 7, 100, s)); break;
    case 13: STEP(DRIVER(cuMemsetD2D32_v2, (CUdeviceptr)d, 64, 7, 4, 4)); break;
    case 14: STEP(cudaMemcpy(own, d, 100, cudaMemcpyHostToDevice)); break;
    case 15: STEP(cudaMemcpy(own, d, 100, cudaMemcpyDefault)); break;
    default: break;
  }
  STEP(cudaStreamSynchronize(s));
  STEP(cudaDeviceSynchronize());
  STEP(cudaGetLastError());
  STEP(cudaMemset(own, 'p', 16));
  STEP(cudaMemcpy(back, own, 16, cudaMemcpyDeviceToHost));
  printf("own %.16s, host %.8s %.4s\n", back, h, h + kSize - 4);
  STEP(cudaHostUnregister(h));
  return 0;
}
