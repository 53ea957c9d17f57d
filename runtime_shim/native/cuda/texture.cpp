#include "texture.h"

#include "handles.h"
#include "unsupported.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace sx {
namespace {

constexpr unsigned kEntries = 4096;

// The layout of lowering/rules/memory/texture/table.py, in words; masks are 0 or all ones.
struct Axis {
  float scale;                                // of a coordinate to an integer
  uint32_t factor, bits, round, period;       // of the integer to 1/256 of a texel
  float limit;
  uint32_t size, periodic, wrap, mirror, border, clamp;
};

struct Descriptor {
  uint64_t base;
  uint32_t pitch, slice, shift, channels, kind, linear;
  Axis axis[3];
  uint32_t layers, mask;
  float divisor, reciprocal;
  uint32_t border[4];
  uint32_t bytes, height, depth, channel_shift;
  uint32_t expand, adjust, lowest, bordered, fetchable, curved;
  uint64_t curve;
};
static_assert(sizeof(Descriptor) == 256, "the layout of rules/texture_table.py");

enum Kind : uint32_t { kRaw, kFloat, kHalf, kNormalised };

// Filled from integers: every value is one of 2^14.
const float *srgb() {
  static const uint16_t values[] = {
#include "srgb.inc"
  };
  static_assert(sizeof values / sizeof *values == 256, "a byte's");
  static float *const out = [] {
    float *table = new float[256];
    for (int i = 0; i < 256; ++i) table[i] = static_cast<float>(values[i]) * 0x1p-14f;
    return table;
  }();
  return out;
}
constexpr size_t kSrgbBytes = 256 * sizeof(float);

struct Table {
  unsigned generation = 0;
  void *memory = nullptr;
  std::vector<bool> used = std::vector<bool>(kEntries, false);
};

std::mutex g_mutex;

CUresult table_of(Device &device, Table *&out) {
  static auto *all = new std::map<int, Table>;
  Table &table = (*all)[device.ordinal];
  if (table.generation != device.generation) table = Table();
  if (!table.memory) {
    table.generation = device.generation;
    table.used[0] = true;  // no object's
    void *memory = nullptr;
    CUresult result = from_hip(hip().hipMalloc(&memory, kEntries * sizeof(Descriptor) + kSrgbBytes));
    if (result != CUDA_SUCCESS) return result;
    char *curve = static_cast<char *>(memory) + kEntries * sizeof(Descriptor);
    result = from_hip(hip().hipMemcpy(curve, srgb(), kSrgbBytes, hipMemcpyHostToDevice));
    if (result != CUDA_SUCCESS) return result;
    table.memory = memory;
  }
  out = &table;
  return CUDA_SUCCESS;
}

CUresult put(Descriptor &descriptor, unsigned long long *object) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Table *table = nullptr;
  CUresult result = table_of(current_device(), table);
  if (result != CUDA_SUCCESS) return result;
  auto place = std::find(table->used.begin(), table->used.end(), false);
  if (place == table->used.end()) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t number = static_cast<size_t>(place - table->used.begin());
  descriptor.curve = reinterpret_cast<uint64_t>(table->memory) + kEntries * sizeof descriptor;
  void *entry = static_cast<char *>(table->memory) + number * sizeof descriptor;
  result = from_hip(hip().hipMemcpy(entry, &descriptor, sizeof descriptor, hipMemcpyHostToDevice));
  if (result != CUDA_SUCCESS) return result;
  *place = true;
  *object = number;
  return CUDA_SUCCESS;
}

CUresult take_away(unsigned long long object) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Table *table = nullptr;
  CUresult result = table_of(current_device(), table);
  if (result != CUDA_SUCCESS) return result;
  if (object == 0 || object >= kEntries || !table->used[object]) return CUDA_ERROR_INVALID_VALUE;
  table->used[object] = false;
  return CUDA_SUCCESS;
}

uint32_t bits(float value) {
  uint32_t out;
  memcpy(&out, &value, sizeof out);
  return out;
}

float bits_to_float(uint32_t word) {
  float out;
  memcpy(&out, &word, sizeof out);
  return out;
}

// Memory that a texture reads starts at a multiple of 512 bytes (as an H200's), and its rows at multiples of 32.
constexpr size_t kTextureAlignment = 512, kPitchAlignment = 32;

