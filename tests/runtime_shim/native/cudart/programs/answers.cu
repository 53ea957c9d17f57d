// Prints what each call answers, good and bad ones alike.  answers.txt is what an H200 printed, with NVIDIA's
// runtime 13.0 and driver 580.159.04.
#include <cstdio>
#include <cstdlib>

#include <cuda_profiler_api.h>
#include <cuda_runtime.h>

__global__ void k(int *p) {
  if (p) *p = 1;
}
__constant__ int c[4];

#define STEP(x) printf("%-70s %d\n", #x, static_cast<int>(x))

static const char *which(const void *p, const void *q) { return q == p ? "same" : q ? "other" : "null"; }

static void describe(const char *name, const void *p) {
  cudaPointerAttributes a{};
  int error = cudaPointerGetAttributes(&a, p);
  printf("%s: %d type %d device %d, %s %s\n", name, error, a.type, a.device, which(p, a.devicePointer),
         which(p, a.hostPointer));
}

int main() {
  setvbuf(stdout, 0, _IONBF, 0);
  int *d=0, *h=0, *m=0;
  static int st;
  void *q;
  size_t pitch;
  STEP(cudaPeekAtLastError());
  STEP(cudaFree(0));
  STEP(cudaMalloc(0, 4));
  STEP(cudaMalloc((void**)&d, 0));
  printf("%d\n", d==0);
  STEP(cudaMalloc(&d, 4096));
  STEP(cudaMallocHost(&h, 64));
  STEP(cudaMallocManaged(&m, 64));
  STEP(cudaMallocManaged(&m, 0));
  STEP(cudaMallocManaged(&m, 64));
  STEP(cudaHostAlloc(&q, 0, 0));
  STEP(cudaMallocHost(&q, 0));
  describe("device", d);
  describe("device+8", d+2);
  describe("host", h);
  describe("managed", m);
  describe("static", &st);
  describe("null", 0);
  int *hp=(int*)malloc(4096*4);
  describe("heap", hp);
  STEP(cudaHostRegister(hp, 4096, 0));
  describe("registered", hp);
  STEP(cudaHostGetDevicePointer(&q, hp, 0));
  STEP(cudaHostUnregister(hp + 1));
  STEP(cudaHostUnregister(hp));
  STEP(cudaHostUnregister(hp));
  STEP(cudaGetLastError());
  STEP(cudaGetLastError());
  cudaStream_t s;
  cudaEvent_t e, e2;
  STEP(cudaStreamCreate(&s));
  STEP(cudaEventCreate(&e));
  STEP(cudaEventCreate(&e2));
  float t;
  STEP(cudaEventElapsedTime(&t, e, e2));
  STEP(cudaGetLastError());
  STEP(cudaEventQuery(e));
  STEP(cudaEventRecord(e, s));
  STEP(cudaEventSynchronize(e));
  STEP(cudaStreamSynchronize(s));
  STEP(cudaStreamQuery(s));
  STEP(cudaStreamDestroy((cudaStream_t)0));
  STEP(cudaEventDestroy(0));
  STEP(cudaGetLastError());
  k<<<1, 1>>>(d);
  STEP(cudaGetLastError());
  k<<<0, 1>>>(d);
  STEP(cudaGetLastError());
  k<<<1, 2048>>>(d);
  STEP(cudaGetLastError());
  k<<<1, 1, 1<<20>>>(d);
  STEP(cudaGetLastError());
  k<<<1, 1, 99>>>(d);
  STEP(cudaGetLastError());
  STEP(cudaLaunchKernel((void*)0, dim3(1), dim3(1), 0, 0, 0));
  STEP(cudaLaunchKernel((void*)&st, dim3(1), dim3(1), 0, 0, 0));
  STEP(cudaGetLastError());
  STEP(cudaMemcpy(d, &st, 4, cudaMemcpyDeviceToHost));
  STEP(cudaMemcpy(&st, d, 4, cudaMemcpyHostToDevice));
  STEP(cudaMemcpy(d, d+1, 4, cudaMemcpyHostToHost));
  STEP(cudaMemcpy(&st, d, 4, cudaMemcpyDefault));
  STEP(cudaMemcpy(0, d, 4, cudaMemcpyDefault));
  STEP(cudaMemcpy(0, 0, 0, (cudaMemcpyKind)9));
  STEP(cudaMemcpy(d, d, 0, (cudaMemcpyKind)9));
  STEP(cudaMemcpy(d, d, 4, (cudaMemcpyKind)9));
  STEP(cudaGetLastError());
  STEP(cudaMemset(d, 1, 4096));
  STEP(cudaMemset(d, 1, 1<<30));
  STEP(cudaMemset(0, 1, 0));
  STEP(cudaMemset(&st, 1, 4));
  STEP(cudaGetLastError());
  STEP(cudaMallocPitch(&q, &pitch, 100, 10));
  printf("pitch %zu\n", pitch);
  STEP(cudaMemcpy2D(q, pitch, hp, 100, 100, 10, cudaMemcpyHostToDevice));
  STEP(cudaMemcpy2D(q, 50, hp, 100, 100, 10, cudaMemcpyHostToDevice));
  STEP(cudaMemcpy2D(q, pitch, hp, 100, 0, 10, cudaMemcpyHostToDevice));
  cudaMemcpy3DParms solid = {}, none = {};
  solid.srcPtr = make_cudaPitchedPtr(q, pitch, 100, 2), solid.dstPtr = make_cudaPitchedPtr(hp, 128, 100, 2);
  solid.extent = make_cudaExtent(600, 2, 2), solid.kind = cudaMemcpyDeviceToHost;
  STEP(cudaMemcpy3D(&solid));
  solid.extent.width = 0;
  STEP(cudaMemcpy3D(&solid));
  STEP(cudaMemcpy3D(&none));
  STEP(cudaMemset2D(q, pitch, 1, 100, 10));
  STEP(cudaMemset2D(q, 50, 1, 100, 10));
  STEP(cudaMallocPitch(&q, &pitch, 0, 10));
  STEP(cudaGetLastError());
  int x[8];
  STEP(cudaMemcpyToSymbol(c, x, 16));
  STEP(cudaMemcpyToSymbol(c, x, 17));
  STEP(cudaMemcpyToSymbol(c, x, 4, 14));
  STEP(cudaMemcpyToSymbol(c, x, 16, 0, cudaMemcpyDeviceToHost));
  STEP(cudaMemcpyToSymbol(st, x, 4));
  STEP(cudaMemcpyFromSymbol(x, c, 16));
  STEP(cudaMemcpyFromSymbol(x, c, 16, 0, cudaMemcpyHostToDevice));
  size_t sz;
  STEP(cudaGetSymbolSize(&sz, c));
  printf("%zu\n", sz);
  STEP(cudaGetSymbolAddress(&q, st));
  STEP(cudaGetLastError());
  int v;
  STEP(cudaDeviceGetAttribute(&v, (cudaDeviceAttr)9999, 0));
  STEP(cudaDeviceGetAttribute(&v, cudaDevAttrWarpSize, 7));
  STEP(cudaDeviceGetAttribute(0, cudaDevAttrWarpSize, 0));
  cudaDeviceProp p;
  STEP(cudaGetDeviceProperties(&p, 5));
  STEP(cudaGetDeviceProperties(0, 0));
  STEP(cudaSetDevice(-1));
  STEP(cudaSetDevice(64));
  STEP(cudaGetDevice(0));
  STEP(cudaGetDeviceCount(0));
  STEP(cudaSetDevice(0));
  STEP(cudaGetLastError());
  unsigned f;
  STEP(cudaGetDeviceFlags(&f));
  printf("flags %u\n", f);
  STEP(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
  STEP(cudaGetDeviceFlags(&f));
  printf("flags %u\n", f);
  STEP(cudaSetDeviceFlags(0x1000));
  size_t lim;
  STEP(cudaDeviceGetLimit(&lim, cudaLimitStackSize));
  printf("stack %zu\n", lim);
  STEP(cudaDeviceGetLimit(&lim, (cudaLimit)77));
  STEP(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  STEP(cudaDeviceGetLimit(&lim, cudaLimitStackSize));
  printf("stack %zu\n", lim);
  STEP(cudaGetLastError());
  int b;
  STEP(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, k, 128, 0));
  STEP(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, k, 0, 0));
  STEP(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, k, 4096, 0));
  STEP(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, (void(*)(int*))&st, 128, 0));
  STEP(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  STEP(cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 1<<28));
  STEP(cudaFuncSetAttribute(k, (cudaFuncAttribute)77, 1));
  STEP(cudaFuncSetCacheConfig(k, cudaFuncCachePreferL1));
  STEP(cudaGetLastError());
  unsigned hf;
  STEP(cudaHostGetFlags(&hf, h));
  printf("hf %u\n", hf);
  STEP(cudaHostGetFlags(&hf, &st));
  STEP(cudaFreeHost(h));
  STEP(cudaFreeHost(h));
  STEP(cudaFree(d));
  STEP(cudaFree(d));
  STEP(cudaFreeHost(0));
  STEP(cudaFree(m));
  STEP(cudaGetLastError());
  int rv;
  STEP(cudaDriverGetVersion(0));
  STEP(cudaRuntimeGetVersion(&rv));
  printf("%d\n", rv);
  STEP(cudaProfilerStart());
  STEP(cudaProfilerStop());
  int lo, hi;
  STEP(cudaDeviceGetStreamPriorityRange(&lo, &hi));
  printf("%d %d\n", lo, hi);
  STEP(cudaStreamCreateWithPriority(&s, 1, -100));
  STEP(cudaStreamGetPriority(s, &v));
  printf("%d\n", v);
  STEP(cudaStreamCreateWithPriority(&s, 0, 100));
  STEP(cudaStreamGetPriority(s, &v));
  printf("%d\n", v);
  STEP(cudaStreamCreateWithFlags(&s, 77));
  STEP(cudaEventCreateWithFlags(&e, 0x1000));
  STEP(cudaDeviceCanAccessPeer(&v, 0, 0));
  STEP(cudaDeviceEnablePeerAccess(0, 0));
  STEP(cudaDeviceCanAccessPeer(&v, 0, 9));
  STEP(cudaGetLastError());
  STEP(cudaDeviceReset());
  STEP(cudaMalloc(&d, 16));
  STEP(cudaMemcpyToSymbol(c, x, 16));
  k<<<1, 1>>>(d);
  STEP(cudaDeviceSynchronize());
  STEP(cudaGetLastError());
  k<<<1, 1>>>((int*)0x10);
  STEP(cudaGetLastError());
  STEP(cudaDeviceSynchronize());
  STEP(cudaGetLastError());
  STEP(cudaGetLastError());
  STEP(cudaMalloc(&d, 16));
  STEP(cudaGetDeviceCount(&v));
  STEP(cudaEventCreate(&e));
  STEP(cudaFree(0));
  STEP(cudaDeviceReset());
  STEP(cudaMalloc(&d, 16));
  return 0;
}
