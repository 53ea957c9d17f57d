// Textures of linear and pitched memory: how long they may be, how they are aligned, what is read beyond them.
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

__global__ void read_floats(cudaTextureObject_t t, const int *at, float *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = tex1Dfetch<float>(t, at[i]);
}
__global__ void read_bytes(cudaTextureObject_t t, const int *at, float *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = static_cast<float>(tex1Dfetch<unsigned char>(t, at[i]));
}
__global__ void read_plane(cudaTextureObject_t t, const float *at, float *out, int n) {
  for (int i = 0; i < n; ++i) out[i] = tex2D<float>(t, at[2 * i], at[2 * i + 1]);
}

static const char *name(const cudaChannelFormatDesc &f) {
  static char text[64];
  snprintf(text, sizeof text, "%d %d %d %d %d", f.x, f.y, f.z, f.w, f.f);
  return text;
}

int main() {
  setvbuf(stdout, nullptr, _IONBF, 0);
  for (int attribute : {21, 42, 69, 22, 23, 70, 71, 72, 73, 74, 77, 14, 30, 51}) {
    int value = -1, error = cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(attribute), 0);
    printf("attribute %d: %d %d\n", attribute, error, value);
  }
  const cudaChannelFormatDesc formats[] = {
      cudaCreateChannelDesc<unsigned char>(), cudaCreateChannelDesc<short>(), cudaCreateChannelDesc<float>(),
      cudaCreateChannelDesc<float2>(),        cudaCreateChannelDesc<float4>(), cudaCreateChannelDesc<uchar4>(),
      cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned), cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat),
      cudaCreateChannelDesc(16, 0, 0, 0, cudaChannelFormatKindFloat), cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindFloat),
      cudaCreateChannelDesc(64, 0, 0, 0, cudaChannelFormatKindUnsigned), cudaCreateChannelDesc(24, 0, 0, 0, cudaChannelFormatKindUnsigned),
  };
  for (const auto &f : formats) {
    size_t width = 12345;
    int error = cudaDeviceGetTexture1DLinearMaxWidth(&width, &f, 0);
    printf("format %s: %d %zu, %d\n", name(f), error, width, cudaGetLastError());
  }
  char *memory = nullptr;
  size_t room = (size_t{4} << 30) + (1 << 20);
  printf("memory: %d\n", cudaMalloc(&memory, room));
  int *at;
  float *out, got[16];
  cudaMalloc(&at, 64);
  cudaMalloc(&out, 64);
  const size_t counts[] = {0, 1, 100, size_t{1} << 27, (size_t{1} << 27) + 1, (size_t{1} << 28) - 1, size_t{1} << 28, (size_t{1} << 28) + 1, size_t{1} << 29};
  for (int k = 0; k < 6; ++k)
    for (size_t count : counts) {
      const cudaChannelFormatDesc &f = formats[k];
      size_t texel = static_cast<size_t>(f.x + f.y + f.z + f.w) / 8;
      if (count * texel > room) continue;
      cudaResourceDesc r = {};
      cudaTextureDesc d = {};
      r.resType = cudaResourceTypeLinear;
      r.res.linear.devPtr = memory, r.res.linear.desc = f, r.res.linear.sizeInBytes = count * texel;
      cudaTextureObject_t t = 0;
      int error = cudaCreateTextureObject(&t, &r, &d, nullptr);
      printf("%s, %zu texels: %d, %d\n", name(f), count, error, cudaGetLastError());
      if (!error && (k == 0 || k == 2) && count) {
        unsigned char mark = 200;
        float value = 1.5f;
        cudaMemset(memory, 0, 4096);
        char *last = memory + (count - 1) * texel;
        cudaMemset(last, 0, 64);
        cudaMemcpy(last, k ? static_cast<void *>(&value) : &mark, texel, cudaMemcpyHostToDevice);
        mark = 77, value = 7.75f;
        cudaMemcpy(last + texel, k ? static_cast<void *>(&value) : &mark, texel, cudaMemcpyHostToDevice);
        int c = static_cast<int>(count), places[] = {0, c - 1, c, c + 1, -1, 2147483647, 1 << 28, (1 << 28) - 1, 1 << 27};
        cudaMemcpy(at, places, sizeof places, cudaMemcpyHostToDevice);
        if (k) read_floats<<<1, 1>>>(t, at, out, 9);
        else read_bytes<<<1, 1>>>(t, at, out, 9);
        int result = cudaMemcpy(got, out, 36, cudaMemcpyDeviceToHost);
        printf("  %d:", result);
        for (int i = 0; i < 9; ++i) printf(" %g", got[i]);
        printf("\n");
      }
      if (t) cudaDestroyTextureObject(t);
    }
  // Addresses and sizes.
  for (size_t offset : {1, 2, 4, 16, 32, 64, 128, 256, 512, 1024})
    for (size_t bytes : {4, 5, 6, 8, 100, 101, 512}) {
      cudaResourceDesc r = {};
      cudaTextureDesc d = {};
      r.resType = cudaResourceTypeLinear;
      r.res.linear.devPtr = memory + offset, r.res.linear.desc = formats[2], r.res.linear.sizeInBytes = bytes;
      cudaTextureObject_t t = 0;
      int error = cudaCreateTextureObject(&t, &r, &d, nullptr);
      printf("at %zu, %zu bytes: %d\n", offset, bytes, error);
      if (t) cudaDestroyTextureObject(t);
    }
  for (int k = 6; k < 12; ++k) {
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = memory, r.res.linear.desc = formats[k], r.res.linear.sizeInBytes = 4096;
    cudaTextureObject_t t = 0;
    printf("%s: %d\n", name(formats[k]), cudaCreateTextureObject(&t, &r, &d, nullptr));
    if (t) cudaDestroyTextureObject(t);
  }
  cudaGetLastError();
  // Past the allocation.
  char *small = nullptr;
  cudaMalloc(&small, 1 << 21);
  for (size_t bytes : {size_t{1} << 21, (size_t{1} << 21) + 4, size_t{1} << 22, size_t{1} << 26}) {
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = small, r.res.linear.desc = formats[2], r.res.linear.sizeInBytes = bytes;
    cudaTextureObject_t t = 0;
    printf("small, %zu bytes: %d\n", bytes, cudaCreateTextureObject(&t, &r, &d, nullptr));
    if (t) cudaDestroyTextureObject(t);
  }
  // The host's memory, pinned and not.
  void *pinned = nullptr;
  static float plain[64];
  cudaMallocHost(&pinned, 4096);
  for (void *p_ : {pinned, static_cast<void *>(plain), static_cast<void *>(nullptr)}) {
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = p_, r.res.linear.desc = formats[2], r.res.linear.sizeInBytes = 256;
    cudaTextureObject_t t = 0;
    printf("host: %d\n", cudaCreateTextureObject(&t, &r, &d, nullptr));
    if (t) cudaDestroyTextureObject(t);
  }
  cudaGetLastError();
  // Filters, coordinates and address modes of linear memory.
  for (int filter = 0; filter < 2; ++filter)
    for (int normalized = 0; normalized < 2; ++normalized)
      for (int address = 0; address < 4; ++address) {
        cudaResourceDesc r = {};
        cudaTextureDesc d = {};
        r.resType = cudaResourceTypeLinear;
        r.res.linear.devPtr = memory, r.res.linear.desc = formats[2], r.res.linear.sizeInBytes = 256;
        d.filterMode = static_cast<cudaTextureFilterMode>(filter), d.normalizedCoords = normalized;
        d.addressMode[0] = static_cast<cudaTextureAddressMode>(address);
        cudaTextureObject_t t = 0;
        printf("linear, filter %d, normalized %d, address %d: %d\n", filter, normalized, address, cudaCreateTextureObject(&t, &r, &d, nullptr));
        if (t) cudaDestroyTextureObject(t);
      }
  cudaGetLastError();
  // Pitched rows.
  struct Plane {
    size_t offset, width, height, pitch;
  };
  const Plane planes[] = {{0, 16, 4, 64},     {0, 16, 4, 96},   {0, 16, 4, 80},   {0, 16, 4, 72},    {0, 17, 4, 64},      {4, 16, 4, 64},
                          {32, 16, 4, 64},    {256, 16, 4, 64}, {512, 16, 4, 64}, {0, 16, 0, 64},    {0, 0, 4, 64},       {0, 16, 1, 64},
                          {0, 131072, 2, 524288}, {0, 131073, 2, 524320}, {0, 131072, 2, 2097120}, {0, 131072, 2, 2097152}, {0, 16, 65000, 64}, {0, 16, 65001, 64},
                          {0, 16, 65536, 64}, {0, 16, 65537, 64}, {0, 16, 131072, 64}, {0, 131040, 2, 2097088}, {0, 16, 2, 2097184}, {0, 16, 4, 48}, {0, 16, 4, 32}};
  for (const Plane &s : planes) {
    cudaResourceDesc r = {};
    cudaTextureDesc d = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = memory + s.offset, r.res.pitch2D.desc = formats[2], r.res.pitch2D.width = s.width;
    r.res.pitch2D.height = s.height, r.res.pitch2D.pitchInBytes = s.pitch;
    cudaTextureObject_t t = 0;
    int error = cudaCreateTextureObject(&t, &r, &d, nullptr);
    printf("plane at %zu, %zu x %zu, pitch %zu: %d\n", s.offset, s.width, s.height, s.pitch, error);
    if (t) cudaDestroyTextureObject(t);
  }
  cudaGetLastError();
  // Arrays' sizes.
  struct Extent {
    size_t w, h, d;
    unsigned flags;
  };
  const Extent extents[] = {{131072, 0, 0, 0}, {131073, 0, 0, 0}, {131072, 2, 0, 0}, {131073, 1, 0, 0}, {2, 65536, 0, 0}, {2, 65537, 0, 0},
                            {16384, 1, 1, 0},  {16385, 1, 1, 0},  {1, 1, 16384, 0},  {1, 1, 16385, 0},  {32768, 0, 2, 1}, {32769, 0, 2, 1},
                            {4, 0, 2048, 1},   {4, 0, 2049, 1},   {4, 4, 2048, 1},   {4, 4, 2049, 1},   {8, 8, 6, 4},     {8, 8, 5, 4},
                            {8, 9, 6, 4},      {8, 8, 12, 5},     {8, 8, 13, 5},     {4, 4, 0, 8},      {4, 4, 4, 8},     {0, 4, 0, 0},
                            {4, 0, 4, 0},      {32768, 32768, 0, 8}, {32769, 2, 0, 8}, {131072, 2, 0, 8}, {65537, 2, 0, 2}, {32769, 1, 1, 2}};
  for (const Extent &e : extents) {
    cudaArray_t array = nullptr;
    int error = cudaMalloc3DArray(&array, &formats[0], make_cudaExtent(e.w, e.h, e.d), e.flags);
    printf("array %zu %zu %zu, flags %u: %d\n", e.w, e.h, e.d, e.flags, error);
    if (array) cudaFreeArray(array);
  }
  printf("%d\n", cudaDeviceSynchronize());
  return 0;
}