// Whether the device can read there: not null, nor memory of the host that is not registered (measured).
bool is_readable(CUdeviceptr pointer) {
  hipPointerAttribute_t facts = {};
  void *base = nullptr;
  size_t size = 0;
  if (!pointer) return false;
  if (!hip().hipPointerGetAttributes || !hip().hipMemGetAddressRange) return true;
  if (hip().hipPointerGetAttributes(&facts, to_pointer(pointer)) == hipSuccess && facts.type != hipMemoryTypeUnregistered)
    return true;
  if (hip().hipMemGetAddressRange(&base, &size, to_pointer(pointer)) == hipSuccess) return true;
  hip().hipGetLastError();  // a question, not an error
  return false;
}

uint32_t mask(bool value) { return value ? ~0u : 0; }

struct Shape {
  bool cube, solid, layered;  // faces of cubes, a volume, layers
};

// What a resource has: its texels, their format and shape.
CUresult place(const CUDA_RESOURCE_DESC &resource, Descriptor &d, const ArrayFormat *&format, Shape &shape) {
  unsigned number = 0;
  d.layers = d.axis[1].size = d.axis[2].size = 1;
  switch (resource.resType) {
    case 0: {
      Array *array = find_array(resource.res.array);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      number = array->described.Format;
      shape.cube = array->described.Flags & CUDA_ARRAY3D_CUBEMAP;
      shape.layered = !shape.cube && array->described.Flags & CUDA_ARRAY3D_LAYERED;
      shape.solid = array->described.Depth && !shape.cube && !shape.layered;
      d.base = reinterpret_cast<uint64_t>(array->memory);
      d.channels = array->described.NumChannels;
      d.axis[0].size = static_cast<uint32_t>(array->described.Width);
      d.axis[1].size = static_cast<uint32_t>(array->rows());
      d.axis[2].size = static_cast<uint32_t>(array->planes());
      d.pitch = static_cast<uint32_t>(array->pitch);
      d.slice = static_cast<uint32_t>(array->pitch * array->rows());
      d.layers = shape.cube ? d.axis[2].size / 6 : d.axis[2].size;
      break;
    }
    case 2: {
      const auto &linear = resource.res.linear;
      format = array_format(linear.format);
      if (!format || !linear.numChannels) return CUDA_ERROR_INVALID_VALUE;
      number = linear.format;
      d.base = linear.devPtr;
      d.channels = linear.numChannels;
      size_t texel = size_t{linear.numChannels} << format->shift, texels = linear.sizeInBytes / texel;
      if (texels > most_linear_texels(texel)) return CUDA_ERROR_INVALID_VALUE;
      if (linear.devPtr % kTextureAlignment || !is_readable(linear.devPtr)) return CUDA_ERROR_INVALID_VALUE;
      d.axis[0].size = static_cast<uint32_t>(texels);
      d.fetchable = ~0u;
      break;
    }
    case 3: {
      const auto &pitched = resource.res.pitch2D;
      number = pitched.format;
      if (pitched.devPtr % kTextureAlignment || pitched.pitchInBytes % kPitchAlignment ||
          pitched.width > kPitchedTextureWidth || pitched.height > kPitchedTextureHeight ||
          pitched.pitchInBytes > kPitchedTexturePitch)
        return CUDA_ERROR_INVALID_VALUE;
      // Code on the device counts the bytes from the first texel in 32 bits.
      if (pitched.pitchInBytes * pitched.height > UINT32_MAX) return refuse("a pitched texture of more than 4 GiB");
      d.base = pitched.devPtr;
      d.channels = pitched.numChannels;
      d.axis[0].size = static_cast<uint32_t>(pitched.width);
      d.axis[1].size = static_cast<uint32_t>(pitched.height);
      d.pitch = static_cast<uint32_t>(pitched.pitchInBytes);
      break;
    }
    default: return refuse("a texture of a mipmapped array");
  }
  format = array_format(number);
  if (!format) return refuse("a texture with this texel format");
  if (d.channels != 1 && d.channels != 2 && d.channels != 4) return CUDA_ERROR_INVALID_VALUE;
  d.channel_shift = format->shift;
  d.shift = format->shift + (d.channels == 4 ? 2 : d.channels - 1);
  bool sign = format->kind == Channel::Signed || format->shift == 2;
  d.mask = sign ? ~0u : (1u << (8 << format->shift)) - 1;
  d.bytes = d.axis[0].size << d.shift;
  d.height = d.axis[1].size;
  d.depth = d.axis[2].size;
  return CUDA_SUCCESS;
}

