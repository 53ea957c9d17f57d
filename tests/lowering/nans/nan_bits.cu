// What bits of results that are no number become: each operation on all triples of special values,
// its bits read in each way that code reads them.  One line an operation and reader: a checksum.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define BFMA(a, b, c) __hadd2(__hmul2(a, b), c)
#else
#define BFMA(a, b, c) __hfma2(a, b, c)
#endif

__device__ const unsigned VALUES[] = {0x00000000u, 0x80000000u, 0x3f800000u, 0xbf800000u, 0x7f800000u, 0xff800000u,
                                      0x7fc00000u, 0xffc00001u, 0x7f812345u, 0xff855555u, 0x7f7fffffu, 0x00000001u,
                                      0x40490fdbu, 0x7fffffffu, 0xffffffffu, 0xc2f60000u};

template <int OP> __device__ float single(float a, float b, float c) {
  switch (OP) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return fmaf(a, b, c);
    case 4: return a / b;
    case 5: return sqrtf(a);
    case 6: return fminf(a, b);
    case 7: return fmaxf(a, b);
    case 8: return expf(a);
    case 9: return logf(a);
    case 10: return sinf(a);
    case 11: return powf(a, b);
    case 12: return __frcp_rn(a);
    case 13: return rsqrtf(a);
    case 14: return floorf(a - b);
    case 15: return (float)((double)a * (double)b);
    case 16: return fmodf(a, b);
    case 17: return atan2f(a, b);
    case 18: return a < b ? a + c : b * c;
    default: return a * b - c * a;
  }
}

template <int OP> __global__ void floats(const unsigned *, const unsigned *, unsigned *out, int) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  float a = __uint_as_float(VALUES[n & 15]), b = __uint_as_float(VALUES[n >> 4 & 15]),
        c = __uint_as_float(VALUES[n >> 8]);
  float r = single<OP>(a, b, c);
  unsigned *o = out + 8 * n;
  o[0] = __float_as_uint(r);
  o[1] = __float_as_uint(copysignf(1.f, r));
  o[2] = signbit(r) ? 3 : 5;
  unsigned long long d = __double_as_longlong((double)r);
  o[3] = (unsigned)d ^ (unsigned)(d >> 32) * 3;
  o[4] = __half_as_ushort(__float2half(r)) | __bfloat16_as_ushort(__float2bfloat16(r)) << 16;
  o[5] = (__float_as_uint(r) >> 3) * 5 + 1;
  o[6] = __shfl_xor_sync(~0u, __float_as_int(r), 1);
  o[7] = __float_as_uint(fabsf(r)) ^ __float_as_uint(-r) >> 1;
}

__device__ double wide(unsigned bits) {  // a double whose NaN has the float's sign and payload, and more
  unsigned long long low = (bits & 0x7fffff) && (bits >> 23 & 255) == 255 ? 0x123 : 0;
  return __longlong_as_double(__double_as_longlong((double)__uint_as_float(bits)) | low);
}

template <int OP> __global__ void doubles(const unsigned *, const unsigned *, unsigned *out, int) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  double a = wide(VALUES[n & 15]), b = wide(VALUES[n >> 4 & 15]), c = wide(VALUES[n >> 8]);
  double r;
  switch (OP) {
    case 0: r = a + b; break;
    case 1: r = a - b; break;
    case 2: r = a * b; break;
    case 3: r = fma(a, b, c); break;
    case 4: r = fma(-a, b, -c); break;
    case 5: r = a / b; break;
    case 6: r = sqrt(a); break;
    case 7: r = fmin(a, b); break;
    case 8: r = floor(a - b); break;
    case 9: r = exp(a); break;
    case 10: r = log(a); break;
    default: r = a * b - c * fabs(a); break;
  }
  unsigned long long d = __double_as_longlong(r);
  unsigned *o = out + 8 * n;
  o[0] = (unsigned)d;
  o[1] = (unsigned)(d >> 32);
  o[2] = signbit(r) ? 3 : 5;
  unsigned long long s = __double_as_longlong(copysign(1.0, r));
  o[3] = (unsigned)(s >> 32);
  o[4] = __float_as_uint((float)r);
  o[5] = (unsigned)(d >> 3) + 7;
  o[6] = (unsigned)(d >> 40);
  o[7] = (unsigned)(__double_as_longlong(-r) >> 32);
}

