// Textures and surfaces of several shapes, formats and modes, against the same arithmetic on the host.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

static int bad = 0, checked = 0;

static void expect(const char *what, float got, float want) {
  ++checked;
  if (std::fabs(got - want) <= 2e-3f * std::fmax(1.0f, std::fabs(want))) return;
  if (++bad < 10) printf("%s: %g, not %g\n", what, got, want);
}

static float coordinate(int i, int n) { return -1.7f + 4.1f * i / n + 0.0131f; }

// One axis on the host: texel numbers and the second's weight in 1/256; -1 is the border.
struct Along { int at[2], weight; };
static Along along(float u, int size, bool normalized, bool linear, int mode) {
  long long t = (long long)std::floor(std::ldexp((double)u, 21));
  if (normalized) {
    if (mode == cudaAddressModeWrap) t &= (1 << 21) - 1;
    if (mode == cudaAddressModeMirror) t &= (1 << 22) - 1;
    t *= size;
  }
  long long place = linear ? ((t + 4096) >> 13) - 128 : t >> 13;
  Along a;
  a.weight = linear ? (int)(place & 255) : 0;
  for (int k = 0; k < 2; ++k) {
    int n = (int)(place >> 8) + k;
    if (normalized && mode == cudaAddressModeWrap) n = (n % size + size) % size;
    if (normalized && mode == cudaAddressModeMirror) n = (n % (2 * size) + 2 * size) % (2 * size), n = n < size ? n : 2 * size - 1 - n;
    if (n < 0 || n >= size) n = mode == cudaAddressModeBorder ? -1 : n < 0 ? 0 : size - 1;
    a.at[k] = n;
  }
  if (a.at[0] == a.at[1] && mode == cudaAddressModeClamp) a.weight = 0;
  return a;
}

// The weight of a corner of eight (of four, where z is 0 and has no weight), as an H200 rounds them.
static float corner(int c, int wx, int wy, int wz) {
  int share = c & 4 ? wz : 256 - wz, right = (wx * share + 128) >> 8;
  int half = c & 1 ? right : share - right, low = (half * wy + (c & 1 ? 128 : 127)) >> 8;
  return (c & 2 ? low : half - low) / 256.0f;
}

__global__ void flat(cudaTextureObject_t t, float *out, int n, float scale_x, float scale_y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2D<float>(t, (-1.7f + 4.1f * i / n + 0.0131f) * scale_x, (-1.7f + 4.1f * ((i * 7) % n) / n + 0.0131f) * scale_y);
}
__global__ void layered(cudaTextureObject_t t, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex2DLayered<float>(t, (i + 0.5f) / n, 0.3f, i % 4);
}
__global__ void solid(cudaTextureObject_t t, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = tex3D<float>(t, (i + 0.5f) / n, 0.4f, (i % 5 + 0.25f) / 5);
}
__host__ __device__ static void direction(int i, float *d) {
  unsigned h = i * 2654435761u + 12345u;
  for (int k = 0; k < 3; ++k, h = h * 1664525u + 1013904223u) d[k] = (float)(h >> 8) / (1 << 23) - 1.0f;
}
__global__ void cube(cudaTextureObject_t t, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float d[3];
  direction(i, d);
  if (i < n) out[i] = texCubemap<float>(t, d[0], d[1], d[2]);
}
__global__ void bytes(cudaTextureObject_t t, float4 *out, uchar4 *plain, cudaTextureObject_t same, int n) {
  int i = threadIdx.x;
  if (i < n) {
    out[i] = tex2D<float4>(t, i % 5 + 0.5f, i / 5 + 0.5f);
    plain[i] = tex2D<uchar4>(same, i % 5 + 0.5f, i / 5 + 0.5f);
  }
}
__global__ void store(cudaSurfaceObject_t s, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width + 3) surf2Dwrite(x * 100.0f + y, s, x * 4, y, cudaBoundaryModeZero);
}