// How coordinates become texels along an axis (rules/texture_place.py).
void set_axis(Axis &axis, int mode, bool normalized, bool layered) {
  bool periodic = normalized && (mode == 0 || mode == 2);
  uint32_t bits = !normalized ? 12 : 21 + (axis.size > 8192) + (axis.size > (layered ? 16384 : 65536));
  axis.scale = static_cast<float>(1u << bits);
  axis.factor = normalized ? axis.size : 1;
  axis.bits = bits - 8;
  axis.round = 1u << (bits - 9);
  axis.period = periodic ? (1u << (mode == 2 ? bits + 1 : bits)) - 1 : ~0u;
  axis.limit = normalized ? 4.0f : 262144.0f;
  axis.periodic = mask(periodic);
  axis.wrap = mask(periodic && mode == 0);
  axis.mirror = mask(periodic && mode == 2);
  axis.border = mask(mode == 3);
  axis.clamp = mask(!periodic && mode != 3);  // without normalised coordinates nothing repeats
}

// A NaN of which a half may keep other bits: 0xffc00000 is known to become 0xfe00, and 0x7f800001 0x7c01 (measured), not
// whether it is the bits that are cut off, or none being left, that sets the last one.
bool is_unknown_half(float value) {
  uint32_t word = bits(value);
  return std::isnan(value) && word & 0x1fff && word & 0x7fe000;
}

// binary32 to binary16 and back, towards 0.  A NaN stays one, of its sign and first bits; a filter's loses both (measured).
uint32_t as_half(float value, bool linear) {
  uint32_t word = bits(value), sign = word & 0x80000000;
  float size = bits_to_float(word & 0x7fffffff);
  if (std::isinf(size)) return word;
  if (linear && std::isnan(size)) return 0x7fffe000;
  if (std::isnan(size)) return (word & ~0x1fffu) | (word & 0x7fe000 ? 0 : 0x2000);
  if (!(size < 65504.0f)) return sign | 0x477fe000;
  if (size < 0x1p-14f) return sign | bits(std::floor(size * 0x1p24f) * 0x1p-24f);
  return word & ~0x1fffu;
}

// The nearest of `steps` in which a border's colour is kept.  The colour is rounded down to 2^-12 first, for formats
// of 16 bits to 2^-20; ties go to 0 (measured).
int32_t as_steps(float value, uint32_t steps, unsigned width, bool sign) {
  if (!(value > 0) && !(sign && value < 0)) return 0;
  unsigned kept = width == 8 ? 12 : 20;
  uint64_t fixed = static_cast<uint64_t>(std::ldexp(std::fmin(std::fabs(value), 1.0f), static_cast<int>(kept)));
  int32_t nearest = static_cast<int32_t>((fixed * steps + (uint64_t{1} << (kept - 1)) - 1) >> kept);
  return value < 0 ? -nearest : nearest;
}

// How a channel's bits become a value, and the border's colour as a texel would have it.
void set_values(Descriptor &d, const ArrayFormat &format, const CUDA_TEXTURE_DESC &texture) {
  bool sign = format.kind == Channel::Signed, linear = d.linear != 0;
  unsigned width = 8u << format.shift;
  if (format.kind == Channel::Float) {
    d.kind = format.shift == 1 ? kHalf : kFloat;
    for (int i = 0; i < 4; ++i)
      d.border[i] = format.shift == 1 ? as_half(texture.borderColor[i], linear) : bits(texture.borderColor[i]);
    return;
  }
  if (format.shift == 2 || texture.flags & CU_TRSF_READ_AS_INTEGER) {
    d.kind = kRaw;
    for (int i = 0; i < 4; ++i) {
      uint32_t word = bits(texture.borderColor[i]) << (32 - width);
      d.border[i] = sign ? static_cast<uint32_t>(static_cast<int32_t>(word) >> (32 - width)) : word >> (32 - width);
    }
    return;
  }
  d.kind = kNormalised;
  uint32_t steps = (1u << (sign ? width - 1 : width)) - 1;
  bool spread = linear && width == 8;
  d.expand = spread && !sign ? 257 : 1;
  d.adjust = mask(width == 8 && sign);
  uint32_t most = spread ? (sign ? 32767 : 65535) : steps;
  d.lowest = sign ? 0u - most : 0;
  d.divisor = static_cast<float>(most);
  d.reciprocal = 1.0f / d.divisor;
  for (int i = 0; i < 4; ++i) {
    int32_t value = as_steps(texture.borderColor[i], steps, width, sign);
    d.border[i] = static_cast<uint32_t>(value * static_cast<int32_t>(d.expand));
  }
}

