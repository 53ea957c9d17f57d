// Arithmetic of every width: integers, floats, halves, packed halves, dot products.
#define KERNEL extern "C" __attribute__((global)) void
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;
typedef _Float16 f16;
typedef f16 f16x2 __attribute__((ext_vector_type(2)));
typedef short i16x2 __attribute__((ext_vector_type(2)));
typedef unsigned short u16x2 __attribute__((ext_vector_type(2)));
typedef __bf16 bf16x2 __attribute__((ext_vector_type(2)));

static __attribute__((device)) u32 lane() {
  return __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
}

KERNEL integer32(u32 *out, const u32 *a, const u32 *b) {
  u32 i = lane(), x = a[i], y = b[i];
  u32 r = x + y * 3 - (x & y) + (x | 0x12345678) + (x ^ ~y);
  r += (x << (y & 31)) + (x >> (y & 31)) + (u32)((int)x >> (y & 31));
  r += x / (y | 1) + x % (y | 3) + (u32)((int)x / ((int)y | 1)) + (u32)((int)x % ((int)y | 5));
  r += __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_ctz(y | 1) + __builtin_bitreverse32(x);
  r += (u32)(((u64)x * y) >> 32) + (u32)(((i64)(int)x * (int)y) >> 32) + __builtin_bswap32(y);
  r += (x > y ? x : y) + ((int)x < (int)y ? x : y) + __builtin_rotateleft32(x, 7);
  r += (x & 0xffff) * (y & 0xffff) + __builtin_amdgcn_ubfe(x, 3, 9) + __builtin_amdgcn_sbfe(y, 5, 7);
  r += __builtin_amdgcn_perm(x, y, 0x07060504) + __builtin_amdgcn_alignbit(x, y, 13);
  r += __builtin_amdgcn_sad_u8(x, y, r) + __builtin_amdgcn_lerp(x, y, r) + __builtin_amdgcn_msad_u8(x, y, r);
  r += __builtin_amdgcn_alignbyte(x, y, 3) + __builtin_amdgcn_sad_u16(x, y, r);
  out[i] = r;
}

KERNEL integer64(u64 *out, const u64 *a, const u64 *b) {
  u32 i = lane();
  u64 x = a[i], y = b[i], r = x * y + (x - y);
  r += (x << (y & 63)) ^ (x >> (y & 63)) ^ (u64)((i64)x >> (y & 63));
  r += x > y ? x : y;
  r += (i64)x < (i64)y ? 0xfedcba9876543210ull : 1ull;
  r += __builtin_popcountll(x) + __builtin_clzll(x | 1) + __builtin_ctzll(y | 1);
  r += x / (y | 1) + (u64)((i64)x % ((i64)y | 7));
  out[i] = r;
}

KERNEL integer16(unsigned short *out, const unsigned short *a, const short *b) {
  u32 i = lane();
  unsigned short x = a[i];
  short y = b[i];
  unsigned short r = x + y;
  r += x * y - (x >> 3) + (unsigned short)(y >> 2) + (unsigned short)(x << (y & 7));
  r += x > 77 ? x : 77;
  r += y < -3 ? y : -3;
  out[i] = r;
}

KERNEL packed16(i16x2 *out, const i16x2 *a, const u16x2 *b) {
  u32 i = lane();
  i16x2 x = a[i];
  u16x2 y = b[i];
  i16x2 r = x + 5 - x * x;
  r = __builtin_elementwise_max(r, x);
  r = __builtin_elementwise_min(r, (i16x2){100, -100});
  u16x2 s = __builtin_elementwise_max(y, (u16x2){3, 4}) + (y >> 3);
  s = __builtin_elementwise_add_sat(s, y);
  r = __builtin_elementwise_sub_sat(r, x) << 2;
  out[i] = r + (i16x2)(s >> (u16x2){1, 2}) + (r >> (i16x2){3, 5});
}

KERNEL float32(float *out, const float *a, const float *b) {
  u32 i = lane();
  float x = a[i], y = b[i];
  float r = x * y + 1.5f;
  r = __builtin_fmaf(r, x, -y) + __builtin_fabsf(x) * 0.15915494f;
  r += __builtin_fminf(x, y) + __builtin_fmaxf(r, 3.25f) + __builtin_floorf(x) + __builtin_ceilf(y);
  r += __builtin_truncf(x) + __builtin_rintf(y) + x / y + __builtin_sqrtf(x);
  r += __builtin_amdgcn_rcpf(x) + __builtin_amdgcn_rsqf(y) + __builtin_amdgcn_exp2f(x);
  r += __builtin_amdgcn_logf(y) + __builtin_amdgcn_sinf(x) + __builtin_amdgcn_cosf(y);
  r += __builtin_amdgcn_fractf(x) + __builtin_amdgcn_ldexpf(y, 5) + __builtin_amdgcn_fmed3f(x, y, r);
  r += __builtin_amdgcn_frexp_mantf(x) + (float)__builtin_amdgcn_frexp_expf(y);
  r += __builtin_amdgcn_cubeid(x, y, r) + __builtin_amdgcn_cubema(x, y, r);
  r += __builtin_amdgcn_cubesc(x, y, r) + __builtin_amdgcn_cubetc(x, y, r);
  r += __builtin_amdgcn_classf(x, 0x1f8) ? 2.0f : -4.0f;
  r += __builtin_amdgcn_sqrtf(__builtin_fabsf(r));
  r = __builtin_copysignf(r, x) + (x < y ? 1.0f : 0.0f) + (x >= r ? y : x) + (x != x ? 3.0f : y);
  r = __builtin_fminf(__builtin_fmaxf(r, 0.0f), 1.0f);
  out[i] = r * 2.0f;
}

