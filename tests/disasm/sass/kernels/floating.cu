extern "C" __global__ void f32(float* o, const float* a, const float* b, int n, float k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = a[i], y = b[i];
#define S(j, e) o[j * n + i] = (e);
  S(0, x + y)
  S(1, x - y * k) S(2, x * y) S(3, x / y) S(4, sqrtf(x)) S(5, __fdividef(x, y)) S(6, rsqrtf(x))
      S(7, sinf(x)) S(8, cosf(y)) S(9, expf(x)) S(10, logf(y)) S(11, powf(x, y)) S(12, tanhf(x))
          S(13, fminf(x, y)) S(14, fmaxf(x, k)) S(15, fabsf(x)) S(16, floorf(x)) S(17, ceilf(y)) S(
              18, truncf(x)) S(19, rintf(y)) S(20, roundf(x)) S(21, fmodf(x, y)) S(22, __sinf(x))
              S(23, __expf(x)) S(24, __log2f(x)) S(25, __frcp_rn(x)) S(26, __fadd_rz(x, y))
                  S(27, __fmul_ru(x, y)) S(28, __fmaf_rd(x, y, k)) S(29, __saturatef(x)) S(
                      30, copysignf(x, y)) S(31, x > y ? x : k) S(32, (x < y && y >= k) ? 1.f : 2.f)
                      S(33, isnan(x) ? 0 : 1) S(34, isinf(y) ? 0 : 1) S(35, x == y) S(36, x != y) S(
                          37, !(x < y))
                          S(38, erff(x)) S(39, atan2f(x, y)) S(40, cbrtf(x)) S(41, ldexpf(x, 3)) S(
                              42, frexpf(x, (int*)o + i))
                              S(43, lgammaf(x)) S(44, hypotf(x, y)) S(45, exp2f(x)) S(
                                  46, fdimf(x, y)) S(47, nextafterf(x, y)) S(48, remainderf(x, y))
                                  S(49, sinpif(x)) S(50, j0f(x)) S(51, __fdiv_ru(x, y))
                                      S(52, __fsqrt_rd(x)) S(53, __tanf(x)) S(54, x * 2.f - 1.5f) S(
                                          55, fmaxf(fmaxf(x, y), k)) S(56, fminf(fminf(x, 3.f), k))
                                          S(57, __int_as_float(__float_as_int(x) ^ 0x80000000))
}
extern "C" __global__ void f64(double* o, const double* a, const double* b, int n, double k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double x = a[i], y = b[i];
  S(0, x + y)
  S(1, x - y * k) S(2, x * y) S(3, x / y) S(4, sqrt(x)) S(6, rsqrt(x)) S(7, sin(x)) S(9, exp(x))
      S(10, log(y)) S(11, pow(x, y)) S(12, tanh(x)) S(13, fmin(x, y)) S(14, fmax(x, k))
          S(15, fabs(x)) S(16, floor(x)) S(17, ceil(y)) S(18, trunc(x)) S(19, rint(y))
              S(20, round(x)) S(21, fmod(x, y)) S(26, __dadd_rz(x, y)) S(27, __dmul_ru(x, y))
                  S(28, __fma_rd(x, y, k)) S(30, copysign(x, y)) S(31, x > y ? x : k)
                      S(32, (x < y && y >= k) ? 1. : 2.) S(33, isnan(x) ? 0 : 1) S(35, x == y)
                          S(36, x != y) S(37, !(x < y)) S(38, erf(x)) S(40, cbrt(x))
                              S(41, x * 3.5 + 2.25) S(42, -x) S(43, x + 1.0) S(44, tgamma(x))
}
extern "C" __global__ void cvt(double* d, float* f, int* i, unsigned* u, long long* l,
                               unsigned long long* q, short* s, unsigned char* c, int n) {
  int t = threadIdx.x;
  i[t] = (int)f[t];
  u[t] = (unsigned)f[t + 1];
  l[t] = (long long)f[t + 2];
  q[t] = (unsigned long long)f[t + 3];
  s[t] = (short)f[t + 4];
  c[t] = (unsigned char)f[t + 5];
  i[t + n] = (int)d[t];
  u[t + n] = (unsigned)d[t + 1];
  l[t + n] = (long long)d[t + 2];
  q[t + n] = (unsigned long long)d[t + 3];
  s[t + n] = (short)d[t + 4];
  c[t + n] = (unsigned char)d[t + 5];
  f[t + n] = i[t + 3];
  f[t + 2 * n] = u[t + 4];
  f[t + 3 * n] = l[t + 3];
  f[t + 4 * n] = q[t + 4];
  f[t + 5 * n] = s[t + 3];
  f[t + 6 * n] = c[t + 4];
  f[t + 7 * n] = (float)d[t + 9];
  d[t + n] = i[t + 3];
  d[t + 2 * n] = u[t + 4];
  d[t + 3 * n] = l[t + 3];
  d[t + 4 * n] = q[t + 4];
  d[t + 5 * n] = s[t + 3];
  d[t + 6 * n] = c[t + 4];
  d[t + 7 * n] = f[t + 9];
  i[t + 2 * n] = __float2int_rn(f[t + 7]);
  i[t + 3 * n] = __float2int_ru(f[t + 7]);
  i[t + 4 * n] = __float2int_rd(f[t + 8]);
  i[t + 5 * n] = __double2int_rn(d[t + 7]);
  l[t + 6 * n] = __double2ll_rd(d[t + 3]);
  f[t + 8 * n] = __int2float_rz(i[t + 9]);
  f[t + 9 * n] = __double2float_ru(d[t + 5]);
  d[t + 8 * n] = __ll2double_rd(l[t + 9]);
  f[t + 10 * n] = __uint2float_ru(u[t + 7]);
  f[t + 11 * n] = __ll2float_rd(l[t + 7]);
  f[t + 12 * n] = __ull2float_rz(q[t + 7]);
  i[t + 7 * n] = __double2hiint(d[t + 6]);
  d[t + 9 * n] = __hiloint2double(i[t + 5], i[t + 6]);
  i[t + 8 * n] = lrintf(f[t + 3]);
  l[t + 9 * n] = llrint(d[t + 3]);
  l[t + 10 * n] = llroundf(f[t + 6]);
  ((signed char*)c)[t + n] = f[t + 22];
  ((unsigned short*)s)[t + n] = f[t + 23];
  ((signed char*)c)[t + 3 * n] = d[t + 22];
}
extern "C" __global__ void fptx(float* o, const float* a, const float* b, const float* c, int n) {
  int i = threadIdx.x;
  float x = a[i], y = b[i], z = c[i], r;
  int q;
#define A3(j, op)                                                      \
  asm volatile(op " %0,%1,%2,%3;" : "=f"(r) : "f"(x), "f"(y), "f"(z)); \
  o[j * n + i] = r;
#define A2(j, op)                                           \
  asm volatile(op " %0,%1,%2;" : "=f"(r) : "f"(x), "f"(y)); \
  o[j * n + i] = r;
#define A1(j, op)                                \
  asm volatile(op " %0,%1;" : "=f"(r) : "f"(x)); \
  o[j * n + i] = r;
  A3(0, "fma.rn.f32")
  A3(1, "fma.rn.ftz.f32") A3(2, "fma.rz.sat.f32") A3(3, "fma.rm.ftz.sat.f32") A3(4, "fma.rp.f32")
      A2(5, "add.rn.f32") A2(6, "add.rm.ftz.f32") A2(7, "add.rp.sat.f32") A2(8, "mul.rn.f32") A2(
          9, "mul.rz.ftz.sat.f32") A2(10, "min.f32") A2(11, "max.ftz.f32") A1(13, "ex2.approx.f32")
          A1(14, "lg2.approx.f32") A1(15, "sin.approx.f32") A1(16, "cos.approx.ftz.f32") A1(
              17, "rcp.approx.f32") A1(18, "rsqrt.approx.ftz.f32") A1(19, "sqrt.approx.f32")
              A1(20, "rcp.rn.f32") A1(21, "sqrt.rz.f32") A2(22, "div.full.f32") A2(
                  23, "div.approx.ftz.f32") A2(24, "div.rm.f32") A1(25, "abs.ftz.f32")
                  A1(26, "neg.ftz.f32") A1(27, "cvt.rni.f32.f32") A1(28, "cvt.rzi.ftz.f32.f32") A1(
                      29, "cvt.rpi.f32.f32") A1(30, "cvt.rmi.sat.f32.f32") A1(31, "cvt.sat.f32.f32")
#if __CUDA_ARCH__ >= 800
                      A2(12, "min.NaN.f32") A2(33, "max.NaN.ftz.f32") A1(35, "tanh.approx.f32")
#endif
#if __CUDA_ARCH__ >= 860
                          A2(34, "max.xorsign.abs.f32") A2(36, "min.NaN.xorsign.abs.f32")
#endif
                              asm volatile(
                                  "{.reg .pred p0; testp.subnormal.f32 p0,%1; selp.s32 "
                                  "%0,1,0,p0;}" : "=r"(q) : "f"(x));
  o[40 * n + i] = q;
  asm volatile("{.reg .pred p0,p1; setp.lt.and.f32 p0|p1,%1,%2,1; selp.s32 %0,1,0,p1;}"
               : "=r"(q)
               : "f"(x), "f"(y));
  o[41 * n + i] = q;
  asm volatile("set.gtu.u32.f32 %0,%1,%2;" : "=r"(q) : "f"(x), "f"(y));
  o[42 * n + i] = q;
  asm volatile("set.eq.f32.f32 %0,%1,%2;" : "=f"(r) : "f"(x), "f"(y));
  o[43 * n + i] = r;
  asm volatile("slct.f32.f32 %0,%1,%2,%3;" : "=f"(r) : "f"(x), "f"(y), "f"(z));
  o[44 * n + i] = r;
}
