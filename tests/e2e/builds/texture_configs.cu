// Texture reads over formats, shapes, address modes and filters; every input comes from a seed.
//
//   texture_configs OUT [all|FIRST-LAST|every:N[:K]] [--inputs] [--seed N COUNT]
//
// With --seed, COUNT configurations drawn from N instead of the list, with other coordinates and texels.
// OUT gets a record for each configuration: 32 words that describe it, the first call that failed and
// its error, a digest of the results, their number and the results.  --inputs writes coordinates
// and texels instead, and calls no device.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

enum Dim { LINEAR, D1, D2, D3, A1, A2, CUBE, ACUBE, PITCH };
enum Op { TEX, FETCH, GATHER, LEVEL = 6, GRAD = 7 };  // GATHER + component
enum Content { RANDOM, HOT, SPECIAL, WIDE, SMALL };
enum Read { U8, S8, U16, S16, U32, S32, F16, F32, NU8, NS8, NU16, NS16, READS };

struct Config {
  int id, op, dim, read, channels, linear, address[3], normalized, srgb, seamless, levels, mip_linear;
  float bias, least, most;
  int size[3], n, content, masked;
  float border[4];
  int anisotropy, deep, free_scale, grid, odd_read;
};
static_assert(sizeof(Config) == 128, "32 words");

// ---- kernels: r[0..3] as raw words; inputs are rows of n words
#define KERNEL(name, instruction, coordinates, more)                                                        \
  __global__ void name(unsigned long long t, uint4 *out, const float *in, int n) {                          \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                          \
    if (i >= n || in[11 * n + i] == 0) return;                                                              \
    float x = in[i], y = in[n + i], z = in[2 * n + i], l = in[4 * n + i];                                   \
    int layer = __float_as_int(in[3 * n + i]);                                                              \
    int xi = __float_as_int(x), yi = __float_as_int(y), zi = __float_as_int(z);                             \
    float a = in[5 * n + i], b = in[6 * n + i], c = in[7 * n + i];                                          \
    float d = in[8 * n + i], e = in[9 * n + i], f = in[10 * n + i];                                         \
    uint4 r;                                                                                                \
    asm volatile(instruction " {%0,%1,%2,%3}, [%4, " coordinates "]" more ";"                               \
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)                                               \
                 : "l"(t), "f"(x), "f"(y), "f"(z), "f"(l), "r"(layer), "r"(xi), "r"(yi), "r"(zi), "f"(a),   \
                   "f"(b), "f"(c), "f"(d), "f"(e), "f"(f));                                                 \
    out[i] = r;                                                                                             \
  }
#define SHAPES(M, op, more)                      \
  M(op, 1d, "{%5}", more)                        \
  M(op, 2d, "{%5,%6}", more)                     \
  M(op, 3d, "{%5,%6,%7,%7}", more)               \
  M(op, a1d, "{%9,%5}", more)                    \
  M(op, a2d, "{%9,%5,%6,%6}", more)
#define CUBES(M, op, more)                       \
  M(op, cube, "{%5,%6,%7,%7}", more)             \
  M(op, acube, "{%9,%5,%6,%7}", more)
