#include "texture.h"

#include "handles.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace sx {
namespace {

constexpr unsigned kEntries = 4096;

// What lowering/rules/texture.py reads, in words; masks are 0 or all ones.
struct Axis {
  float scale;
  uint32_t size, wrap, mirror, border, unused[3];
};

struct Descriptor {
  uint64_t base;
  uint32_t pitch, slice, shift, channels, format, linear;
  Axis axis[3];
  float half;
  uint32_t layers, normal;
  float factor;
  uint32_t border[4];
  uint32_t bytes, height, depth, channel_shift;
  uint32_t unused[20];
};
static_assert(sizeof(Descriptor) == 256, "the layout of rules/texture.py");

struct Format {
  unsigned number, code, shift;  // CUDA's, the rules', log2 of a channel's bytes
  float factor;                  // of its normalised form; 0: has none
  bool is_float;
};
constexpr Format kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 0, 0, 1.0f / 255, false},   {CU_AD_FORMAT_SIGNED_INT8, 1, 0, 1.0f / 127, false},
    {CU_AD_FORMAT_UNSIGNED_INT16, 2, 1, 1.0f / 65535, false}, {CU_AD_FORMAT_SIGNED_INT16, 3, 1, 1.0f / 32767, false},
    {CU_AD_FORMAT_UNSIGNED_INT32, 4, 2, 0, false},            {CU_AD_FORMAT_SIGNED_INT32, 4, 2, 0, false},
    {CU_AD_FORMAT_FLOAT, 4, 2, 0, true},                      {CU_AD_FORMAT_HALF, 5, 1, 0, true},
};

const Format *format_of(unsigned number) {
  for (const Format &format : kFormats)
    if (format.number == number) return &format;
  return nullptr;
}

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
    CUresult result = from_hip(hip().hipMalloc(&table.memory, kEntries * sizeof(Descriptor)));
    if (result != CUDA_SUCCESS) return result;
  }
  out = &table;
  return CUDA_SUCCESS;
}

CUresult put(const Descriptor &descriptor, unsigned long long *object) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Table *table = nullptr;
  CUresult result = table_of(current_device(), table);
  if (result != CUDA_SUCCESS) return result;
  auto place = std::find(table->used.begin(), table->used.end(), false);
  if (place == table->used.end()) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t number = static_cast<size_t>(place - table->used.begin());
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

CUresult create_array(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  if (!out || !wanted || !wanted->Width) return CUDA_ERROR_INVALID_VALUE;
  const Format *format = format_of(wanted->Format);
  unsigned channels = wanted->NumChannels;
  if (!format) return CUDA_ERROR_NOT_SUPPORTED;
  if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
  auto array = std::make_unique<Array>();
  array->device = &current_device();
  array->generation = array->device->generation;
  array->described = *wanted;
  array->pitch = ((wanted->Width * channels << format->shift) + 63) & ~size_t{63};
  size_t size = 0;
  if (__builtin_mul_overflow(array->pitch, array->rows(), &size) || __builtin_mul_overflow(size, array->planes(), &size) ||
      size > UINT32_MAX)
    return CUDA_ERROR_OUT_OF_MEMORY;
  void *memory = nullptr;
  CUresult result = from_hip(hip().hipMalloc(&memory, size));
  if (result != CUDA_SUCCESS) return result;
  array->memory = static_cast<char *>(memory);
  *out = reinterpret_cast<CUarray>(array.get());
  Handles<Array>::all().add(array.release());
  return CUDA_SUCCESS;
}

CUresult destroy_array(CUarray handle) {
  Array *array = find_array(handle);
  if (!array || !Handles<Array>::all().remove(array)) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  if (array->generation == array->device->generation) result = from_hip(hip().hipFree(array->memory));
  delete array;
  return result;
}