static cudaTextureObject_t object(cudaArray_t array, int mode, bool linear, bool normalized, cudaTextureReadMode read) {
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  cudaTextureDesc d = {};
  for (int i = 0; i < 3; ++i) d.addressMode[i] = (cudaTextureAddressMode)mode;
  d.filterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
  d.readMode = read;
  d.normalizedCoords = normalized;
  d.borderColor[0] = -3;
  cudaTextureObject_t t = 0;
  if (cudaError_t e = cudaCreateTextureObject(&t, &r, &d, nullptr)) printf("texture: %s\n", cudaGetErrorName(e)), exit(1);
  return t;
}

int main() {
  const int W = 13, H = 7, D = 5, N = 256;
  std::vector<float> texels(W * H * D);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = (float)((i * 37) % 101) - 50;
  float *out, host[N];
  cudaMalloc(&out, sizeof host);
  cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
  cudaArray_t array;
  cudaMallocArray(&array, &f, W, H);
  cudaMemcpy2DToArray(array, 0, 0, texels.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice);
  for (int mode = 0; mode < 4; ++mode)
    for (int linear = 0; linear < 2; ++linear)
      for (int normalized = 0; normalized < 2; ++normalized) {
        cudaTextureObject_t t = object(array, mode, linear, normalized, cudaReadModeElementType);
        float sx = normalized ? 1 : W, sy = normalized ? 1 : H;
        flat<<<N / 64, 64>>>(t, out, N, sx, sy);
        cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
        // Without normalised coordinates nothing repeats.
        int really = !normalized && mode != cudaAddressModeBorder ? (int)cudaAddressModeClamp : mode;
        for (int i = 0; i < N; ++i) {
          Along x = along(coordinate(i, N) * sx, W, normalized, linear, really);
          Along y = along(coordinate((i * 7) % N, N) * sy, H, normalized, linear, really);
          auto at = [&](int j, int k) { return x.at[j] < 0 || y.at[k] < 0 ? -3.0f : texels[y.at[k] * W + x.at[j]]; };
          float want = 0;
          for (int c = 0; c < 4; ++c) want += corner(c, x.weight, y.weight, 0) * at(c & 1, c >> 1);
          char what[64];
          snprintf(what, sizeof what, "mode %d linear %d normalized %d [%d]", mode, linear, normalized, i);
          expect(what, host[i], want);
        }
        cudaDestroyTextureObject(t);
      }
  cudaFreeArray(array);

  cudaMemcpy3DParms p = {};
  for (int kind = 0; kind < 2; ++kind) {
    cudaMalloc3DArray(&array, &f, make_cudaExtent(W, H, D), kind ? 0 : cudaArrayLayered);
    p = {};
    p.srcPtr = make_cudaPitchedPtr(texels.data(), W * 4, W, H);
    p.dstArray = array;
    p.extent = make_cudaExtent(W, H, D);
    p.kind = cudaMemcpyHostToDevice;
    if (cudaError_t e = cudaMemcpy3D(&p)) printf("copy: %s\n", cudaGetErrorName(e)), ++bad;
    cudaTextureObject_t t = object(array, cudaAddressModeClamp, kind, true, cudaReadModeElementType);
    if (kind) solid<<<N / 64, 64>>>(t, out, N);
    else layered<<<N / 64, 64>>>(t, out, N);
    cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    for (int i = 0; i < N; ++i) {
      float want = 0;
      if (kind) {
        Along a[3] = {along((i + 0.5f) / N, W, true, true, 1), along(0.4f, H, true, true, 1), along((i % 5 + 0.25f) / 5, D, true, true, 1)};
        for (int c = 0; c < 8; ++c) {
          int at[3];
          for (int k = 0; k < 3; ++k) at[k] = a[k].at[c >> k & 1];
          want += corner(c, a[0].weight, a[1].weight, a[2].weight) * texels[(at[2] * H + at[1]) * W + at[0]];
        }
      } else {
        want = texels[(i % 4 * H + (int)(0.3f * H)) * W + (int)((i + 0.5f) / N * W)];
      }
      expect(kind ? "3D" : "layered", host[i], want);
    }
    cudaDestroyTextureObject(t);
    cudaFreeArray(array);
  }

  const int E = 8;
  std::vector<float> faces(E * E * 6);
  for (size_t i = 0; i < faces.size(); ++i) faces[i] = (float)i;
  cudaMalloc3DArray(&array, &f, make_cudaExtent(E, E, 6), cudaArrayCubemap);
  p = {};
  p.srcPtr = make_cudaPitchedPtr(faces.data(), E * 4, E, E);
  p.dstArray = array;
  p.extent = make_cudaExtent(E, E, 6);
  p.kind = cudaMemcpyHostToDevice;
  if (cudaError_t e = cudaMemcpy3D(&p)) printf("copy: %s\n", cudaGetErrorName(e)), ++bad;
  cudaTextureObject_t box = object(array, cudaAddressModeClamp, false, true, cudaReadModeElementType);
  cube<<<N / 64, 64>>>(box, out, N);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  for (int i = 0; i < N; ++i) {
    float d[3], s, u, m;
    direction(i, d);
    float x = std::fabs(d[0]), y = std::fabs(d[1]), z = std::fabs(d[2]);
    int face;
    if (x > y && x > z) face = d[0] < 0, m = x, s = d[0] < 0 ? d[2] : -d[2], u = -d[1];
    else if (y > z) face = 2 + (d[1] < 0), m = y, s = d[0], u = d[1] < 0 ? -d[2] : d[2];
    else face = 4 + (d[2] < 0), m = z, s = d[2] < 0 ? -d[0] : d[0], u = -d[1];
    float a = (s / m + 1) / 2 * E, b = (u / m + 1) / 2 * E;
    if (std::fabs(a - std::rint(a)) < 1e-3f || std::fabs(b - std::rint(b)) < 1e-3f) continue;  // between two texels
    expect("cube", host[i], faces[(face * E + (int)b) * E + (int)a]);
  }

  cudaChannelFormatDesc c4 = cudaCreateChannelDesc<uchar4>();
  unsigned char raw[5 * 4 * 4];
  for (size_t i = 0; i < sizeof raw; ++i) raw[i] = (unsigned char)(i * 29);
  cudaMallocArray(&array, &c4, 5, 4);
  cudaMemcpyToArray(array, 0, 0, raw, sizeof raw, cudaMemcpyHostToDevice);
  cudaTextureObject_t t = object(array, cudaAddressModeClamp, false, false, cudaReadModeNormalizedFloat);
  cudaTextureObject_t same = object(array, cudaAddressModeClamp, false, false, cudaReadModeElementType);
  float4 *quads, got[20];
  uchar4 *plain, whole[20];
  cudaMalloc(&quads, sizeof got);
  cudaMalloc(&plain, sizeof whole);
  bytes<<<1, 32>>>(t, quads, plain, same, 20);
  cudaMemcpy(got, quads, sizeof got, cudaMemcpyDeviceToHost);
  cudaMemcpy(whole, plain, sizeof whole, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 80; ++i) {
    expect("uchar4 normalised", (&got[0].x)[i], raw[i] / 255.0f);
    expect("uchar4", (&whole[0].x)[i], raw[i]);
  }

  cudaArray_t target;
  cudaMallocArray(&target, &f, W, H, cudaArraySurfaceLoadStore);
  cudaResourceDesc r = {};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = target;
  cudaSurfaceObject_t surface;
  if (cudaError_t e = cudaCreateSurfaceObject(&surface, &r)) printf("surface: %s\n", cudaGetErrorName(e)), ++bad;
  store<<<dim3(1, H + 2), 32>>>(surface, W, H);
  std::vector<float> written(W * H);
  if (cudaError_t e = cudaMemcpy2DFromArray(written.data(), W * 4, target, 0, 0, W * 4, H, cudaMemcpyDeviceToHost)) printf("back: %s\n", cudaGetErrorName(e)), ++bad;
  for (int i = 0; i < W * H; ++i) expect("surface", written[i], i % W * 100.0f + i / W);
  printf("bad %d of %d\n", bad, checked);
  return bad != 0;
}
