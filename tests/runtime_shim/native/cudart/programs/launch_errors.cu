// What the runtime and the driver say to launches that cannot be.
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
__global__ void empty() {}
__global__ void __launch_bounds__(256) bounded() {}
static __global__ void cluster_less(int *p) { if (p) *p = 1; }
static void say(const char *what, cudaError_t e) {
  cudaError_t last = cudaGetLastError();
  cudaError_t sync = cudaDeviceSynchronize();
  printf("%s: %d %s, last %d, sync %d\n", what, e, cudaGetErrorName(e), last, sync);
}
static void go(const char *what, const void *f, dim3 g, dim3 b, size_t shared, void **args = nullptr) {
  say(what, cudaLaunchKernel(f, g, b, args, shared, 0));
}
int main() {
  cudaFree(0);
  const void *f = (const void *)empty;
  go("block 1024", f, 1, 1024, 0);
  go("block 1025", f, 1, 1025, 0);
  go("block 4096", f, 1, 4096, 0);
  go("block 1x2048", f, 1, dim3(1, 2048), 0);
  go("block 1x1x65", f, 1, dim3(1, 1, 65), 0);
  go("block 1x1x64", f, 1, dim3(1, 1, 64), 0);
  go("block 64x64", f, 1, dim3(64, 64), 0);
  go("block 0", f, 1, 0, 0);
  go("block 1x0", f, 1, dim3(1, 0), 0);
  go("grid 0", f, 0, 1, 0);
  go("grid 1x0", f, dim3(1, 0), 1, 0);
  go("grid 0x0x0 block 0", f, dim3(0, 0, 0), dim3(0, 0, 0), 0);
  go("grid 1x65535", f, dim3(1, 65535), 1, 0);
  go("grid 1x65536", f, dim3(1, 65536), 1, 0);
  go("grid 1x1x65536", f, dim3(1, 1, 65536), 1, 0);
  go("grid 2147483648", f, dim3(2147483648u), 1, 0);
  go("shared 49152", f, 1, 1, 49152);
  go("shared 49153", f, 1, 1, 49153);
  go("shared 300000", f, 1, 1, 300000);
  go("bounded 256", (const void *)bounded, 1, 256, 0);
  go("bounded 257", (const void *)bounded, 1, 257, 0);
  go("null function", nullptr, 1, 1, 0);
  go("not a function", (const void *)&printf, 1, 1, 0);
  int *p = nullptr;
  void *args[] = {&p};
  go("arguments", (const void *)cluster_less, 1, 1, 0, args);
  say("set shared 232448", cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 232448));
  say("set shared 232449", cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, 232449));
  say("set shared -1", cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, -2));
  go("shared 232448", f, 1, 1, 232448);
  cudaLaunchConfig_t c = {};
  c.gridDim = 1, c.blockDim = 4096;
  say("Ex block 4096", cudaLaunchKernelExC(&c, f, nullptr));
  c.blockDim = 0;
  say("Ex block 0", cudaLaunchKernelExC(&c, f, nullptr));
  dim3 g(1), b(4096);
  say("cooperative 4096", cudaLaunchCooperativeKernel(f, g, b, nullptr, 0, 0));
  say("cooperative 100000 blocks", cudaLaunchCooperativeKernel(f, dim3(100000), dim3(1024), nullptr, 0, 0));
  say("cooperative grid 0", cudaLaunchCooperativeKernel(f, dim3(0), dim3(32), nullptr, 0, 0));
  cudaStream_t s = nullptr;
  cudaStreamCreate(&s);
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  printf("captured block 4096: %d", cudaLaunchKernel(f, 1, 4096, nullptr, 0, s));
  printf(", end %d\n", cudaStreamEndCapture(s, &graph));
  cudaGetLastError();
  cudaGraphCreate(&graph, 0);
  cudaKernelNodeParams n = {};
  n.func = (void *)f, n.gridDim = 1, n.blockDim = 4096;
  cudaGraphNode_t node = nullptr;
  printf("node block 4096: %d\n", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &n));
  n.blockDim = 0;
  printf("node block 0: %d\n", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &n));
  n.blockDim = 1, n.sharedMemBytes = 300000;
  printf("node shared 300000: %d\n", cudaGraphAddKernelNode(&node, graph, nullptr, 0, &n));
  cudaGetLastError();
  cudaKernel_t k = nullptr;
  cudaFuncAttributes a;
  printf("kernel %d\n", cudaGetKernel(&k, f));
  printf("attributes of null %d\n", cudaFuncGetAttributes(&a, nullptr));
  cudaGetLastError();
  void *entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  cudaGetDriverEntryPointByVersion("cuLaunchKernel", &entry, 13000, cudaEnableDefault, &found);
  auto launch = (CUresult(*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))entry;
  struct { unsigned gx, gy, gz, bx, by, bz, shared; } t[] = {{1,1,1,4096,1,1,0},{1,1,1,0,1,1,0},{0,1,1,1,1,1,0},{1,65536,1,1,1,1,0},{1,1,1,1,1,65,0},{1,1,1,1,1,1,300000}};
  for (auto &x : t)
    printf("driver %u %u %u  %u %u %u  %u: %d\n", x.gx, x.gy, x.gz, x.bx, x.by, x.bz, x.shared,
           launch((CUfunction)k, x.gx, x.gy, x.gz, x.bx, x.by, x.bz, x.shared, nullptr, nullptr, nullptr));
}