KERNEL float64(double *out, const double *a, const double *b) {
  u32 i = lane();
  double x = a[i], y = b[i];
  double r = x * y + 1.5;
  r = __builtin_fma(r, x, -y) / (y + 3.14159265358979) + __builtin_sqrt(__builtin_fabs(x));
  r += __builtin_floor(x) + __builtin_ceil(y) + __builtin_trunc(x) + __builtin_rint(y);
  r += __builtin_fmin(x, y) + __builtin_fmax(x, 0.5) + (double)(int)x + (double)(u32)y + (double)(float)r;
  r += __builtin_amdgcn_rcp(x) + __builtin_amdgcn_rsq(y) + __builtin_amdgcn_ldexp(x, 3);
  r += (x < y) ? 1.0 : 4.0;
  out[i] = r;
}

KERNEL half(f16 *out, const f16 *a, const f16 *b) {
  u32 i = lane();
  f16 x = a[i], y = b[i];
  f16 r = x * y + (f16)1.5;
  r += __builtin_elementwise_max(x, y) - __builtin_elementwise_min(x, (f16)0.3);
  r += __builtin_elementwise_floor(x) + __builtin_elementwise_trunc(y) + __builtin_elementwise_abs(x);
  r += (f16)(float)x / (f16)(y + (f16)2.0) + __builtin_amdgcn_sqrth(x) + __builtin_amdgcn_rcph(y);
  r += (f16)(short)x + (f16)(unsigned short)(y * (f16)16.0) + __builtin_elementwise_fma(x, y, r);
  r += x < y ? (f16)3.0 : (f16)-4.0;
  out[i] = r;
}

KERNEL packed_half(f16x2 *out, const f16x2 *a, const f16x2 *b) {
  u32 i = lane();
  f16x2 x = a[i], y = b[i];
  f16x2 r = x * y + (f16x2){(f16)1.0, (f16)2.5};
  r = __builtin_elementwise_fma(r, x.yx, -y) + __builtin_elementwise_max(x, y);
  r = __builtin_elementwise_min(r, (f16x2){(f16)4.0, (f16)4.0}) * (f16)0.5;
  out[i] = r + __builtin_bit_cast(f16x2, __builtin_amdgcn_cvt_pkrtz((float)x.x, (float)y.y));
}

KERNEL mixed(float *out, f16 *h, const f16 *a, const float *b) {
  u32 i = lane();
  out[i] = __builtin_fmaf((float)a[i], b[i], (float)a[i + 1]) + __builtin_fmaf(b[i], 3.1415927f, (float)a[i + 2]);
  h[i] = (f16)__builtin_fmaf(b[i], (float)a[i], b[i + 1]);
}

KERNEL dots(float *out, int *iout, const f16x2 *h, const bf16x2 *g, const int *a) {
  u32 i = lane();
  float r = __builtin_amdgcn_fdot2(h[i], h[i + 1], 1.0f, false) + __builtin_amdgcn_fdot2(h[i], h[i + 2], out[i], true);
  out[i] = r;
  int s = __builtin_amdgcn_sudot4(true, a[i], false, a[i + 1], 7, false);
  s += __builtin_amdgcn_sudot8(true, a[i], true, a[i + 1], s, true) + (int)__builtin_amdgcn_udot4(a[i], a[i + 2], 3, true);
  iout[i] = s + (int)__builtin_amdgcn_udot8(a[i], a[i + 3], 9, false);
}

KERNEL converts(float *out, int *iout, const int *a, const float *b) {
  u32 i = lane();
  float r = (float)a[i] + (float)(u32)a[i + 1] + (float)(a[i + 2] & 255) + (float)(a[i + 3] >> 8 & 255);
  r += (float)(u32)(a[i + 4]) * __builtin_amdgcn_cvt_off_f32_i4(a[i]);
  out[i] = r;
  int s = (int)b[i] + (int)(u32)b[i + 1] + __builtin_amdgcn_cvt_pk_u8_f32(b[i], 2, (u32)a[i]);
  iout[i] = s + (int)(i64)b[i] + (int)(u64)b[i + 2];
}

KERNEL carries(u64 *out, const u64 *a, const u32 *b) {
  u32 i = lane();
  unsigned __int128 x = ((unsigned __int128)a[i] << 64) | a[i + 1];
  unsigned __int128 y = ((unsigned __int128)a[i + 2] << 64) | b[i];
  x = x + y - (y >> 3) * 5;
  out[i] = (u64)x ^ (u64)(x >> 64);
  u32 sum;
  out[i + 1] = __builtin_add_overflow(b[i], b[i + 1], &sum) + sum;
}
