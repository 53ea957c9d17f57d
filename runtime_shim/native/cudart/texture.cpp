// Arrays, texture and surface objects: the driver's, under the runtime's structures.
#include <cstring>

#include "state.h"

using namespace sx;

namespace {

struct ResourceDesc {
  int kind;  // 0 an array, 1 a mipmapped one, 2 linear memory, 3 with a pitch
  union {
    CUarray array;
    struct {
      void *pointer;
      cudaChannelFormatDesc format;
      size_t size;
    } linear;
    struct {
      void *pointer;
      cudaChannelFormatDesc format;
      size_t width, height, pitch;
    } pitched;
  };
};

struct TextureDesc {
  int address[3], filter;
  int read;  // 0 as elements, 1 as normalised floats
  int srgb;
  float border[4];
  int normalized;
  unsigned anisotropy;
  int mipmap_filter;
  float mipmap_bias, mipmap_least, mipmap_most;
  int no_trilinear;
  int seamless;
};

// The driver's name of a format; 0 if it has none.
unsigned format_of(const cudaChannelFormatDesc &d, unsigned *channels) {
  const int size[] = {d.x, d.y, d.z, d.w};
  *channels = 0;
  for (int bits : size) {
    if (bits == 0) break;
    if (bits != d.x) return 0;
    ++*channels;
  }
  if (*channels == 0 || *channels == 3) return 0;
  switch (d.f) {
    case 0: return d.x == 8 ? 8u : d.x == 16 ? 9u : d.x == 32 ? 10u : 0u;
    case 1: return d.x == 8 ? 1u : d.x == 16 ? 2u : d.x == 32 ? 3u : 0u;
    case 2: return d.x == 16 ? 16u : d.x == 32 ? 32u : 0u;
    default: return 0;
  }
}

cudaChannelFormatDesc described(const CUDA_ARRAY3D_DESCRIPTOR &d) {
  int bits = 0, kind = 0;
  switch (d.Format) {
    case 1: bits = 8, kind = 1; break;
    case 2: bits = 16, kind = 1; break;
    case 3: bits = 32, kind = 1; break;
    case 8: bits = 8; break;
    case 9: bits = 16; break;
    case 10: bits = 32; break;
    case 16: bits = 16, kind = 2; break;
    default: bits = 32, kind = 2; break;
  }
  unsigned n = d.NumChannels;
  return {bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0, kind};
}

// The driver's description; Format 0 for a channel descriptor that it has none for.
CUDA_ARRAY3D_DESCRIPTOR wanted(const cudaChannelFormatDesc &format, cudaExtent extent, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR d = {};
  d.Width = extent.width;
  d.Height = extent.height;
  d.Depth = extent.depth;
  d.Format = format_of(format, &d.NumChannels);
  d.Flags = flags;  // the same bits
  return d;
}

int create_array(CUarray *out, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags) {
  return with_context([&] {
    if (!out || !format) return static_cast<int>(kInvalidValue);
    CUDA_ARRAY3D_DESCRIPTOR d = wanted(*format, extent, flags);
    return d.Format ? driver().cuArray3DCreate_v2(out, &d) : static_cast<int>(kInvalidChannelDescriptor);
  });
}

int resource_of(const ResourceDesc *from, CUDA_RESOURCE_DESC *to) {
  memset(to, 0, sizeof *to);
  to->resType = from->kind;
  switch (from->kind) {
    case 0: to->res.array = from->array; return kSuccess;
    case 2:
      to->res.linear.devPtr = reinterpret_cast<CUdeviceptr>(from->linear.pointer);
      to->res.linear.format = format_of(from->linear.format, &to->res.linear.numChannels);
      to->res.linear.sizeInBytes = from->linear.size;
      return to->res.linear.format ? kSuccess : kInvalidChannelDescriptor;
    case 3:
      to->res.pitch2D.devPtr = reinterpret_cast<CUdeviceptr>(from->pitched.pointer);
      to->res.pitch2D.format = format_of(from->pitched.format, &to->res.pitch2D.numChannels);
      to->res.pitch2D.width = from->pitched.width;
      to->res.pitch2D.height = from->pitched.height;
      to->res.pitch2D.pitchInBytes = from->pitched.pitch;
      return to->res.pitch2D.format ? kSuccess : kInvalidChannelDescriptor;
    default: return kNotSupported;
  }
}

// The format of a resource's texels; that of floats for an invalid resource.
cudaChannelFormatDesc texels_of(const ResourceDesc &resource) {
  CUDA_ARRAY3D_DESCRIPTOR d;
  switch (resource.kind) {
    case 0:
      if (driver().cuArray3DGetDescriptor_v2(&d, resource.array) == kSuccess) return described(d);
      return {32, 0, 0, 0, 2};
    case 2: return resource.linear.format;
    default: return resource.pitched.format;
  }
}

int create_texture(unsigned long long *out, const ResourceDesc *resource, const TextureDesc *texture, const void *view) {
  if (!out || !resource || !texture) return kInvalidValue;
  CUDA_RESOURCE_DESC r;
  if (int error = resource_of(resource, &r)) return error;
  cudaChannelFormatDesc format = texels_of(*resource);
  bool small = format.f != 2 && format.x <= 16;
  if (texture->read == 1 && !small) return kInvalidNormSetting;
  if (texture->read == 0 && texture->filter == 1 && format.f != 2) return kInvalidFilterSetting;
  CUDA_TEXTURE_DESC t = {};
  memcpy(t.addressMode, texture->address, sizeof t.addressMode);
  t.filterMode = texture->filter;
  t.flags = (texture->read == 0 ? 1u : 0u) | (texture->normalized ? 2u : 0u) | (texture->srgb ? 16u : 0u) |
            (texture->seamless ? 64u : 0u);
  t.maxAnisotropy = texture->anisotropy;
  t.mipmapFilterMode = texture->mipmap_filter;
  t.mipmapLevelBias = texture->mipmap_bias;
  t.minMipmapLevelClamp = texture->mipmap_least;
  t.maxMipmapLevelClamp = texture->mipmap_most;
  memcpy(t.borderColor, texture->border, sizeof t.borderColor);
  return driver().cuTexObjectCreate(out, &r, &t, view);
}

// One side of a copy; with an array, x is in bytes of its row.
struct Side {
  CUarray array = nullptr;
  size_t x = 0, y = 0;
  void *memory = nullptr;
  size_t pitch = 0;
};

int copy_2d(const Side &to, const Side &from, size_t width, size_t height, int kind, CUstream stream, bool later) {
  return with_context([&] {
    if (kind < kHostToHost || kind > kCopyDefault) return static_cast<int>(kInvalidMemcpyDirection);
    if (!width || !height) return static_cast<int>(kSuccess);
    CUDA_MEMCPY2D c = {};
    c.WidthInBytes = width;
    c.Height = height;
    c.srcXInBytes = from.x;
    c.srcY = from.y;
    c.srcArray = from.array;
    c.srcHost = from.memory;
    c.srcDevice = reinterpret_cast<CUdeviceptr>(from.memory);
    c.srcPitch = from.pitch;
    c.dstXInBytes = to.x;
    c.dstY = to.y;
    c.dstArray = to.array;
    c.dstHost = to.memory;
    c.dstDevice = reinterpret_cast<CUdeviceptr>(to.memory);
    c.dstPitch = to.pitch;
    bool host_from = kind == kHostToHost || kind == kHostToDevice;
    bool host_to = kind == kHostToHost || kind == kDeviceToHost;
    c.srcMemoryType = from.array ? CU_MEMORYTYPE_ARRAY : host_from ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
    c.dstMemoryType = to.array ? CU_MEMORYTYPE_ARRAY : host_to ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
    return later ? driver().cuMemcpy2DAsync_v2(&c, stream) : driver().cuMemcpy2DUnaligned_v2(&c);
  });
}

// `count` bytes from (x, y) on: the rest of a row, whole rows, the beginning of the last one.
int copy_bytes(CUarray array, size_t x, size_t y, char *memory, size_t count, int kind, CUstream stream, bool later,
               bool to_array) {
  CUDA_ARRAY3D_DESCRIPTOR d;
  int error = with_context([&] { return driver().cuArray3DGetDescriptor_v2(&d, array); });
  if (error) return error;
  cudaChannelFormatDesc format = described(d);
  size_t row = d.Width * d.NumChannels * static_cast<size_t>(format.x) / 8;
  while (count && !error) {
    size_t width = count < row - x ? count : row - x;
    size_t height = x == 0 && count >= row ? count / row : 1;
    Side flat{nullptr, 0, 0, memory, width}, shaped{array, x, y, nullptr, 0};
    error = to_array ? copy_2d(shaped, flat, width, height, kind, stream, later)
                     : copy_2d(flat, shaped, width, height, kind, stream, later);
    memory += width * height;
    count -= width * height;
    x = 0;
    y += height;
  }
  return error;
}

}  // namespace

