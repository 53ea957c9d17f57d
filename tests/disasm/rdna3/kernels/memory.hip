// Memory of every kind: global, LDS, scratch, flat, scalar, buffers, atomics, fences.
#define KERNEL extern "C" __attribute__((global)) void
#define SHARED __attribute__((shared))
typedef unsigned u32;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef _Float16 f16;
typedef u32 u32x3 __attribute__((ext_vector_type(3)));
typedef u32 u32x4 __attribute__((ext_vector_type(4)));
typedef int i32x4 __attribute__((ext_vector_type(4)));
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef f16 f16x4 __attribute__((ext_vector_type(4)));

static __attribute__((device)) u32 id() { return __builtin_amdgcn_workitem_id_x(); }

KERNEL sizes(u8 *a, u16 *b, u32 *c, u64 *d, u32x3 *e, u32x4 *f, signed char *g, short *h) {
  u32 i = id();
  a[i] = a[i + 7] + 1;
  b[i] = b[i + 1000] + 1;
  c[i] = c[i - 900] + g[i] + h[i];
  d[i] = d[i + 1] * 3;
  e[i] = e[i + 2] + 1;
  f[i] = f[i + 3] + 2;
  c[5] = a[0] + b[3] + h[9];
}

KERNEL halves(f16 *a, f16x4 *b, u32 *c) {
  u32 i = id();
  f16x4 x = b[i];
  x.y = a[i];
  x.w = a[i + 3];
  b[i + 1] = x;
  a[i + 9] = x.w;
  c[i] = (c[i] & 0xffff0000) | ((u8 *)c)[i + 11];
}

KERNEL lds(u32 *out, const u64 *in) {
  SHARED u32 words[512];
  SHARED u64 wide[256];
  SHARED u8 bytes[256];
  SHARED u16 shorts[256];
  SHARED u32x4 quads[64];
  u32 i = id();
  words[i] = in[i];
  words[i + 256] = in[i + 1];
  wide[i] = in[i];
  bytes[i] = i;
  shorts[i] = i * 3;
  quads[i & 63] = (u32x4){i, 1, 2, 3};
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  u32x4 q = quads[(i + 1) & 63];
  out[i] = words[255 - i] + words[300] + (u32)wide[i ^ 1] + bytes[i ^ 3] + shorts[i ^ 5] + q.x + q.w + words[i + 64] + words[i + 128];
}

KERNEL scratch(u32 *out, u32 n) {
  u32 array[64];
  for (u32 i = 0; i < 64; i++) array[i] = i * n;
  u8 bytes[33];
  for (u32 i = 0; i < 33; i++) bytes[i] = i ^ n;
  u32x4 quads[5];
  quads[n % 5] = (u32x4){n, 1, 2, 3};
  out[id()] = array[n & 63] + bytes[n % 33] + quads[(n + 1) % 5].y;
}

static __attribute__((device, noinline)) u32 generic(u32 *p, u64 *q) {
  *p += 5;
  *q -= 3;
  return ((volatile u16 *)p)[1] + ((u8 *)q)[3];
}

KERNEL flat(u32 *out, u64 *wide, u32 n) {
  SHARED u32 word;
  u64 local = n;
  u32 r = generic(out, wide);
  r += generic(&word, &local);
  out[id()] = r + (u32)local;
}

KERNEL scalar(u32 *out, const u32 *in, const u64 *wide, const u32x4 *quads, u32 n) {
  u32 k = __builtin_amdgcn_workgroup_id_x();
  u32x4 q = quads[k], r = quads[k + 1];
  out[0] = in[k] + in[k + 500] + (u32)wide[n] + q.x + q.w + r.y;
  for (u32 i = 0; i < n; i++) out[i] = in[i] ^ k;
}

#define ORDER __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT
#define ORDERED __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM
KERNEL atomics(u32 *a, u64 *b, float *f, int *s, u32 *out) {
  u32 i = id(), r = 0;
  __hip_atomic_fetch_add(a, 5, ORDER);
  r += __hip_atomic_fetch_add(a + 1, i, ORDER);
  r += __hip_atomic_fetch_sub(a + 2, i, ORDERED);
  r += __hip_atomic_fetch_and(a + 3, i, ORDER) + __hip_atomic_fetch_or(a + i, i, ORDER);
  r += __hip_atomic_fetch_xor(a + 5, i, ORDERED) + __hip_atomic_exchange(a + 6, i, ORDER);
  r += __hip_atomic_fetch_max(a + 7, i, ORDER) + __hip_atomic_fetch_min(s, (int)i, ORDER);
  r += __hip_atomic_fetch_add(b, (u64)i, ORDER) + __hip_atomic_fetch_max(b + i, (u64)i, ORDER);
  u32 expected = 7;
  r += __hip_atomic_compare_exchange_strong(a + 9, &expected, i, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
  u64 wide = 9;
  r += __hip_atomic_compare_exchange_weak(b + 9, &wide, 3ull, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  r += (u32)__hip_atomic_fetch_add(f, 1.0f, ORDER);
  __hip_atomic_fetch_add(f + i, 2.0f, ORDER);
  r += __hip_atomic_load(a + 11, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_store(a + 12, r, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  out[i] = r + __builtin_amdgcn_atomic_inc32(a + 13, 100, __ATOMIC_RELAXED, "agent");
  out[i] += __builtin_amdgcn_atomic_dec32(a + 14, 100, __ATOMIC_RELAXED, "agent");
}

KERNEL lds_atomics(u32 *out, float *f) {
  SHARED u32 words[64];
  SHARED u64 wide[16];
  SHARED float floats[4];
  u32 i = id(), r = 0;
  words[i & 63] = 0;
  __builtin_amdgcn_s_barrier();
  __hip_atomic_fetch_add(&words[3], i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  r += __hip_atomic_fetch_add(&words[i & 7], 2, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  r += __hip_atomic_fetch_max(&words[5], i, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_WORKGROUP);
  r += __hip_atomic_exchange(&words[9], i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  r += __hip_atomic_fetch_or(&wide[i & 15], (u64)i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  u32 expected = 4;
  r += __hip_atomic_compare_exchange_strong(&words[11], &expected, i, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  f[i] = __hip_atomic_fetch_add(&floats[i & 3], 1.5f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  out[i] = r;
}

KERNEL buffers(u32 *out, void *base, u32 n) {
  __amdgpu_buffer_rsrc_t rsrc = __builtin_amdgcn_make_buffer_rsrc(base, 0, n, 0x31004000);
  u32 i = id();
  u32 r = __builtin_amdgcn_raw_buffer_load_b32(rsrc, i * 4, 0, 0);
  r += __builtin_amdgcn_raw_buffer_load_b8(rsrc, i, n, 0) + __builtin_amdgcn_raw_buffer_load_b16(rsrc, i * 2 + 64, 16, 1);
  u32x4 q = __builtin_amdgcn_raw_buffer_load_b128(rsrc, i * 16, 0, 3);
  __builtin_amdgcn_raw_buffer_store_b32(r + q.x + q.w, rsrc, i * 4 + 4095, 0, 0);
  __builtin_amdgcn_raw_buffer_store_b128(q, rsrc, i * 16, n * 4, 2);
  __builtin_amdgcn_raw_buffer_store_b8((u8)r, rsrc, 12, 0, 0);
  out[i] = r;
}

KERNEL fences(volatile u32 *a) {
  a[0] = 1;
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
  a[1] = a[2];
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
  a[3] = a[4];
  __builtin_amdgcn_s_dcache_inv();
}
