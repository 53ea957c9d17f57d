#include <stdint.h>
__constant__ int ct[64];
__constant__ double cd[8];
__device__ int gv;
__device__ float ga[32] = {1, 2, 3};
__device__ unsigned long long gq;
extern "C" __global__ void ld(char* o, const char* a, int n) {
  int i = threadIdx.x;
  ((int4*)o)[i] = ((int4*)a)[i];
  ((int2*)o)[i + n] = ((int2*)a)[i + n];
  ((char*)o)[i + 2 * n] = ((const signed char*)a)[i * 3 + 1] * 2;
  ((short*)o)[i + 3 * n] = ((short*)a)[i + 9] * 3;
  ((double*)o)[i] = __ldg((const double*)a + i);
  ((int4*)o)[i + 5 * n] = __ldcg((int4*)a + i);
  ((int*)o)[i + 6 * n] = __ldcs((int*)a + i + 1);
  ((int*)o)[i + 7 * n] = __ldlu((int*)a + i + 3);
  ((int*)o)[i + 8 * n] = __ldcv((int*)a + i + 2);
  __stcs((int*)o + n * 9 + i, 5);
  __stcg((int2*)o + n * 9 + i, make_int2(1, 2));
  __stwt((float*)o + n * 10 + i, 1.f);
  *(volatile int*)(o + n) = *(volatile int*)(a + n);
  ((int*)o)[n * 11 + i] = ct[i] + ct[3] + gv;
  ((double*)o)[n * 12 + i] = cd[i & 7] * cd[2] + ga[i & 31];
  gv = i;
  ((unsigned char*)o)[n * 13 + i] = ((const unsigned char*)a)[i * 5 + 1] / 3;
  ((int*)o)[n * 14 + i] = __ldca((int*)a + i + 13);
}
extern "C" __global__ void sh(float* o, const float* a, int n) {
  __shared__ float s[256];
  __shared__ double d[64];
  __shared__ int4 q[16];
  extern __shared__ int dyn[];
  int i = threadIdx.x;
  s[i] = a[i];
  ((char*)dyn)[i] = i;
  ((short*)dyn)[i + 99] = i * 3;
  __syncthreads();
  o[i] = s[255 - i] + s[(i * 7) & 255];
  if (i < 64) d[i] = a[i] * 2.0;
  __syncthreads();
  o[i + n] = d[i & 63];
  q[i & 15] = make_int4(i, 1, 2, n);
  __syncwarp();
  o[i + 2 * n] = q[(i + 1) & 15].z;
  int4 z = q[i & 7];
  o[i + 3 * n] = z.x * z.y + z.z - z.w;
  o[i + 4 * n] = ((char*)dyn)[i + 5] + ((unsigned char*)dyn)[i + 6] + ((short*)dyn)[i + 7] +
                 ((unsigned short*)dyn)[i + 9];
  volatile int* v = dyn;
  v[i] = v[i + 1];
  o[i + 5 * n] = dyn[n];
  __syncthreads_count(i > n) > 3 ? o[i + 6 * n] = 1 : 0;
  if (__syncthreads_or(i == n)) o[i + 7 * n] = 2;
  if (__syncthreads_and(i < n)) o[i + 8 * n] = 2;
  ((int2*)dyn)[i + n] = make_int2(i, n);
  o[i + 9 * n] = ((int2*)dyn)[n - i].y;
}
extern "C" __global__ void loc(int* o, const int* a, int n) {
  int b[64];
  for (int j = 0; j < 64; j++) b[j] = a[j * n];
  long long c[8];
  for (int j = 0; j < 8; j++) c[j] = a[j + n];
  for (int j = 0; j < n; j++) {
    b[(j * 7 + n) & 63] += b[j & 63];
    c[j & 7] ^= c[(j + n) & 7] + j;
  }
  char d[16];
  for (int j = 0; j < 16; j++) d[j] = a[j + 2 * n];
  d[n & 15]++;
  int4 e[4];
  for (int j = 0; j < 4; j++) e[j] = ((int4*)a)[j];
  e[n & 3].x++;
  o[0] = b[n & 63] + c[n & 7] + d[(n + 1) & 15] + e[(n + 1) & 3].y + e[n & 3].w;
  short f[9];
  for (int j = 0; j < 9; j++) f[j] = a[j + 5 * n];
  f[n % 9]--;
  o[1] = f[(n + 3) % 9];
}
extern "C" __global__ void gen(int* p, int n, int* q) {
  __shared__ int s[32];
  int l[4];
  int* r = n & 1 ? s + threadIdx.x : n & 2 ? p : l;
  l[n & 3] = n;
  s[threadIdx.x] = 3;
  *r = *r + 5;
  p[9] = l[1] + s[3];
  p[1] = __isShared(r);
  p[2] = __isGlobal(r);
  p[3] = __isLocal(r);
  p[4] = __isConstant(r);
  p[5] = (int)__cvta_generic_to_shared(r);
  atomicAdd(r, 3);
  ((double*)r)[1] = 2;
  ((char*)r)[3] = ((char*)r)[5];
  q[0] = atomicExch(r + 1, 5);
  *(int4*)q = *(int4*)r;
  asm volatile("prefetch.global.L2 [%0];" ::"l"(p));
  asm volatile("prefetch.global.L1 [%0];" ::"l"(p + 4));
  asm volatile("prefetchu.L1 [%0];" ::"l"(p + 4));
#if __CUDA_ARCH__ >= 800
  asm volatile("discard.global.L2 [%0],128;" ::"l"(q));
  asm volatile("applypriority.global.L2::evict_normal [%0],128;" ::"l"(q));
#endif
}
extern "C" __global__ void cpa(float* o, const float* a, int n) {
  __shared__ __align__(16) float s[512];
  int i = threadIdx.x;
#if __CUDA_ARCH__ >= 800
  unsigned d = (unsigned)__cvta_generic_to_shared(s + i * 4);
  asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(d), "l"(a + i));
  asm volatile("cp.async.ca.shared.global [%0],[%1],8;" ::"r"(d + 8), "l"(a + i * 2));
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"(d + 1024), "l"(a + i * 4));
  asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" ::"r"(d + 1024), "l"(a + i * 4 + 4),
               "r"(n));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0],[%1],16;" ::"r"(d + 1040), "l"(a + i * 4));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 1;");
  asm volatile("cp.async.ca.shared.global [%0],[%1],4;" ::"r"(d + 16), "l"(a + i));
  asm volatile("cp.async.wait_all;");
  unsigned long long pol;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0,0.5;" : "=l"(pol));
  asm volatile("ld.global.L2::cache_hint.f32 %0,[%1],%2;" : "=f"(o[7]) : "l"(a + 77), "l"(pol));
  asm volatile("ld.global.L1::no_allocate.f32 %0,[%1];" : "=f"(o[8]) : "l"(a + 78));
  asm volatile("ld.global.L1::evict_last.L2::128B.f32 %0,[%1];" : "=f"(o[9]) : "l"(a + 79));
  asm volatile("ld.global.nc.L1::evict_first.L2::256B.v4.f32 {%0,%1,%2,%3},[%4];"
               : "=f"(o[10]), "=f"(o[11]), "=f"(o[12]), "=f"(o[13])
               : "l"(a + 80));