SX_API_RETURNS(cudaChannelFormatDesc) cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {x, y, z, w, kind};
}

SX_API cudaMallocArray(CUarray *out, const cudaChannelFormatDesc *format, size_t width, size_t height, unsigned flags) {
  return create_array(out, format, {width, height, 0}, flags);
}

SX_API cudaMalloc3DArray(CUarray *out, const cudaChannelFormatDesc *format, cudaExtent extent, unsigned flags) {
  return create_array(out, format, extent, flags);
}

SX_API cudaFreeArray(CUarray array) {
  return with_context([&] { return array ? driver().cuArrayDestroy(array) : static_cast<int>(kSuccess); });
}

SX_API cudaArrayGetInfo(cudaChannelFormatDesc *format, cudaExtent *extent, unsigned *flags, CUarray array) {
  return with_context([&] {
    CUDA_ARRAY3D_DESCRIPTOR d;
    if (int error = driver().cuArray3DGetDescriptor_v2(&d, array)) return error;
    if (format) *format = described(d);
    if (extent) *extent = {d.Width, d.Height, d.Depth};
    if (flags) *flags = d.Flags;
    return static_cast<int>(kSuccess);
  });
}

SX_API cudaGetChannelDesc(cudaChannelFormatDesc *format, CUarray array) {
  return cudaArrayGetInfo(format, nullptr, nullptr, array);
}