#define PLAIN(op, shape, at, more) KERNEL(op##_##shape, "tex." #shape ".v4.u32.f32", at, more)
#define AT_LEVEL(op, shape, at, more) KERNEL(op##_##shape, "tex.level." #shape ".v4.u32.f32", at, more)
SHAPES(PLAIN, plain, "")
CUBES(PLAIN, plain, "")
SHAPES(AT_LEVEL, level, ", %8")
CUBES(AT_LEVEL, level, ", %8")
KERNEL(fetch_1d, "tex.1d.v4.u32.s32", "{%10}", "")
KERNEL(fetch_2d, "tex.2d.v4.u32.s32", "{%10,%11}", "")
KERNEL(fetch_3d, "tex.3d.v4.u32.s32", "{%10,%11,%12,%12}", "")
KERNEL(fetch_a1d, "tex.a1d.v4.u32.s32", "{%9,%10}", "")
KERNEL(fetch_a2d, "tex.a2d.v4.u32.s32", "{%9,%10,%11,%11}", "")
KERNEL(grad_1d, "tex.grad.1d.v4.u32.f32", "{%5}", ", {%13}, {%16}")
KERNEL(grad_2d, "tex.grad.2d.v4.u32.f32", "{%5,%6}", ", {%13,%14}, {%16,%17}")
KERNEL(grad_3d, "tex.grad.3d.v4.u32.f32", "{%5,%6,%7,%7}", ", {%13,%14,%15,%15}, {%16,%17,%18,%18}")
KERNEL(grad_a1d, "tex.grad.a1d.v4.u32.f32", "{%9,%5}", ", {%13}, {%16}")
KERNEL(grad_a2d, "tex.grad.a2d.v4.u32.f32", "{%9,%5,%6,%6}", ", {%13,%14}, {%16,%17}")
#define GATHERS(component)                                                                    \
  KERNEL(gather_##component##_2d, "tld4." #component ".2d.v4.u32.f32", "{%5,%6}", "")         \
  KERNEL(gather_##component##_a2d, "tld4." #component ".a2d.v4.u32.f32", "{%9,%5,%6,%6}", "") \
  KERNEL(gather_##component##_cube, "tld4." #component ".cube.v4.u32.f32", "{%5,%6,%7,%7}", "") \
  KERNEL(gather_##component##_acube, "tld4." #component ".acube.v4.u32.f32", "{%9,%5,%6,%7}", "")
GATHERS(r)
GATHERS(g)
GATHERS(b)
GATHERS(a)

typedef void (*Kernel)(unsigned long long, uint4 *, const float *, int);
static Kernel kernel_of(const Config &c) {
  int d = c.dim == PITCH ? D2 : c.dim == LINEAR ? D1 : c.dim;
  static const Kernel plain[] = {plain_1d, plain_2d, plain_3d, plain_a1d, plain_a2d, plain_cube, plain_acube};
  static const Kernel level[] = {level_1d, level_2d, level_3d, level_a1d, level_a2d, level_cube, level_acube};
  static const Kernel fetch[] = {fetch_1d, fetch_2d, fetch_3d, fetch_a1d, fetch_a2d};
  static const Kernel grad[] = {grad_1d, grad_2d, grad_3d, grad_a1d, grad_a2d};
  static const Kernel gather[4][4] = {{gather_r_2d, gather_r_a2d, gather_r_cube, gather_r_acube},
                                      {gather_g_2d, gather_g_a2d, gather_g_cube, gather_g_acube},
                                      {gather_b_2d, gather_b_a2d, gather_b_cube, gather_b_acube},
                                      {gather_a_2d, gather_a_a2d, gather_a_cube, gather_a_acube}};
  switch (c.op) {
    case TEX: return plain[d - 1];
    case LEVEL: return level[d - 1];
    case FETCH: return fetch[d - 1];
    case GRAD: return grad[d - 1];
    default: return gather[c.op - GATHER][d == D2 ? 0 : d == A2 ? 1 : d == CUBE ? 2 : 3];
  }
}

// ---- seeded inputs
static uint64_t g_salt;  // of another seed than the list's
struct Random {
  uint64_t s;
  explicit Random(uint64_t seed) : s((seed ^ g_salt) * 0x9e3779b97f4a7c15ull + 0x1234567) {}
  uint32_t next() {
    s += 0x9e3779b97f4a7c15ull;
    uint64_t z = (s ^ s >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return static_cast<uint32_t>(z >> 32);
  }
  int below(int n) { return static_cast<int>(next() % static_cast<uint32_t>(n)); }
  int range(int a, int b) { return a + below(b - a + 1); }
  float unit() { return static_cast<float>(next() >> 8) * (1.0f / 16777216); }
};
static float as_float(uint32_t w) { float f; memcpy(&f, &w, 4); return f; }
static uint32_t as_word(float f) { uint32_t w; memcpy(&w, &f, 4); return w; }

static bool is_norm(int read) { return read >= NU8; }
static bool is_filterable(int read) { return read >= F16; }
static int storage(int read) { return is_norm(read) ? read - NU8 : read; }
static int channel_bytes(int read) { static const int n[] = {1, 1, 2, 2, 4, 4, 2, 4}; return n[storage(read)]; }

static bool is_layered(int d) { return d == A1 || d == A2 || d == ACUBE; }
static bool is_cube(int d) { return d == CUBE || d == ACUBE; }
static int axes_of(int d) { return d == D1 || d == A1 || d == LINEAR ? 1 : d == D3 ? 3 : 2; }

static float special(Random &r) {
  static const uint32_t w[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000,
                               0x7fc00000, 0xffc00000, 0x7f800001, 0x7f800000, 0xff800000, 0x7f7fffff, 0xff7fffff,
                               0x4b000000, 0xcb000000, 0x4b000001, 0x4f000000, 0xcf000000, 0x4effffff, 0x4f800000,
                               0x47800000, 0xc7800000, 0x50000000, 0xd0000000, 0x60ad78ec, 0x33800000, 0xb3800000,
                               0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f000000, 0x40000000, 0xc0000000, 0x477fff00,
                               0x49742400, 0xc9742408, 0x46fffe00, 0x4a800001, 0x3effffff, 0x3b7fffff, 0xbb000000};
  return as_float(w[r.below(sizeof w / sizeof *w)]);
}

// A place along an axis, in texels.
static double place(Random &r, int size, bool inside) {
  int k = inside || r.below(2) ? r.range(-1, size + 1) : r.range(-2 * size - 3, 3 * size + 3);
  switch (r.below(8)) {
    case 0: return k;
    case 1: return k + 0.5;
    case 2: return k + r.below(256) / 256.0;
    case 3: return k + (2 * r.below(256) + 1) / 512.0;
    case 4: return k + r.below(512) / 512.0 + (r.below(2) ? 1 : -1) * std::ldexp(1.0, -r.range(10, 22));
    case 5: return k + r.below(65536) / 65536.0;
    default: return (inside ? 1 : 3) * size * static_cast<double>(r.unit()) - (inside ? 0 : size);
  }
}
static float nudged(Random &r, float x) {
  if (r.below(3)) return x;
  return as_float(as_word(x) + static_cast<uint32_t>(r.range(-2, 2)));
}
static float coordinate(Random &r, const Config &c, int axis) {
  if (r.below(16) == 0) return special(r);
  float t = static_cast<float>(place(r, c.size[axis], false));
  return nudged(r, c.normalized ? t / static_cast<float>(c.size[axis]) : t);
}

enum { ROWS = 12 };  // x y z layer lod, six of gradients, whether the thread reads
static std::vector<float> coordinates(const Config &c) {
  std::vector<float> in(static_cast<size_t>(ROWS) * c.n);
  Random r(static_cast<uint64_t>(c.id) * 2 + 1);
  for (int i = 0; i < c.n; ++i) {
    float v[ROWS] = {};
    if (c.op == FETCH) {
      static const int edges[] = {-1, -2, INT32_MIN, INT32_MAX, 65536, -65536, 1 << 20, 1 << 27, 0x10001, 1 << 30};
      for (int a = 0; a < axes_of(c.dim); ++a) {
        int k = r.below(8) ? r.below(c.size[a]) : r.below(3) ? r.range(c.size[a] - 1, c.size[a] + 2) : edges[r.below(10)];
        v[a] = as_float(static_cast<uint32_t>(k));
      }
    } else if (is_cube(c.dim)) {
      float major = r.below(2) ? -1.0f : 1.0f, scale = 1;
      if (r.below(4) == 0) scale = std::ldexp(1.0f, r.range(-6, 6));
      float other = 0.01f + 3 * r.unit();
      if (c.free_scale && r.below(2)) scale = other;  // else a reciprocal without rounding
      float s[2];
      for (float &p : s) {
        p = static_cast<float>(2 * place(r, c.size[0], true) / c.size[0] - 1);
        p = nudged(r, p < -1 ? -1 : p > 1 ? 1 : p) * scale;
      }
      int axis = r.below(3);
      v[axis] = major * scale;
      v[(axis + 1) % 3] = s[0];
      v[(axis + 2) % 3] = s[1];
      if (r.below(24) == 0) {
        float odd = special(r);
        if (c.free_scale || !(as_word(odd) & 0x7fffff) || odd != odd) v[r.below(3)] = odd;
      }
    } else {
      for (int a = 0; a < axes_of(c.dim); ++a) v[a] = coordinate(r, c, a);
      if (c.grid == 1) v[0] = 3.5f + static_cast<float>(i & 255) / 256, v[1] = 2.5f + static_cast<float>(i >> 8) / 256;
      if (c.grid == 2) v[0] = static_cast<float>(i) / 8192;
      if (c.grid == 3)
        for (int a = 0; a < 3; ++a) v[a] = 1.5f + a + static_cast<float>(r.below(256)) / 256;
    }
    static const int layers[] = {-1, INT32_MIN, INT32_MAX, 65535, 65536, 65537, -65536, 0x8000, 0x10001, 2048};
    int layer = r.below(8) ? r.below(c.size[2]) : r.below(2) ? r.range(c.size[2] - 1, c.size[2] + 1) : layers[r.below(10)];
    v[3] = as_float(static_cast<uint32_t>(layer));
    int most = c.levels > 1 ? c.levels : 3;
    v[4] = r.below(16) == 0 ? special(r) : nudged(r, static_cast<float>(place(r, most, true)));
    for (int k = 0; k < 6; ++k) {
      float step = (r.below(4) ? r.unit() : std::ldexp(1.0f, -r.below(6))) * static_cast<float>(1 << r.below(most + 1));
      if (c.normalized) step /= static_cast<float>(c.size[k % 3] > 0 ? c.size[k % 3] : 1);
      v[5 + k] = r.below(5) == 0 ? 0.0f : r.below(2) ? -step : step;
      if (r.below(64) == 0) v[5 + k] = special(r);
    }
    v[11] = c.masked && r.below(3) == 0 ? 0.0f : 1.0f;
    for (int k = 0; k < ROWS; ++k) in[static_cast<size_t>(k) * c.n + i] = v[k];
  }
  return in;
}

static uint16_t to_half(Random &r, int content, bool hot, float value) {
  if (content == HOT || content == SMALL) {  // 0, 1, 4096 and small integers are exact
    int k = content == HOT ? (hot ? static_cast<int>(value) : 0) : static_cast<int>(value);
    if (k == 0) return 0;
    int e = 0;
    unsigned m = static_cast<unsigned>(k < 0 ? -k : k);
    while (m >> (e + 1)) ++e;
    unsigned fraction = e <= 10 ? (m << (10 - e)) & 1023 : (m >> (e - 10)) & 1023;
    return static_cast<uint16_t>((k < 0 ? 0x8000 : 0) | (e + 15) << 10 | fraction);
  }
  uint32_t w = r.next();
  if (content == SPECIAL) {
    static const uint16_t s[] = {0x7c00, 0xfc00, 0x7e00, 0x7c01, 0xfe55, 0x0001, 0x03ff, 0x8001, 0x7bff, 0xfbff, 0x8000, 0x0400};
    if (r.below(4) == 0) return s[r.below(12)];
    return static_cast<uint16_t>(w);
  }
  int exponent = content == WIDE ? 3 + static_cast<int>(w >> 16) % 24 : 9 + static_cast<int>(w >> 16) % 6;
  return static_cast<uint16_t>((w & 0x83ff) | exponent << 10);
}
static uint32_t texel(Random &r, const Config &c, int x, int y, int z, int channel) {
  int kind = storage(c.read), bytes = channel_bytes(c.read);
  bool hot = (x & 1) + 2 * (y & 1) == channel;
  float height = z & 1 ? 4096.0f : 1.0f;
  if (kind == F16) return to_half(r, c.content, hot, c.content == SMALL ? static_cast<float>(r.range(-50, 50)) : height);
  if (kind == F32) {
    uint32_t w = r.next();
    switch (c.content) {
      case HOT: return hot ? as_word(height) : 0;
      case SMALL: return as_word(static_cast<float>(static_cast<int>(w % 101) - 50));
      case WIDE: return (w & 0x807fffff) | (115 + (r.next() % 25)) << 23;
      case SPECIAL: {
        static const uint32_t s[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, 1, 0x007fffff, 0x80000001,
                                     0x7f7fffff, 0xff7fffff, 0x80000000, 0x00800000, 0x80ffffff, 0x7f000000};
        if (r.below(4) == 0) return s[r.below(14)];
        return w;
      }
      default: return (w & 0x807fffff) | (120 + (r.next() % 7)) << 23;
    }
  }
  bool is_signed = kind == S8 || kind == S16 || kind == S32;
  uint32_t all = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1, most = is_signed ? all >> 1 : all;
  if (c.content == HOT) return hot ? most : 0;
  uint32_t w = r.next() & all;
  if (r.below(8) == 0) {
    const uint32_t s[] = {0, 1, most, most + 1, all, most - 1};
    w = s[r.below(6)] & all;
  }
  return w;
}
static std::vector<unsigned char> texels(const Config &c, int level, const int *size) {
  int bytes = channel_bytes(c.read);
  std::vector<unsigned char> out;
  out.reserve(static_cast<size_t>(size[0]) * size[1] * size[2] * c.channels * bytes);
  Random r(static_cast<uint64_t>(c.id) * 64 + 1000000007ull + level);
  for (int z = 0; z < size[2]; ++z)
    for (int y = 0; y < size[1]; ++y)
      for (int x = 0; x < size[0]; ++x)
        for (int k = 0; k < c.channels; ++k) {
          uint32_t w = texel(r, c, x, y, z, k);
          for (int b = 0; b < bytes; ++b) out.push_back(static_cast<unsigned char>(w >> 8 * b));
        }
  return out;
}

// ---- the configurations
static std::vector<Config> g_all;

static int pick_size(Random &r, int dim, int axis) {
  static const int wide[] = {1, 2, 3, 5, 8, 13, 16, 64, 100, 257, 1000};
  static const int flat[] = {1, 2, 3, 5, 7, 8, 13, 16, 31, 64, 100};
  static const int solid[] = {1, 2, 3, 5, 7, 8, 13};
  if (axes_of(dim) == 1 && axis == 0) return wide[r.below(11)];
  if (dim == D3) return solid[r.below(7)];
  return flat[r.below(11)];
}
static Config &add(int op, int dim, int read, int channels, int linear, int address, int normalized) {
  Config c = {};
  c.id = static_cast<int>(g_all.size());
  Random r(static_cast<uint64_t>(c.id) + 77777);
  c.op = op, c.dim = dim, c.read = read, c.channels = channels, c.linear = linear, c.normalized = normalized;
  for (int a = 0; a < 3; ++a) c.address[a] = a && r.below(3) == 0 ? r.below(4) : address;
  c.levels = 1;
  c.n = 128;
  c.size[0] = pick_size(r, dim, 0);
  c.size[1] = axes_of(dim) > 1 ? is_cube(dim) ? c.size[0] : pick_size(r, dim, 1) : 1;
  c.size[2] = dim == D3 ? pick_size(r, dim, 2) : dim == CUBE ? 6 : dim == ACUBE ? r.range(1, 3) : is_layered(dim) ? r.range(1, 6) : 1;
  c.content = storage(read) >= F16 && r.below(6) == 0 ? SPECIAL : r.below(5) == 0 ? WIDE : r.below(5) == 0 ? SMALL : RANDOM;
  c.masked = r.below(4) == 0;
  c.free_scale = is_cube(dim) && r.below(6) == 0;
  static const float colors[] = {0, 1, -1, 0.5f, 0.25f, 2.5f, -3, 0.1f, 300, 1e-3f, 0.7f, -0.3f, 0.999f, 1e9f, 0.0019607844f};
  for (float &b : c.border) b = colors[r.below(15)];
  g_all.push_back(c);
  return g_all.back();
}
static void deep(Config &c, int content, int x = 0, int y = 0, int z = 0) {
  c.n = 4096, c.deep = 1, c.content = content, c.masked = 0, c.free_scale = 0;
  for (int &a : c.address) a = c.address[0];
  if (x) c.size[0] = x;
  if (y) c.size[1] = y;
  if (z) c.size[2] = z;
}

static void make_all() {
  static const int dims[] = {D1, D2, D3, A1, A2, CUBE, ACUBE, PITCH};
  static const int counts[] = {1, 2, 4};
  // 0: every format, filter and mode of every shape
  for (int dim : dims)
    for (int read = 0; read < READS; ++read)
      for (int channels : counts)
        for (int linear = 0; linear <= is_filterable(read); ++linear)
          for (int address = 0; address < 4; ++address)
            for (int normalized = 0; normalized < 2; ++normalized) add(TEX, dim, read, channels, linear, address, normalized);
  // 1: linear filters of what has none
  for (int read = 0; read < F16; ++read) add(TEX, D2, read, 1, 1, 1, 1);
  // 2: fetches
  for (int read = 0; read < READS; ++read)
    for (int channels : counts) {
      add(FETCH, LINEAR, read, channels, 0, 0, 0);
      for (int dim : {D1, D2, D3, A1, A2}) add(FETCH, dim, read, channels, 0, 1 + 2 * (channels == 2), 0);
    }
  // 3: gathers
  for (int dim : {D2, PITCH, A2, CUBE, ACUBE})
    for (int read = 0; read < READS; ++read)
      for (int component = 0; component < 4; ++component) {
        int normalized = is_cube(dim) || (read + component) % 2;
        add(GATHER + component, dim, read, counts[(read + component) % 3], is_filterable(read) && component % 2, (component + read) % 4, normalized);
      }
  // 4: sRGB
  for (int dim : {D1, D2, D3, A2, CUBE, PITCH})
    for (int channels : counts)
      for (int linear = 0; linear < 2; ++linear) add(TEX, dim, NU8, channels, linear, linear ? 1 : 3, 1).srgb = 1;
  for (int read = 0; read < READS; ++read) add(TEX, D2, read, 4, 0, 1, 1).srgb = 1;
  // 5: seamless cubes
  for (int dim : {CUBE, ACUBE})
    for (int read = 0; read < READS; ++read)
      for (int linear = 0; linear <= is_filterable(read); ++linear) {
        add(TEX, dim, read, counts[read % 3], linear, read % 4, 1).seamless = 1;
        add(GATHER, dim, read, 1, linear, 1, 1).seamless = 1;
      }
  // 6: a level of what has one alone
  for (int dim : dims)
    for (int read = 0; read < READS; ++read) add(LEVEL, dim, read, counts[read % 3], is_filterable(read) && read % 2, read % 4, 1);
  // 7: mipmaps
  static const float biases[] = {0, 0, 0.5f, -0.25f, 0.3f, -1.7f, 20, -20};
  static const float clamps[][2] = {{0, 99}, {0, 99}, {0, 0}, {1, 2}, {0.5f, 1.75f}, {0.3f, 2.1f}, {2, 1}, {-3, 1.001f}};
  static const int reads[] = {F32, NU8, F16, NS16, U8, F32, NU16, S32};
  for (int dim : {D1, D2, D3, A1, A2, CUBE, ACUBE})
    for (int linear = 0; linear < 2; ++linear)
      for (int mip = 0; mip < 2; ++mip)
        for (int k = 0; k < 16; ++k) {
          int read = reads[k % 8];
          if (linear && !is_filterable(read)) read = NS8;
          Config &c = add(k == 15 ? TEX : k > 11 && !is_cube(dim) ? GRAD : LEVEL, dim, read, counts[k % 3], linear, k % 4, 1);
          static const int sizes[] = {16, 13, 32, 21, 64};
          c.size[0] = sizes[k % 5];
          c.size[1] = axes_of(dim) == 1 ? 1 : is_cube(dim) ? c.size[0] : sizes[(k / 2) % 5];
          if (dim == D3) c.size[2] = sizes[k % 3];
          c.levels = 2 + k % 3;
          c.mip_linear = mip;
          c.bias = biases[k % 8], c.least = clamps[(k / 2) % 8][0], c.most = clamps[(k / 2) % 8][1];
        }
  // 8: many samples, to fit the arithmetic
  for (int dim : dims)
    for (int content : {HOT, RANDOM, WIDE}) {
      int y = axes_of(dim) > 1 ? is_cube(dim) ? 16 : 8 : 0;
      deep(add(TEX, dim, F32, 4, 1, content == HOT ? 0 : 1, 1), content, 16, y, dim == D3 ? 4 : 0);
      deep(add(TEX, dim, F32, content == HOT ? 4 : 1, 1, content == HOT ? 2 : 3, is_cube(dim)), content, is_cube(dim) ? 7 : 13, is_cube(dim) ? 7 : y ? 7 : 0, dim == D3 ? 5 : 0);
    }
  for (int dim : {D1, D2, D3})
    for (int read : {F16, NU8, NS8, NU16, NS16})
      for (int content : {HOT, RANDOM}) deep(add(TEX, dim, read, content == HOT ? 4 : 2, 1, 1, 0), content, 16, dim == D1 ? 0 : 8, dim == D3 ? 4 : 0);
  for (int size : {13, 100, 257, 1000, 4096, 16384, 32768})
    for (int linear = 0; linear < 2; ++linear)
      for (int normalized = 0; normalized < 2; ++normalized) {
        if (!normalized && size < 1000) continue;
        deep(add(TEX, D1, F32, 1, linear, normalized ? (size & 1 ? 2 : 0) : 1, normalized), SMALL, size);
      }
  for (int dim : {D1, D2, D3})
    for (int read : {F32, F16}) deep(add(TEX, dim, read, 1, 1, 1, 0), SPECIAL, 16, dim == D1 ? 0 : 8, dim == D3 ? 4 : 0);
  for (int linear = 0; linear < 2; ++linear) {
    Config &s = add(TEX, D1, NU8, 4, linear, 1, 0);
    s.srgb = 1;
    deep(s, RANDOM, 1000);
    for (int dim : {D2, D3}) {
      Config &t = add(TEX, dim, NU8, 4, 1, linear ? 1 : 3, 0);
      t.srgb = 1;
      deep(t, RANDOM, 16, 8, dim == D3 ? 4 : 0);
    }
    for (int content : {HOT, RANDOM}) {
      Config &c = add(linear ? TEX : GATHER, CUBE, F32, 4, linear, 1, 1);
      c.seamless = 1;
      deep(c, content, 8, 8);
      Config &g = add(GATHER, linear ? D2 : CUBE, F32, 4, linear, 1, 1);
      deep(g, content, 8, 8);
    }
    for (int mip = 0; mip < 2; ++mip)
      for (int dim : {D1, D2, D3}) {
        Config &c = add(LEVEL, dim, F32, 4, linear, 1, 1);
        deep(c, linear ? HOT : RANDOM, 16, dim == D1 ? 0 : 16, dim == D3 ? 16 : 0);
        c.levels = 4, c.mip_linear = mip, c.most = 99;
        Config &g = add(GRAD, dim, F32, 4, linear, 1, 1);
        deep(g, RANDOM, 16, dim == D1 ? 0 : 16, dim == D3 ? 16 : 0);
        g.levels = 5, g.mip_linear = mip, g.most = 99;
      }
  }
}

static void make_grids() {
  // 9: every weight of two axes, steps of 1/8192 of one, many of three
  for (int read : {F32, NU8, NS16, F16})
    for (int content : {HOT, RANDOM}) {
      if (content == RANDOM && read == F32) continue;
      Config &c = add(TEX, D2, read, content == HOT ? 4 : 1, 1, 1, 0);
      deep(c, content, 16, 8);
      c.n = read == F32 ? 65536 : 16384, c.grid = 1;
      Config &line = add(TEX, D1, read, content == HOT ? 4 : 1, 1, 1, 0);
      deep(line, content, 16);
      line.n = read == F32 ? 65536 : 16384, line.grid = 2;
      Config &solid = add(TEX, D3, read, content == HOT ? 4 : 1, 1, 1, 0);
      deep(solid, content, 8, 8, 8);
      solid.n = read == F32 ? 131072 : 16384, solid.grid = 3;
    }
  for (int dim : {D1, D2, D3}) {  // weights in sums of floats
    Config &c = add(TEX, dim, F32, 1, 1, 1, 0);
    deep(c, RANDOM, 16, dim == D1 ? 0 : 8, dim == D3 ? 8 : 0);
    c.n = 16384, c.grid = dim == D1 ? 2 : dim == D2 ? 1 : 3;
    Config &w = add(TEX, dim, F32, 1, 1, 1, 0);
    deep(w, WIDE, 16, dim == D1 ? 0 : 8, dim == D3 ? 8 : 0);
    w.n = 16384;
  }
  // 10: read modes that do not fit the format
  for (int read = 0; read < READS; ++read) add(TEX, D2, read, 2, 0, 1, 0).odd_read = 1;
}

// The nearest number that a place in a list of 65,535 or 255 steps has, and numbers beside it.
static float border_colour(Random &r) {
  if (r.below(8) == 0) return special(r);
  float sign = r.below(4) ? 1.0f : -1.0f;
  switch (r.below(6)) {
    case 0: return sign * 1.2f * r.unit();
    case 1: return nudged(r, sign * static_cast<float>(2 * r.below(256) + 1) / 510);
    case 2: return nudged(r, sign * static_cast<float>(2 * r.below(65536) + 1) / 131070);
    case 3: return nudged(r, sign * static_cast<float>(2 * r.below(128) + 1) / 254);
    case 4: return nudged(r, sign * static_cast<float>(2 * r.below(32768) + 1) / 65534);
    default: return nudged(r, sign * std::ldexp(r.unit(), -r.below(16)));
  }
}

static void make_more() {
  // 11: border colours
  for (int read : {F16, NU8, NS8, NU16, NS16})
    for (int k = 0; k < 96; ++k) {
      Config &c = add(TEX, D2, read, 4, k % 8 == 7, 3, 0);
      Random r(static_cast<uint64_t>(c.id) + 555555);
      for (float &b : c.border) b = border_colour(r);
      c.size[0] = c.size[1] = 2, c.n = 16, c.masked = 0, c.content = RANDOM;
      for (int &a : c.address) a = 3;
    }
  // 12: long axes
  for (int size : {2048, 4095, 4097, 5000, 6000, 8191, 8192, 8193, 10000, 12288, 12289, 16383, 16385, 20000, 24577, 32767, 32769, 40000, 65535, 65536, 100000, 131072})
    for (int linear = 0; linear < 2; ++linear) {
      Config &c = add(TEX, D1, F32, 1, linear, size & 1 ? 0 : 2, 1);
      deep(c, SMALL, size);
      c.n = 1024;
      Config &d = add(TEX, D2, F32, 1, linear, size & 1 ? 1 : 0, 1);
      deep(d, SMALL, size & 2 ? size : 8, size & 2 ? 8 : size <= 65536 ? size : 16384);
      d.n = 512;
    }
  for (int size : {2049, 5000, 9000, 16384}) deep(add(TEX, D3, F32, 1, 1, 1, 1), SMALL, 2, 2, size);
  // 13: sums of two layers of a volume
  for (int read : {F32, F16})
    for (int content : {WIDE, RANDOM, SPECIAL}) {
      Config &c = add(TEX, D3, read, 4, 1, 1, 0);
      deep(c, content, 1, 1, 2000);
      c.n = content == WIDE ? 16384 : 4096;
    }
  // 14: sRGB gathered, and blended in many weights
  for (int component = 0; component < 4; ++component) {
    Config &c = add(GATHER + component, D2, NU8, component == 1 ? 2 : 4, component & 1, 1, 1);
    c.srgb = 1;
    Config &d = add(TEX, component & 1 ? D2 : D1, NU8, 4, 1, 1, 0);
    d.srgb = 1;
    deep(d, component & 2 ? HOT : RANDOM, 64, component & 1 ? 8 : 0);
  }
}

// Any operation on any shape, each axis, size, border and address mode by itself.
static void make_random(uint64_t seed, int count) {
  static const int shapes[] = {D1, D2, D3, A1, A2, CUBE, ACUBE, PITCH};
  static const int counts[] = {1, 2, 4};
  g_salt = seed * 0xd1b54a32d192ed03ull;
  for (int k = 0; k < count; ++k) {
    Random r(static_cast<uint64_t>(k) + 99991);
    int dim = shapes[r.below(8)], kind = r.below(10), op = TEX, read = r.below(READS);
    if (kind < 1 && !is_cube(dim)) op = FETCH, dim = dim == PITCH ? LINEAR : dim;
    else if (kind < 3 && (dim == D2 || dim == PITCH || dim == A2 || is_cube(dim))) op = GATHER + r.below(4);
    else if (kind == 3) op = LEVEL;
    int linear = is_filterable(read) ? r.below(3) != 0 : r.below(24) == 0;
    if (op == FETCH) linear = 0;
    int normalized = op != FETCH && (is_cube(dim) || r.below(2));
    Config &c = add(op, dim, read, counts[r.below(3)], linear, r.below(4), normalized);
    for (int &a : c.address) if (op != FETCH && r.below(3)) a = r.below(4);
    for (float &b : c.border) b = r.below(2) ? border_colour(r) : special(r);
    int most = dim == D3 ? 24 : is_cube(dim) ? 40 : axes_of(dim) == 1 ? r.below(6) ? 300 : 40000 : r.below(6) ? 90 : 700;
    for (int a = 0; a < axes_of(dim); ++a) c.size[a] = r.range(1, most);
    if (is_cube(dim)) c.size[1] = c.size[0];
    if (is_layered(dim)) c.size[2] = r.range(1, 7);
    if (dim == PITCH && c.size[0] > 90) c.size[1] = r.range(1, 40);
    c.content = storage(read) < F16 ? r.below(4) ? RANDOM : HOT : r.below(8) == 0 ? SPECIAL : r.below(4) ? RANDOM : SMALL;
    c.masked = r.below(4) == 0, c.free_scale = 0, c.srgb = read == NU8 && r.below(6) == 0, c.n = 256;
  }
}

// ---- running one
struct Outcome { int call, error; std::vector<uint32_t> words; };
#define TRY(number, expression)                          \
  do {                                                   \
    cudaError_t error_ = (expression);                   \
    if (error_ != cudaSuccess) {                         \
      cudaGetLastError();                                \
      o.call = number, o.error = static_cast<int>(error_); \
      goto done;                                         \
    }                                                    \
  } while (0)

static cudaChannelFormatDesc described(const Config &c) {
  int bits = 8 * channel_bytes(c.read), kind = storage(c.read), n = c.channels;
  cudaChannelFormatKind k = kind >= F16 ? cudaChannelFormatKindFloat : kind & 1 ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned;
  return cudaCreateChannelDesc(bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, k);
}

static Outcome run(const Config &c) {
  Outcome o = {0, 0, {}};
  cudaArray_t array = nullptr;
  cudaMipmappedArray_t mipmap = nullptr;
  void *memory = nullptr;
  float *in = nullptr;
  uint4 *out = nullptr;
  cudaTextureObject_t texture = 0;
  cudaResourceDesc r = {};
  cudaTextureDesc d = {};
  cudaChannelFormatDesc f = described(c);
  std::vector<float> rows = coordinates(c);
  size_t row = static_cast<size_t>(c.size[0]) * c.channels * channel_bytes(c.read), pitch = 0;
  int planes = c.dim == ACUBE ? 6 * c.size[2] : c.size[2];
  unsigned flags = (is_layered(c.dim) ? cudaArrayLayered : 0) | (is_cube(c.dim) ? cudaArrayCubemap : 0) |
                   (c.op >= GATHER && c.op < GATHER + 4 ? cudaArrayTextureGather : 0);
  if (is_cube(c.dim) || c.dim == A1 || c.dim == D3) flags &= ~cudaArrayTextureGather;
  cudaExtent whole = make_cudaExtent(c.size[0], axes_of(c.dim) > 1 ? c.size[1] : 0, is_layered(c.dim) || c.dim == D3 || c.dim == CUBE ? planes : 0);
  size_t bytes = static_cast<size_t>(c.n) * sizeof(uint4);
  if (c.dim == LINEAR) {
    std::vector<unsigned char> data = texels(c, 0, c.size);
    TRY(1, cudaMalloc(&memory, data.size()));
    TRY(2, cudaMemcpy(memory, data.data(), data.size(), cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory, r.res.linear.desc = f, r.res.linear.sizeInBytes = data.size();
  } else if (c.dim == PITCH) {
    std::vector<unsigned char> data = texels(c, 0, c.size);
    TRY(1, cudaMallocPitch(&memory, &pitch, row, c.size[1]));
    TRY(2, cudaMemcpy2D(memory, pitch, data.data(), row, row, c.size[1], cudaMemcpyHostToDevice));
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = memory, r.res.pitch2D.desc = f, r.res.pitch2D.width = c.size[0], r.res.pitch2D.height = c.size[1];
    r.res.pitch2D.pitchInBytes = pitch;
  } else {
    if (c.levels > 1) TRY(3, cudaMallocMipmappedArray(&mipmap, &f, whole, c.levels, flags));
    else TRY(4, cudaMalloc3DArray(&array, &f, whole, flags));
    for (int level = 0; level < c.levels; ++level) {
      int size[3] = {c.size[0] >> level, c.size[1] >> level, c.dim == D3 ? c.size[2] >> level : planes};
      for (int &s : size) s = s ? s : 1;
      cudaArray_t part = array;
      if (mipmap) TRY(5, cudaGetMipmappedArrayLevel(&part, mipmap, level));
      std::vector<unsigned char> data = texels(c, level, size);
      cudaMemcpy3DParms p = {};
      p.srcPtr = make_cudaPitchedPtr(data.data(), data.size() / size[1] / size[2], size[0], size[1]);
      p.dstArray = part;
      p.extent = make_cudaExtent(size[0], size[1], size[2]);
      p.kind = cudaMemcpyHostToDevice;
      TRY(6, cudaMemcpy3D(&p));
    }
    if (mipmap) r.resType = cudaResourceTypeMipmappedArray, r.res.mipmap.mipmap = mipmap;
    else r.resType = cudaResourceTypeArray, r.res.array.array = array;
  }
  for (int a = 0; a < 3; ++a) d.addressMode[a] = static_cast<cudaTextureAddressMode>(c.address[a]);
  d.filterMode = c.linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.readMode = is_norm(c.read) != (c.odd_read != 0) ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
  d.sRGB = c.srgb, d.normalizedCoords = c.normalized, d.seamlessCubemap = c.seamless, d.maxAnisotropy = c.anisotropy;
  d.mipmapFilterMode = c.mip_linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.mipmapLevelBias = c.bias, d.minMipmapLevelClamp = c.least, d.maxMipmapLevelClamp = c.most;
  memcpy(d.borderColor, c.border, sizeof c.border);
  TRY(7, cudaCreateTextureObject(&texture, &r, &d, nullptr));
  TRY(8, cudaMalloc(&in, rows.size() * 4));
  TRY(9, cudaMemcpy(in, rows.data(), rows.size() * 4, cudaMemcpyHostToDevice));
  TRY(10, cudaMalloc(&out, bytes));
  TRY(11, cudaMemset(out, 0xcd, bytes));
  kernel_of(c)<<<(c.n + 95) / 96, 96>>>(texture, out, in, c.n);
  TRY(12, cudaGetLastError());
  o.words.resize(bytes / 4);
  TRY(13, cudaMemcpy(o.words.data(), out, bytes, cudaMemcpyDeviceToHost));
done:
  if (o.error) o.words.clear();
  if (texture) cudaDestroyTextureObject(texture);
  cudaFree(in);
  cudaFree(out);
  cudaFree(memory);
  if (array) cudaFreeArray(array);
  if (mipmap) cudaFreeMipmappedArray(mipmap);
  return o;
}

static uint64_t digest(const std::vector<uint32_t> &words) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (uint32_t w : words) h = (h ^ w) * 0x100000001b3ull, h ^= h >> 29;
  return h;
}

int main(int argc, char **argv) {
  if (argc < 2) return fprintf(stderr, "texture_configs OUT [all|FIRST-LAST|every:N[:K]] [--inputs] [--seed N COUNT]\n"), 2;
  const char *seed = nullptr, *number = nullptr;
  for (int k = 2; k + 2 < argc; ++k)
    if (!strcmp(argv[k], "--seed")) seed = argv[k + 1], number = argv[k + 2];
  if (seed) {
    make_random(strtoull(seed, nullptr, 10), atoi(number));
  } else {
    make_all();
    make_grids();
    make_more();
  }
  int first = 0, last = static_cast<int>(g_all.size()) - 1, step = 1, offset = 0;
  bool inputs = argc > 3 && !strcmp(argv[3], "--inputs");
  if (argc > 2 && sscanf(argv[2], "every:%d:%d", &step, &offset) < 1) sscanf(argv[2], "%d-%d", &first, &last);
  FILE *file = fopen(argv[1], "wb");
  if (!file) return perror(argv[1]), 1;
  int count = 0, failed = 0;
  for (const Config &c : g_all) {
    if (c.id < first || c.id > last || c.id % step != offset % step) continue;
    ++count;
    fwrite(&c, sizeof c, 1, file);
    if (inputs) {
      std::vector<float> rows = coordinates(c);
      fwrite(rows.data(), 4, rows.size(), file);
      for (int level = 0; level < c.levels; ++level) {
        int planes = c.dim == ACUBE ? 6 * c.size[2] : c.size[2];
        int size[3] = {c.size[0] >> level, c.size[1] >> level, c.dim == D3 ? c.size[2] >> level : planes};
        for (int &s : size) s = s ? s : 1;
        std::vector<unsigned char> data = texels(c, level, size);
        fwrite(size, 4, 3, file);
        fwrite(data.data(), 1, data.size(), file);
      }
      continue;
    }
    Outcome o = run(c);
    failed += o.error != 0;
    uint64_t h = digest(o.words);
    int words = static_cast<int>(o.words.size());
    fwrite(&o.call, 4, 1, file);
    fwrite(&o.error, 4, 1, file);
    fwrite(&h, 8, 1, file);
    fwrite(&words, 4, 1, file);
    fwrite(o.words.data(), 4, o.words.size(), file);
  }
  fclose(file);
  printf("%d of %d configurations, %d with an error\n", count, static_cast<int>(g_all.size()), failed);
  return 0;
}
