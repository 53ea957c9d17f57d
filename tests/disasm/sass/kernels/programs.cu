#include <cuda_fp16.h>

#include <cstdint>
#if __CUDA_ARCH__ >= 1000 || !defined(__CUDA_ARCH__)
extern "C" __global__ void f2(float2* o, const float2* a, const float2* b) {
  int i = threadIdx.x;
  float2 x = a[i], y = b[i], z;
  asm volatile(
      "{.reg .b64 p,q,r;mov.b64 p,{%2,%3};mov.b64 q,{%4,%5};add.rn.f32x2 r,p,q;fma.rn.f32x2 "
      "r,r,p,q;mul.rn.f32x2 r,r,q;mov.b64 {%0,%1},r;}"
      : "=f"(z.x), "=f"(z.y)
      : "f"(x.x), "f"(x.y), "f"(y.x), "f"(y.y));
  o[i] = z;
}
#endif
extern "C" __global__ void bulk(int* o, const int* a, int n) {
  int i = threadIdx.x;
  int4 v = ((int4*)a)[i];
  int2 w = ((int2*)a)[i + 7];
  o[i] = v.x + v.y * w.x;
  ((int4*)o)[i + 9] = make_int4(v.w, w.y, v.z, v.x);
#pragma unroll 8
  for (int k = 0; k < n; k++) {
    o[i + k * n] = a[k + i] * k + (a[k] >> 3);
  }
}
extern "C" __global__ void cas(unsigned long long* q, unsigned short* h, int* o) {
  o[0] = atomicCAS(h + threadIdx.x, (unsigned short)3, (unsigned short)5);
  o[1] = atomicCAS(q, 1ull, 2ull);
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{.reg .b128 a,b,c;mov.b128 a,{%1,%2};mov.b128 b,{%2,%1};atom.global.cas.b128 "
      "c,[%0],a,b;mov.b128 {%1,%2},c;}" ::"l"(q),
      "l"(q[3]), "l"(q[4]));

#endif
}
extern "C" __global__ void mixed(float* f, __half* h, double* d, int n) {
  int i = threadIdx.x;
  __half x = h[i];
  f[i] = __half2float(x) * 2 + (float)d[i];
  h[i + n] = __float2half(f[i + 1]);
  d[i] = __half2float(h[i + 3]);
  for (int k = 0; k < n; k++) {
    f[k] = __fmaf_rn(f[k], __half2float(h[k]), (float)(d[k] * 0.1));
  }
  f[i] = normcdff(f[i + 9]) + erfcinvf(f[i + 2]) + sinhf(f[i + 3]) + asinf(f[i + 4]) +
         lgammaf(f[i + 5]);
  d[i + n] = sinh(d[i]) + acos(d[i + 1]) + log1p(d[i + 2]) + expm1(d[i + 3]) +
             hypot(d[i], d[i + 1]) + cospi(d[i + 4]);
}
template <class T>
__device__ void tr(T* o, const T* a, int n) {
  __shared__ T s[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) s[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
  __syncthreads();
  for (int j = 0; j < 32; j += 8) o[(y + j) * n + x] = s[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void tr1(float* o, const float* a, int n) {
  tr(o, a, n);
}
extern "C" __global__ void tr2(double* o, const double* a, int n) {
  tr(o, a, n);
}
extern "C" __global__ void tr3(uint8_t* o, const uint8_t* a, int n) {
  tr(o, a, n);
}
extern "C" __global__ void tr4(int4* o, const int4* a, int n) {
  __shared__ int4 s[64];
  s[threadIdx.x] = a[n];
  __syncthreads();
  o[n] = s[63 - threadIdx.x];
}
extern "C" __global__ void scan(int* o, const int* a, int n) {
  __shared__ int s[1024];
  int t = threadIdx.x;
  s[t] = a[blockIdx.x * 1024 + t];
  for (int d = 1; d < 1024; d *= 2) {
    __syncthreads();
    int v = t >= d ? s[t - d] : 0;
    __syncthreads();
    s[t] += v;
  }
  o[blockIdx.x * 1024 + t] = s[t];
}
extern "C" __global__ void sort(unsigned* k, int n) {
  __shared__ unsigned s[512];
  int t = threadIdx.x;
  s[t] = k[t];
  s[t + 256] = k[t + 256];
  for (int z = 2; z <= 512; z <<= 1)
    for (int j = z >> 1; j > 0; j >>= 1) {
      __syncthreads();
      int p = 2 * t - (t & (j - 1));
      bool up = (p & z) == 0;
      unsigned a = s[p], b = s[p + j];
      if ((a > b) == up) {
        s[p] = b;
        s[p + j] = a;
      }
    }
  __syncthreads();
  k[t] = s[t];
  k[t + 256] = s[t + 256];
}
extern "C" __global__ void hist(unsigned* h, const uint8_t* a, int n) {
  __shared__ unsigned s[256];
  s[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) atomicAdd(&s[a[i]], 1);
  __syncthreads();
  if (s[threadIdx.x]) atomicAdd(h + threadIdx.x, s[threadIdx.x]);
}
struct Q {
  float a;
  double b;
  short c;
  char d[5];
  long long e;
};
extern "C" __global__ void st(Q* o, const Q* a, Q p, int n) {
  int i = threadIdx.x;
  Q q = a[i];
  q.a += p.a;
  q.b *= p.b;
  q.c -= p.c;
  q.d[n % 5] ^= p.d[n % 3];
  q.e = q.e / p.e;
  o[i] = q;
  o[n] = p;
}
extern "C" __global__ void md5(unsigned* o, const unsigned* m) {
  unsigned a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
#pragma unroll
  for (int i = 0; i < 64; i++) {
    unsigned f, g;
    if (i < 16) {
      f = (b & c) | (~b & d);
      g = i;
    } else if (i < 32) {
      f = (d & b) | (~d & c);
      g = (5 * i + 1) & 15;
    } else if (i < 48) {
      f = b ^ c ^ d;
      g = (3 * i + 5) & 15;
    } else {
      f = c ^ (b | ~d);
      g = (7 * i) & 15;
    }
    f += a + m[g] + i * 0x9e3779b9;
    a = d;
    d = c;
    c = b;
    b += (f << (i % 25)) | (f >> (32 - i % 25));
  }
  o[0] = a;
  o[1] = b;
  o[2] = c;
  o[3] = d;
}
extern "C" __global__ void big(unsigned* r, const unsigned* a, const unsigned* b) {
  unsigned long long c = 0;
  for (int i = 0; i < 8; i++) {
    unsigned long long t = 0;
    for (int j = 0; j < 8; j++) {
      t += (unsigned long long)a[i] * b[j] + r[i + j];
      r[i + j] = (unsigned)t;
      t >>= 32;
    }
    r[i + 8] = (unsigned)t;
    c += t;
  }
  r[16] = c;
}
