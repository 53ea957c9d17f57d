// Arrays, which are linear in memory here.
#include "handles.h"
#include "texture.h"
#include "unsupported.h"

namespace sx {
namespace {

constexpr ArrayFormat kFormats[] = {
    {CU_AD_FORMAT_UNSIGNED_INT8, 0, Channel::Unsigned}, {CU_AD_FORMAT_SIGNED_INT8, 0, Channel::Signed},
    {CU_AD_FORMAT_UNSIGNED_INT16, 1, Channel::Unsigned}, {CU_AD_FORMAT_SIGNED_INT16, 1, Channel::Signed},
    {CU_AD_FORMAT_UNSIGNED_INT32, 2, Channel::Unsigned}, {CU_AD_FORMAT_SIGNED_INT32, 2, Channel::Signed},
    {CU_AD_FORMAT_HALF, 1, Channel::Float},              {CU_AD_FORMAT_FLOAT, 2, Channel::Float},
};

// Whether an array may have these dimensions: CUDA's limits, as an H200 answers.
bool fits(const CUDA_ARRAY3D_DESCRIPTOR &wanted) {
  size_t w = wanted.Width, h = wanted.Height, d = wanted.Depth, across = 131072, down = 65536, deep = 16384;
  bool cube = wanted.Flags & CUDA_ARRAY3D_CUBEMAP, layered = wanted.Flags & CUDA_ARRAY3D_LAYERED;
  if (cube) return w == h && w <= 32768 && (layered ? d && d % 6 == 0 && d <= 2046 : d == 6);
  if (layered) return w <= 32768 && h <= 32768 && d <= 2048;
  // Volumes may be longer that are narrower: attributes 47 to 49.
  if (d) return h && ((w <= deep && h <= deep && d <= deep) || (w <= 8192 && h <= 8192 && d <= 32768));
  if (wanted.Flags & CUDA_ARRAY3D_TEXTURE_GATHER) across = down = 32768;
  return w <= across && h <= down;
}

// Checks the description, and fills in the rest of `array` but its memory; `bytes`: what it takes.
CUresult describe(const CUDA_ARRAY3D_DESCRIPTOR &wanted, Array &array, size_t &bytes) {
  const ArrayFormat *format = array_format(wanted.Format);
  unsigned channels = wanted.NumChannels;
  if (!wanted.Width) return CUDA_ERROR_INVALID_VALUE;
  if (!format) return refuse("an array with this texel format");
  if (channels != 1 && channels != 2 && channels != 4) return CUDA_ERROR_INVALID_VALUE;
  if (!fits(wanted)) return CUDA_ERROR_INVALID_VALUE;
  // Four texels are gathered from arrays of two dimensions alone (measured).
  if (wanted.Flags & CUDA_ARRAY3D_TEXTURE_GATHER && (!wanted.Height || wanted.Depth)) return CUDA_ERROR_INVALID_VALUE;
  array.device = &current_device();
  array.generation = array.device->generation;
  array.described = wanted;
  if (__builtin_mul_overflow(wanted.Width, size_t{channels} << format->shift, &array.row) ||
      array.row > UINT32_MAX - 63)
    return CUDA_ERROR_OUT_OF_MEMORY;
  array.pitch = (array.row + 63) & ~size_t{63};
  if (__builtin_mul_overflow(array.pitch, array.rows(), &bytes) || __builtin_mul_overflow(bytes, array.planes(), &bytes) ||
      bytes > UINT32_MAX)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}

CUresult reserve(size_t bytes, char *&out) {
  void *memory = nullptr;
  CUresult result = from_hip(hip().hipMalloc(&memory, bytes));
  out = static_cast<char *>(memory);
  return result;
}

CUresult create_array(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *wanted) {
  if (!out || !wanted) return CUDA_ERROR_INVALID_VALUE;
  auto array = std::make_unique<Array>();
  size_t bytes = 0;
  CUresult result = describe(*wanted, *array, bytes);
  if (result == CUDA_SUCCESS) result = reserve(bytes, array->memory);
  if (result != CUDA_SUCCESS) return result;
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

}  // namespace

const ArrayFormat *array_format(unsigned number) {
  for (const ArrayFormat &format : kFormats)
    if (format.number == number) return &format;
  return nullptr;
}

Array *find_array(CUarray handle) { return Handles<Array>::all().find(handle); }

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
