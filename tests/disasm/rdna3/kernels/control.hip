// Control flow, lanes and the wave: loops, calls, switches, DPP, permutes, messages, matrices.
#define KERNEL extern "C" __attribute__((global)) void
typedef unsigned u32;
typedef unsigned long long u64;
typedef _Float16 f16;
typedef f16 f16x16 __attribute__((ext_vector_type(16)));
typedef f16 f16x8 __attribute__((ext_vector_type(8)));
typedef short s16x16 __attribute__((ext_vector_type(16)));
typedef float f32x8 __attribute__((ext_vector_type(8)));
typedef int i32x8 __attribute__((ext_vector_type(8)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef int i32x2 __attribute__((ext_vector_type(2)));

static __attribute__((device)) u32 id() { return __builtin_amdgcn_workitem_id_x(); }

KERNEL loops(u32 *out, const u32 *in, u32 n) {
  u32 r = 0;
  for (u32 i = id(); i < n; i += 64) {
    if (in[i] == 7) continue;
    if (in[i] == 9) break;
    r += in[i] * i;
    while (r > 1000) r -= in[r & 15];
  }
  out[id()] = r;
}

KERNEL branches(u32 *out, u32 n) {
  u32 r = id();
  switch (n) {
    case 0: r *= 3; break;
    case 1: r = r << 5 | 1; break;
    case 2: r ^= 0xdeadbeef; break;
    case 9: r = ~r; break;
    case 100: r = __builtin_popcount(r); break;
    default: r /= n;
  }
  switch (r & 7) {
    case 0: r += 1; break;
    case 1: r *= r; break;
    case 5: r -= n; break;
  }
  out[id()] = r;
}

static __attribute__((device, noinline)) u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static __attribute__((device, noinline)) float scale(float x, u32 n) { return x * (float)n + 0.5f; }

KERNEL calls(u32 *out, float *f, u32 n) {
  out[id()] = fib(n);
  f[id()] = scale(f[id()], n) + scale(1.0f, 3);
}

KERNEL pointers(u32 *out, float *f, u32 n) {
  float (*table[2])(float, u32) = {scale, scale};
  f[id()] = table[n & 1](2.0f, n);
  out[0] = (u32)(u64)&fib;
}

KERNEL lanes(u32 *out, const u32 *in) {
  u32 i = id(), x = in[i];
  u32 r = __builtin_amdgcn_readfirstlane(x) + __builtin_amdgcn_readlane(x, 5);
  r += __builtin_amdgcn_ds_bpermute(i * 4, x) + __builtin_amdgcn_ds_permute(i * 4, x);
  r += __builtin_amdgcn_ds_swizzle(x, 0x8055) + __builtin_amdgcn_ds_swizzle(x, 0x041f);
  r += __builtin_amdgcn_update_dpp(r, x, 0x111, 0xf, 0xf, true);
  r += __builtin_amdgcn_update_dpp(0, x, 0x1b, 0xf, 0x5, false);
  r += __builtin_amdgcn_mov_dpp(x, 0x140, 0xf, 0xf, false) + __builtin_amdgcn_mov_dpp8(x, 0x123456);
  r += __builtin_amdgcn_update_dpp(r, x, 0x152, 0xa, 0xf, false) + __builtin_amdgcn_update_dpp(r, x, 0x163, 0xf, 0xf, true);
  r += __builtin_amdgcn_permlane16(r, x, 1, 2, false, true) + __builtin_amdgcn_permlanex16(r, x, 0x76543210, 0xfedcba98, true, false);
  r += __builtin_amdgcn_permlane64(x) + __builtin_amdgcn_mbcnt_lo(~0u, 0) + __builtin_amdgcn_mbcnt_hi(~0u, 3);
  r += __builtin_amdgcn_ballot_w32(x > 5) + (u32)__builtin_amdgcn_ballot_w32(x == r);
  out[i] = r;
}

KERNEL reduce(float *out, const float *in) {
  float x = in[id()];
  x += __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), 0x111, 0xf, 0xf, true));
  x += __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), 0x112, 0xf, 0xf, true));
  x = __builtin_fmaxf(x, __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, x), 0xb1, 0xf, 0xf, true)));
  int y = __builtin_bit_cast(int, x);
  y += __builtin_amdgcn_mov_dpp8(y, 0x688fac);
  out[id()] = __builtin_bit_cast(float, y ^ __builtin_amdgcn_mov_dpp8(y, 0xfac688));
}

KERNEL wave(u64 *out, u32 n) {
  u64 t = __builtin_readcyclecounter();
  __builtin_amdgcn_s_sleep(3);
  __builtin_amdgcn_s_setprio(2);
  __builtin_amdgcn_s_sendmsg(1, n);
  __builtin_amdgcn_s_waitcnt(0x3f7);
  __builtin_amdgcn_sched_barrier(0);
  __builtin_amdgcn_s_incperflevel(1);
  u32 mode = __builtin_amdgcn_s_getreg(0x1801) + __builtin_amdgcn_s_getreg(29 | 31 << 11);
  __builtin_amdgcn_s_setreg(0x0801 | 4 << 6, __builtin_amdgcn_readfirstlane(n));
  __builtin_amdgcn_s_setreg(0x1801, 3);
  __builtin_amdgcn_s_barrier();
  out[id()] = t + mode + __builtin_amdgcn_s_getpc() + (u64)__builtin_amdgcn_s_sendmsg_rtn(131);
  out[id() + 1] = __builtin_amdgcn_s_sendmsg_rtnl(131);
  if (n == 77) __builtin_trap();
  if (n == 78) __builtin_amdgcn_endpgm();
}

KERNEL matrices(f32x8 *f, f16x16 *h, i32x8 *c, const f16x16 *a, const s16x16 *b, const i32x4 *d, const i32x2 *e) {
  u32 i = id();
  f[i] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a[i], a[i + 1], f[i]);
  f[i + 1] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(b[i], b[i + 1], f[i + 1]);
  h[i] = __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a[i], a[i + 1], h[i], true);
  c[i] = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, d[i], false, d[i + 1], c[i], true);
  c[i + 1] = __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(false, e[i], true, e[i + 1], c[i + 1], false);
}

KERNEL tile(float *out, const float *a, const float *b, u32 n) {
  float acc[4][4] = {};
  for (u32 k = 0; k < n; k++)
    for (u32 y = 0; y < 4; y++)
      for (u32 x = 0; x < 4; x++) acc[y][x] += a[k * 4 + y + id()] * b[k * 4 + x];
  for (u32 y = 0; y < 4; y++)
    for (u32 x = 0; x < 4; x++) out[id() * 16 + y * 4 + x] = acc[y][x] < 0.0f ? 0.0f : acc[y][x];
}

KERNEL ids(u32 *out) {
  out[0] = __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workgroup_id_y() * 3 + __builtin_amdgcn_workgroup_id_z();
  out[1] = __builtin_amdgcn_workitem_id_x() + __builtin_amdgcn_workitem_id_y() * 5 + __builtin_amdgcn_workitem_id_z();
  out[2] = __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_grid_size_y();
  out[3] = __builtin_amdgcn_wavefrontsize() + __builtin_amdgcn_groupstaticsize();
}