CUresult create_texture(unsigned long long *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                        const void *view) {
  if (!object || !resource || !texture) return CUDA_ERROR_INVALID_VALUE;
  if (view) return refuse("a texture with a resource view");
  if (texture->flags & CU_TRSF_SEAMLESS_CUBEMAP) return refuse("a seamless cube map");
  Descriptor d = {};
  const ArrayFormat *format = nullptr;
  Shape shape = {};
  CUresult result = place(*resource, d, format, shape);
  if (result != CUDA_SUCCESS) return result;
  bool integers = format->kind != Channel::Float && (texture->flags & CU_TRSF_READ_AS_INTEGER || format->shift == 2);
  bool linear = texture->filterMode == 1;
  if (linear && integers) return CUDA_ERROR_INVALID_VALUE;
  // The number of bits of such volumes' coordinates is unknown: at 2,049 texels as for 8,192, at 5,000 more.
  bool normalized = texture->flags & CU_TRSF_NORMALIZED_COORDINATES;
  for (const Axis &axis : d.axis)
    if (shape.solid && normalized && axis.size > 2049 && axis.size <= 8192)
      return refuse("normalised coordinates in a volume of more than 2049 and at most 8192 texels");
  if (shape.layered && normalized && d.axis[1].size > 1 && (d.axis[0].size > 16384 || d.axis[1].size > 16384))
    return refuse("normalised coordinates in layers of more than 16384 texels along an axis");  // not measured
  d.linear = mask(linear);
  for (int i = 0; i < 3; ++i) {
    set_axis(d.axis[i], texture->addressMode[i], shape.cube || normalized, shape.layered);
    d.bordered |= d.axis[i].border;
  }
  if (d.bordered && !linear && format->kind == Channel::Float && format->shift == 1)
    for (unsigned i = 0; i < d.channels; ++i)
      if (is_unknown_half(texture->borderColor[i])) return refuse("a border of halves that is a NaN with bits that a half lacks");
  set_values(d, *format, *texture);
  // Of the 8-bit formats; others have no other curve.
  if (texture->flags & CU_TRSF_SRGB && d.kind == kNormalised && format->number == CU_AD_FORMAT_UNSIGNED_INT8) {
    if (linear || d.bordered) return refuse("an sRGB texture with a filter or a border");
    d.curved = d.channels == 4 ? 3 : 1;
  }
  return put(d, object);
}

CUresult create_surface(unsigned long long *object, const CUDA_RESOURCE_DESC *resource) {
  if (!object || !resource || resource->resType != 0) return CUDA_ERROR_INVALID_VALUE;
  Descriptor d = {};
  const ArrayFormat *format = nullptr;
  Shape shape = {};
  CUresult result = place(*resource, d, format, shape);
  return result == CUDA_SUCCESS ? put(d, object) : result;
}

}  // namespace

CUresult texture_table(Device &device, uint64_t &address) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Table *table = nullptr;
  CUresult result = table_of(device, table);
  if (result == CUDA_SUCCESS) address = reinterpret_cast<uint64_t>(table->memory);
  return result;
}

}  // namespace sx

using namespace sx;

SX_API cuTexObjectCreate(unsigned long long *object, const CUDA_RESOURCE_DESC *resource,
                         const CUDA_TEXTURE_DESC *texture, const void *view) {
  return enter<Need::Context>(__func__, [&] { return create_texture(object, resource, texture, view); });
}

SX_API cuTexObjectDestroy(unsigned long long object) {
  return enter<Need::Context>(__func__, [&] { return object ? take_away(object) : CUDA_SUCCESS; });
}

SX_API cuSurfObjectCreate(unsigned long long *object, const CUDA_RESOURCE_DESC *resource) {
  return enter<Need::Context>(__func__, [&] { return create_surface(object, resource); });
}

SX_API cuSurfObjectDestroy(unsigned long long object) {
  return enter<Need::Context>(__func__, [&] { return take_away(object); });
}