template <int OP> __global__ void halves(const unsigned *, const unsigned *, unsigned *out, int) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned short p = VALUES[n & 15] >> 16, q = VALUES[n >> 4 & 15] >> 16, s = VALUES[n >> 8] >> 16;
  if (OP < 8) {  // the same kinds of values as halves
    auto half = [](unsigned short x) -> __half {
      unsigned short e = (x >> 7 & 255) == 255 ? 0x7c00 | (x & 0x7f) << 3 : (x >> 7 & 255) ? 0x3c00 | (x & 0x7f) : 1;
      return __ushort_as_half((x & 0x8000) | e);
    };
    __half2 a = __halves2half2(half(p), half(q)), b = __halves2half2(half(q), half(s)), c = __halves2half2(half(s), half(p)), r;
    switch (OP) {
      case 0: r = __hadd2(a, b); break;
      case 1: r = __hmul2(a, b); break;
      case 2: r = __hfma2(a, b, c); break;
      case 3: r = __hmin2(a, b); break;
      case 4: r = __hsub2(a, b); break;
      case 5: r = h2rcp(a); break;
      case 6: r = h2exp(a); break;
      default: r = __hmax2_nan(a, b); break;
    }
    unsigned bits; memcpy(&bits, &r, 4);
    unsigned *o = out + 8 * n;
    o[0] = bits; o[1] = bits >> 15 & 1; o[2] = bits >> 31; o[3] = __float_as_uint(__low2float(r));
    o[4] = __float_as_uint(__high2float(r)); o[5] = bits * 3 + 1; o[6] = __shfl_xor_sync(~0u, bits, 1);
    o[7] = __half_as_ushort(__hneg(__low2half(r)));
  } else {
    __nv_bfloat162 a = __halves2bfloat162(__ushort_as_bfloat16(p), __ushort_as_bfloat16(q)),
                   b = __halves2bfloat162(__ushort_as_bfloat16(q), __ushort_as_bfloat16(s)),
                   c = __halves2bfloat162(__ushort_as_bfloat16(s), __ushort_as_bfloat16(p)), r;
    switch (OP) {
      case 8: r = __hadd2(a, b); break;
      case 9: r = __hmul2(a, b); break;
      case 10: r = BFMA(a, b, c); break;
      case 11: r = __hmin2(a, b); break;
      default: r = __hsub2(a, b); break;
    }
    unsigned bits; memcpy(&bits, &r, 4);
    unsigned *o = out + 8 * n;
    o[0] = bits; o[1] = bits >> 15 & 1; o[2] = bits >> 31; o[3] = __float_as_uint(__low2float(r));
    o[4] = __float_as_uint(__high2float(r)); o[5] = bits * 3 + 1; o[6] = __shfl_xor_sync(~0u, bits, 1); o[7] = bits ^ 0x8000;
  }
}

// A sum in a loop, whose result alone is read; a value that is loaded or computed; a stored result.
__global__ void loops(const unsigned *, const unsigned *, unsigned *out, int) {
  int n = blockIdx.x * blockDim.x + threadIdx.x;
  float a = __uint_as_float(VALUES[n & 15]), b = __uint_as_float(VALUES[n >> 4 & 15]), c = __uint_as_float(VALUES[n >> 8]);
  float sum = 0;
#pragma unroll 1
  for (int i = 0; i < (n & 7); i++) sum = fmaf(sum, a, b) - c;
  float mixed = a;
  if (n & 1) mixed = b * c;
  if (n & 2) mixed = __uint_as_float(__float_as_uint(mixed) + 1);
  unsigned *o = out + 8 * n;
  o[0] = __float_as_uint(sum);
  o[1] = __float_as_uint(mixed);
  o[2] = __float_as_uint(n & 4 ? a : sum);
  ((float *)o)[3] = sum * mixed;
  float4 *p = (float4 *)(o + 4);
  *p = make_float4(a + b, b - c, a, sum);
}

static unsigned *device, host[8 * 4096];
static FILE *raw;

static void show(const char *name, int op) {
  cudaError_t e = cudaDeviceSynchronize();
  if (e != cudaSuccess) { printf("%s %d: %s\n", name, op, cudaGetErrorString(e)); return; }
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  printf("%s %d:", name, op);
  for (int w = 0; w < 8; w++) {
    unsigned h = 2166136261u;
    for (int i = 0; i < 4096; i++) h = (h ^ host[8 * i + w]) * 16777619u;
    printf(" %08x", h);
  }
  printf("\n");
  if (raw) fwrite(host, 1, sizeof host, raw);
}

template <int OP> static void all() {
  if constexpr (OP < 20) { floats<OP><<<32, 128>>>(nullptr, nullptr, device, 0); show("float", OP); }
  if constexpr (OP < 12) { doubles<OP><<<32, 128>>>(nullptr, nullptr, device, 0); show("double", OP); }
  if constexpr (OP < 13) { halves<OP><<<32, 128>>>(nullptr, nullptr, device, 0); show("half", OP); }
  if constexpr (OP < 19) all<OP + 1>();
}

int main(int argc, char **argv) {
  if (argc > 1) raw = fopen(argv[1], "wb");
  cudaMalloc(&device, sizeof host);
  all<0>();
  loops<<<32, 128>>>(nullptr, nullptr, device, 0);
  show("loops", 0);
  if (raw) fclose(raw);
}