SX_API cudaDeviceGetTexture1DLinearMaxWidth(size_t *width, const cudaChannelFormatDesc *format, int device) {
  return with_context([&] {
    if (!width || !format) return static_cast<int>(kInvalidValue);
    unsigned channels = 0, number = format_of(*format, &channels);
    if (!number) return static_cast<int>(kInvalidChannelDescriptor);
    return driver().cuDeviceGetTexture1DLinearMaxWidth(width, static_cast<int>(number), channels, device);
  });
}

#if SX_CUDART_MAJOR >= 12
SX_API cudaCreateTextureObject(unsigned long long *out, const ResourceDesc *resource, const TextureDesc *texture,
                               const void *view) {
  return with_context([&] { return create_texture(out, resource, texture, view); });
}
#else
// 11 has two descriptions of a texture; the older one ends before `seamless`.
SX_API cudaCreateTextureObject(unsigned long long *out, const ResourceDesc *resource, const TextureDesc *texture,
                               const void *view) {
  TextureDesc whole{};
  if (texture) memcpy(&whole, texture, offsetof(TextureDesc, seamless));
  return with_context([&] { return create_texture(out, resource, texture ? &whole : nullptr, view); });
}
SX_API cudaCreateTextureObject_v2(unsigned long long *out, const ResourceDesc *resource, const TextureDesc *texture,
                                  const void *view) {
  return with_context([&] { return create_texture(out, resource, texture, view); });
}
#endif

SX_API cudaDestroyTextureObject(unsigned long long object) {
  return with_context([&] { return driver().cuTexObjectDestroy(object); });
}

SX_API cudaCreateSurfaceObject(unsigned long long *out, const ResourceDesc *resource) {
  return with_context([&] {
    if (!out || !resource) return static_cast<int>(kInvalidValue);
    CUDA_RESOURCE_DESC r;
    if (int error = resource_of(resource, &r)) return error;
    return driver().cuSurfObjectCreate(out, &r);
  });
}

SX_API cudaDestroySurfaceObject(unsigned long long object) {
  return with_context([&] { return driver().cuSurfObjectDestroy(object); });
}

SX_API cudaMemcpy2DToArray(CUarray to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
                           int kind) {
  return copy_2d({to, x, y, nullptr, 0}, {nullptr, 0, 0, const_cast<void *>(from), pitch}, width, height, kind, nullptr,
                 false);
}

SX_API cudaMemcpy2DToArrayAsync(CUarray to, size_t x, size_t y, const void *from, size_t pitch, size_t width,
                                size_t height, int kind, CUstream stream) {
  return copy_2d({to, x, y, nullptr, 0}, {nullptr, 0, 0, const_cast<void *>(from), pitch}, width, height, kind, stream,
                 true);
}

SX_API cudaMemcpy2DFromArray(void *to, size_t pitch, CUarray from, size_t x, size_t y, size_t width, size_t height,
                             int kind) {
  return copy_2d({nullptr, 0, 0, to, pitch}, {from, x, y, nullptr, 0}, width, height, kind, nullptr, false);
}

SX_API cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, CUarray from, size_t x, size_t y, size_t width,
                                  size_t height, int kind, CUstream stream) {
  return copy_2d({nullptr, 0, 0, to, pitch}, {from, x, y, nullptr, 0}, width, height, kind, stream, true);
}

SX_API cudaMemcpy2DArrayToArray(CUarray to, size_t to_x, size_t to_y, CUarray from, size_t from_x, size_t from_y,
                                size_t width, size_t height, int kind) {
  if (!to || !from) return with_context([] { return static_cast<int>(kInvalidValue); });
  return copy_2d({to, to_x, to_y, nullptr, 0}, {from, from_x, from_y, nullptr, 0}, width, height, kind, nullptr, false);
}

SX_API cudaMemcpyToArray(CUarray to, size_t x, size_t y, const void *from, size_t count, int kind) {
  return copy_bytes(to, x, y, static_cast<char *>(const_cast<void *>(from)), count, kind, nullptr, false, true);
}

SX_API cudaMemcpyToArrayAsync(CUarray to, size_t x, size_t y, const void *from, size_t count, int kind,
                              CUstream stream) {
  return copy_bytes(to, x, y, static_cast<char *>(const_cast<void *>(from)), count, kind, stream, true, true);
}

SX_API cudaMemcpyFromArray(void *to, CUarray from, size_t x, size_t y, size_t count, int kind) {
  return copy_bytes(from, x, y, static_cast<char *>(to), count, kind, nullptr, false, false);
}

SX_API cudaMemcpyFromArrayAsync(void *to, CUarray from, size_t x, size_t y, size_t count, int kind, CUstream stream) {
  return copy_bytes(from, x, y, static_cast<char *>(to), count, kind, stream, true, false);
}