#endif
  __syncthreads();
  o[i] = s[511 - i];
}
extern "C" __global__ void scopes(int* p, int n) {
  int r;
#define L(m)                                                           \
  asm volatile("ld." m ".s32 %0,[%1];" : "=r"(r) : "l"(p) : "memory"); \
  p[1 + n] = r;
#define T(m) asm volatile("st." m ".s32 [%0],%1;" ::"l"(p), "r"(n) : "memory");
  L("relaxed.cta.global")
  L("relaxed.gpu.global") L("relaxed.sys.global") L("acquire.cta.global") L("acquire.gpu.global")
      L("acquire.sys.global") L("volatile.global") L("relaxed.gpu") L("weak.global")
          L("mmio.relaxed.sys.global") T("relaxed.cta.global") T("relaxed.gpu.global")
              T("relaxed.sys.global") T("release.cta.global") T("release.gpu.global")
                  T("release.sys.global") T("volatile.global") T("relaxed.sys")
                      T("mmio.relaxed.sys.global") asm volatile("fence.sc.cta;");
  asm volatile("fence.sc.gpu;");
  asm volatile("fence.sc.sys;");
  asm volatile("fence.acq_rel.cta;");
  asm volatile("fence.acq_rel.gpu;");
  asm volatile("fence.acq_rel.sys;");
  asm volatile("membar.cta;");
  __threadfence();
  __threadfence_system();
  __threadfence_block();
#if __CUDA_ARCH__ >= 900
  L("relaxed.cluster.global") T("release.cluster.global") asm volatile("fence.acq_rel.cluster;");
  asm volatile("fence.proxy.async;");
  asm volatile("fence.proxy.alias;");
#endif
}