// Where the texels are; false for what has no descriptor here.
CUresult place(const CUDA_RESOURCE_DESC &resource, Descriptor &d, const Format *&format) {
  unsigned number = 0;
  switch (resource.resType) {
    case 0: {
      Array *array = find_array(resource.res.array);
      if (!array) return CUDA_ERROR_INVALID_HANDLE;
      number = array->described.Format;
      d.base = reinterpret_cast<uint64_t>(array->memory);
      d.channels = array->described.NumChannels;
      d.axis[0].size = static_cast<uint32_t>(array->described.Width);
      d.axis[1].size = static_cast<uint32_t>(array->rows());
      d.axis[2].size = static_cast<uint32_t>(array->planes());
      d.pitch = static_cast<uint32_t>(array->pitch);
      d.slice = static_cast<uint32_t>(array->pitch * array->rows());
      d.layers = d.axis[2].size;
      break;
    }
    case 2: {
      const auto &linear = resource.res.linear;
      format = format_of(linear.format);
      if (!format || !linear.numChannels) return CUDA_ERROR_INVALID_VALUE;
      number = linear.format;
      d.base = linear.devPtr;
      d.channels = linear.numChannels;
      d.axis[0].size = static_cast<uint32_t>(linear.sizeInBytes / (linear.numChannels << format->shift));
      d.axis[1].size = d.axis[2].size = d.layers = 1;
      break;
    }
    case 3: {
      const auto &pitched = resource.res.pitch2D;
      number = pitched.format;
      d.base = pitched.devPtr;
      d.channels = pitched.numChannels;
      d.axis[0].size = static_cast<uint32_t>(pitched.width);
      d.axis[1].size = static_cast<uint32_t>(pitched.height);
      d.axis[2].size = d.layers = 1;
      d.pitch = static_cast<uint32_t>(pitched.pitchInBytes);
      if (pitched.pitchInBytes * pitched.height > UINT32_MAX) return CUDA_ERROR_NOT_SUPPORTED;
      break;
    }
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
  format = format_of(number);
  if (!format) return CUDA_ERROR_NOT_SUPPORTED;
  if (d.channels != 1 && d.channels != 2 && d.channels != 4) return CUDA_ERROR_INVALID_VALUE;
  d.format = format->code;
  d.channel_shift = format->shift;
  d.shift = format->shift + (d.channels == 4 ? 2 : d.channels - 1);
  d.bytes = d.axis[0].size << d.shift;
  d.height = d.axis[1].size;
  d.depth = d.axis[2].size;
  return CUDA_SUCCESS;
}

uint32_t bits(float value) {
  uint32_t out;
  memcpy(&out, &value, sizeof out);
  return out;
}

CUresult create_texture(unsigned long long *object, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
                        const void *view) {
  if (!object || !resource || !texture) return CUDA_ERROR_INVALID_VALUE;
  if (view || texture->flags & (CU_TRSF_SRGB | CU_TRSF_SEAMLESS_CUBEMAP)) return CUDA_ERROR_NOT_SUPPORTED;
  Descriptor d = {};
  const Format *format = nullptr;
  CUresult result = place(*resource, d, format);
  if (result != CUDA_SUCCESS) return result;
  bool normalized = texture->flags & CU_TRSF_NORMALIZED_COORDINATES;
  bool integers = !format->is_float && (texture->flags & CU_TRSF_READ_AS_INTEGER || format->factor == 0);
  bool linear = texture->filterMode == 1;
  if (linear && integers) return CUDA_ERROR_INVALID_VALUE;
  d.linear = linear ? ~0u : 0;
  d.half = linear ? 0.5f : 0.0f;
  d.normal = integers || format->is_float ? 0 : ~0u;
  d.factor = format->factor;
  for (int i = 0; i < 3; ++i) {
    Axis &axis = d.axis[i];
    int mode = texture->addressMode[i];
    axis.scale = normalized ? static_cast<float>(axis.size) : 1.0f;
    // Without normalised coordinates nothing repeats: CUDA clamps instead.
    axis.wrap = normalized && mode == 0 ? ~0u : 0;
    axis.mirror = normalized && mode == 2 ? ~0u : 0;
    axis.border = mode == 3 ? ~0u : 0;
  }
  for (int i = 0; i < 4; ++i) {
    float color = texture->borderColor[i];
    d.border[i] = integers ? static_cast<uint32_t>(static_cast<int64_t>(color)) : bits(color);
  }
  return put(d, object);
}

CUresult create_surface(unsigned long long *object, const CUDA_RESOURCE_DESC *resource) {
  if (!object || !resource || resource->resType != 0) return CUDA_ERROR_INVALID_VALUE;
  Descriptor d = {};
  const Format *format = nullptr;
  CUresult result = place(*resource, d, format);
  return result == CUDA_SUCCESS ? put(d, object) : result;
}

}  // namespace

Array *find_array(CUarray handle) { return Handles<Array>::all().find(handle); }

CUresult texture_table(Device &device, uint64_t &address) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Table *table = nullptr;
  CUresult result = table_of(device, table);
  if (result == CUDA_SUCCESS) address = reinterpret_cast<uint64_t>(table->memory);
  return result;
}

}  // namespace sx

using namespace sx;

SX_API cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  return enter<Need::Context>(__func__, [&] { return create_array(out, wanted); });
}

SX_API cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *wanted) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!wanted) return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR full = {wanted->Width, wanted->Height, 0, wanted->Format, wanted->NumChannels, 0};
    return create_array(out, &full);
  });
}

SX_API cuArrayDestroy(CUarray array) {
  return enter<Need::Context>(__func__, [&] { return destroy_array(array); });
}

SX_API cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Array *array = find_array(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = array->described;
    return CUDA_SUCCESS;
  });
}

SX_API cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Array *array = find_array(handle);
    if (!array) return CUDA_ERROR_INVALID_HANDLE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const CUDA_ARRAY3D_DESCRIPTOR &d = array->described;
    *out = {d.Width, d.Height, d.Format, d.NumChannels};
    return CUDA_SUCCESS;
  });
}

SX_API cuTexObjectCreate(unsigned long long *object, const CUDA_RESOURCE_DESC *resource,
                         const CUDA_TEXTURE_DESC *texture, const void *view) {
  return enter<Need::Context>(__func__, [&] { return create_texture(object, resource, texture, view); });
}

SX_API cuTexObjectDestroy(unsigned long long object) {
  return enter<Need::Context>(__func__, [&] { return take_away(object); });
}

SX_API cuSurfObjectCreate(unsigned long long *object, const CUDA_RESOURCE_DESC *resource) {
  return enter<Need::Context>(__func__, [&] { return create_surface(object, resource); });
}

SX_API cuSurfObjectDestroy(unsigned long long object) {
  return enter<Need::Context>(__func__, [&] { return take_away(object); });
}
