#include <cuda_bf16.h>
#include <cuda_fp16.h>
extern "C" __global__ void at(int* p, unsigned* u, unsigned long long* q, long long* ll, float* f,
                              double* d, int n, int* o) {
  int i = threadIdx.x;
  int r = 0;
  unsigned long long s = 0;
  float x = 0;
  double y = 0;
  r += atomicAdd(p + i, n);
  r += atomicSub(p + i + 1, n);
  r += atomicExch(p + i + 2, n);
  r += atomicMin(p + i + 3, n);
  r += atomicMax(p + i, n);
  r += atomicAnd(p + i, n);
  r += atomicOr(p + i, n);
  r += atomicXor(p + i, n);
  r += atomicCAS(p + i, n, i);
  r += atomicInc(u + i, n);
  r += atomicDec(u + i, n);
  r += atomicMin(u + i, n);
  r += atomicMax(u + i, n);
  s += atomicAdd(q + i, n);
  s += atomicExch(q + i, n);
  s += atomicCAS(q + i, n, i);
  s += atomicMin(q + i, n);
  s += atomicMax(ll + i, (long long)n);
  s += atomicAnd(q + i, n);
  x += atomicAdd(f + i, x + 1);
  x += atomicExch(f + i, 2.f);
  y += atomicAdd(d + i, 2.0);
  r += atomicAdd_block(p + i, n);
  r += atomicAdd_system(p + i, n);
  r += atomicCAS_block(p + i, n, i);
  o[i] = r + s + x + y;
}
extern "C" __global__ void rd(int* p, unsigned* u, unsigned long long* q, long long* ll, float* f,
                              double* d, int n) {
  int i = threadIdx.x;
  atomicAdd(p + i, n);
  atomicMin(p + i + 3, n);
  atomicMax(p + i, n);
  atomicAnd(p + i, n);
  atomicOr(p + i, n);
  atomicXor(p + i, n);
  atomicInc(u + i, n);
  atomicDec(u + i, n);
  atomicMin(u + i, n);
  atomicMax(u + i, n);
  atomicAdd(q + i, n);
  atomicMin(q + i, n);
  atomicMax(ll + i, (long long)n);
  atomicAnd(q + i, n);
  atomicAdd(f + i, 1.5f);
  atomicAdd(d + i, 2.0);
  atomicAdd_block(p + i, n);
  atomicAdd_system(p + i, n);
  atomicAdd(p, 1);
  atomicAdd(p, n);
  atomicAdd(f, 2.f);
  atomicMax(p + 5, n);
  atomicOr(u, 7);
  atomicAdd((__half2*)f + i, __half2half2(1.5));
#if __CUDA_ARCH__ >= 900
  atomicAdd((__nv_bfloat162*)f + i, __nv_bfloat162(1.5, 2));
  atomicAdd((float2*)f + i, make_float2(1, 2));
  atomicAdd((float4*)f + i, make_float4(1, 2, 3, 4));
#endif
  atomicExch(p + 77, 5);
}
extern "C" __global__ void as(int* o, int n, double* dd) {
  __shared__ int p[256];
  __shared__ unsigned u[256];
  __shared__ unsigned long long q[64];
  __shared__ float f[64];
  __shared__ double d[64];
  __shared__ long long ll[64];
  int i = threadIdx.x;
  int r = 0;
  unsigned long long s = 0;
  p[i] = n;
  u[i] = i;
  q[i & 63] = i;
  f[i & 63] = i;
  d[i & 63] = 1;
  ll[i & 63] = 2;
  __syncthreads();
  r += atomicAdd(p + i, n);
  r += atomicSub(p + i + 1, n);
  r += atomicExch(p + i + 2, n);
  r += atomicMin(p + i + 3, n);
  r += atomicMax(p + i, n);
  r += atomicAnd(p + i, n);
  r += atomicOr(p + i, n);
  r += atomicXor(p + i, n);
  r += atomicCAS(p + i, n, i);
  r += atomicInc(u + i, n);
  r += atomicDec(u + i, n);
  r += atomicMin(u + i, n);
  r += atomicMax(u + i, n);
  s += atomicAdd(q + (i & 63), n);
  s += atomicExch(q + (i & 63), n);
  s += atomicCAS(q + (i & 63), n, i);
  s += atomicMin(q + (i & 63), n);
  s += atomicMax(ll + (i & 63), (long long)n);
  atomicAdd(f + (i & 63), 1.f);
  atomicAdd(d + (i & 63), 1.);
  atomicAdd(p + 3, 1);
  atomicAdd(u + i, 1u);
  atomicOr(u + i, 1u);
  __syncthreads();
  o[i] = r + s + p[i] + u[i] + f[i & 63] + ll[i & 63];
  dd[i] = d[i & 63] + q[i & 63];
}
