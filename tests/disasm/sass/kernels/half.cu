#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define S(j, e) o[j * n + i] = (e);
extern "C" __global__ void h2(__half2* o, const __half2* a, const __half2* b, const __half2* c,
                              int n, __half2 k) {
  int i = threadIdx.x;
  __half2 x = a[i], y = b[i], z = c[i];
  S(0, __hadd2(x, y))
  S(1, __hmul2(x, y)) S(2, __hfma2(x, y, z)) S(3, __hsub2(x, k)) S(4, __hadd2_sat(x, y)) S(
      5, __hfma2_sat(x, y, k)) S(6, __hneg2(x)) S(7, __habs2(x)) S(8, __heq2(x, y))
      S(9, __hlt2(x, y)) S(10, __hgtu2(x, k)) S(11, __h2div(x, y)) S(12, h2sqrt(x)) S(13, h2exp(x))
          S(14, h2log(y)) S(15, h2sin(x)) S(16, h2rcp(x)) S(17, __hmul2(x, __float2half2_rn(0.5f)))
              S(18, __hfma2(x, x, __float2half2_rn(1.5f))) S(19, h2floor(x)) S(20, h2rint(x))
                  S(21, __lowhigh2highlow(x)) S(22, __low2half2(x))
                      S(23, __halves2half2(__low2half(x), __high2half(y)))
#if __CUDA_ARCH__ >= 800
                          S(24, __hmin2(x, y)) S(25, __hmax2_nan(x, y)) S(26, __hfma2_relu(x, y, z))
                              S(27, h2tanh(x))
#endif
                                  if (__hbeq2(x, y)) S(28, x) if (__hbltu2(x, y))
                                      S(29, y) if (__hgt(__low2half(x), __high2half(y))) S(30, z)
                                          S(31, __hmul2_sat(x, y)) S(32, __hne2(x, y))
                                              S(33, __hgeu2(x, y)) unsigned m = __hle2_mask(x, y);
  ((unsigned*)o)[34 * n + i] = m;
}
extern "C" __global__ void h1(__half* o, const __half* a, const __half* b, int n, float* f,
                              short* s) {
  int i = threadIdx.x;
  __half x = a[i], y = b[i];
  S(0, x + y)
  S(1, x * y) S(2, __hfma(x, y, x)) S(3, x / y) S(4, hsqrt(x)) S(5, __float2half(f[i])) f[i + n] =
      __half2float(x) + __half2float(y);
  S(6, __short2half_rn(s[i])) s[i + n] = __half2short_rn(x);
  S(7, __double2half(f[i + 3]))
  S(8, x > y ? x : y) S(9, hexp(x)) S(10, hcos(y)) S(11, -x) S(12, __float2half_rz(f[i + 5]))
      S(13, __int2half_rn(s[i + 9])) s[i + 2 * n] = __half2int_rz(x);
  s[i + 3 * n] = __half2uint_rn(y);
  ((long long*)s)[i + n] = __half2ll_rd(y);
  S(14, __ull2half_rn(n * 77ull + i))
  S(15, hfloor(x)) S(16, htrunc(x)) S(17, __habs(x)) S(18, __hmax(x, y))
}
#if __CUDA_ARCH__ >= 800
extern "C" __global__ void b2(__nv_bfloat162* o, const __nv_bfloat162* a, const __nv_bfloat162* b,
                              const __nv_bfloat162* c, int n, float* f) {
  int i = threadIdx.x;
  __nv_bfloat162 x = a[i], y = b[i], z = c[i];
  S(0, __hadd2(x, y))
  S(1, __hmul2(x, y)) S(2, __hfma2(x, y, z)) S(3, __hmin2(x, y)) S(4, __hmax2_nan(x, y))
      S(5, __float22bfloat162_rn(make_float2(f[i], f[i + 1]))) float2 q = __bfloat1622float2(x);
  f[i + n] = q.x * q.y;
  S(6, __heq2(x, y))
  S(7, __hltu2(x, z)) S(8, h2sqrt(x)) S(9, h2exp(y)) S(10, __hsub2(x, y))
      S(11, __hfma2_relu(x, y, z)) S(12, __hneg2(x))
          S(13, __habs2(y))((__nv_bfloat16*)o)[40 * n + i] = __float2bfloat16(f[i + 9]);
  ((__nv_bfloat16*)o)[41 * n + i] = __low2bfloat16(x) + __high2bfloat16(y);
  ((short*)o)[43 * n + i] = __bfloat162int_rz(__low2bfloat16(x));
  ((__nv_bfloat16*)o)[45 * n + i] = __int2bfloat16_rn(n + i);
  if (__hbgt2(x, y)) S(30, z)((__nv_bfloat16*)o)[47 * n + i] = __float2bfloat16_rz(f[i + 19]);
  ((__nv_bfloat16*)o)[49 * n + i] = __double2bfloat16(f[i + 19]);
  S(31, __hle2(x, y))
}
#endif
extern "C" __global__ void hptx(unsigned* o, const unsigned* a, const unsigned* b, const float* f,
                                int n) {
  int i = threadIdx.x;
  unsigned x = a[i], y = b[i], r;
  float u = f[i], v = f[i + 1];
  unsigned short h;
#if __CUDA_ARCH__ >= 800
  asm volatile("cvt.rn.f16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(u), "f"(v));
  S(0, r) asm volatile("cvt.rz.bf16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(u), "f"(v));
  S(1, r) asm volatile("cvt.rn.relu.f16x2.f32 %0,%1,%2;" : "=r"(r) : "f"(u), "f"(v));
  S(2, r) asm volatile("cvt.rna.tf32.f32 %0,%1;" : "=r"(r) : "f"(u));
  S(3, r) asm volatile("fma.rn.ftz.f16x2 %0,%1,%2,%1;" : "=r"(r) : "r"(x), "r"(y));
  S(4, r) asm volatile("ex2.approx.f16x2 %0,%1;" : "=r"(r) : "r"(x));
  S(5, r) asm volatile("tanh.approx.f16x2 %0,%1;" : "=r"(r) : "r"(x));
  S(6, r) asm volatile("min.ftz.NaN.f16x2 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(7, r) asm volatile("fma.rn.relu.bf16x2 %0,%1,%2,%1;" : "=r"(r) : "r"(x), "r"(y));
  S(8, r)
  asm volatile("cvt.rn.relu.bf16.f32 %0,%1;" : "=h"(h) : "f"(u));
  S(9, h)
  asm volatile("cvt.f32.bf16 %0,%1;" : "=f"(v) : "h"(h));
  S(10, v) asm volatile("abs.bf16x2 %0,%1;" : "=r"(r) : "r"(x));
  S(11, r) asm volatile("neg.bf16x2 %0,%1;" : "=r"(r) : "r"(x));
  S(12, r)
#endif
#if __CUDA_ARCH__ >= 890
  asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0,%1,%2;" : "=h"(h) : "f"(u), "f"(v));
  S(13, h) asm volatile("cvt.rn.satfinite.relu.e5m2x2.f32 %0,%1,%2;" : "=h"(h) : "f"(u), "f"(v));
  S(14, h) asm volatile("cvt.rn.f16x2.e4m3x2 %0,%1;" : "=r"(r) : "h"(h));
  S(15, r) asm volatile("cvt.rn.satfinite.e4m3x2.f16x2 %0,%1;" : "=h"(h) : "r"(x));
  S(16, h) asm volatile("cvt.rn.f16x2.e5m2x2 %0,%1;" : "=r"(r) : "h"(h));
  S(17, r)
#endif
}
