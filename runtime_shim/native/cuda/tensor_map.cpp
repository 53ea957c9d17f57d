// Tensor maps: their 128 bytes are opaque to programs, so the layout is ours, and the copies' rules read it.
#include "unsupported.h"

#include <cstdint>
#include <cstring>

namespace sx {
namespace {

constexpr uint32_t kMagic = 0x53585440;   // plus the rank
constexpr uint32_t kPixels = 0x53585450;  // the same, of maps for im2col
constexpr uint64_t kLargest = 1 << 27;   // elements of a dimension
constexpr uint64_t kShared = 1 << 18;    // bytes: a box of so many is an error
constexpr uint64_t kBlock = 232448;      // the most a block has: a column of 131,072 bytes is none, of 261,120 an error
constexpr uint32_t kRanks = 5;
constexpr uint32_t kTypeBit = 24;
constexpr uint32_t kWithin = 8;  // a flag: all of the pixels' window is in the tensor

// The layout of lowering/rules/memory/tensor/box.py and pixels.py.
struct Map {
  uint64_t address;
  uint32_t magic, flags;
  uint32_t elements[kRanks], box[kRanks];
  uint64_t strides[kRanks - 1];
  int32_t window[3][3];  // im2col: lower, last and the number of steps of each spatial dimension
  uint32_t unused;
};
static_assert(sizeof(Map) == 128, "CUtensorMap");

// The bytes of an element by CUtensorMapDataType; those after the twelfth are of other architectures.
constexpr uint32_t kSizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr uint32_t kTypes = sizeof kSizes / sizeof *kSizes;
constexpr uint32_t kFirstFloat = 6;
constexpr uint32_t kFlushed = 10;  // from here on values may change: denormals, TF32

struct Tensor {
  uint32_t type, rank;
  uintptr_t address;
  const uint64_t *elements, *strides;
  const uint32_t *box, *steps;
  uint32_t interleave, swizzle, promotion, fill;
};

// What NVIDIA's documentation says is an error, and what driver 13.0 answers on an H100: of the tensor, tiled or not.
bool valid_tensor(const Tensor &t) {
  if (t.type >= kTypes || !t.rank || t.rank > kRanks || !t.elements || !t.steps) return false;
  if (t.address % 16 || t.interleave > 2 || t.swizzle > 3 || t.promotion > 3 || t.fill > 1) return false;
  if (t.rank > 1 && !t.strides) return false;
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (!t.elements[i] || t.elements[i] > uint64_t{1} << 32) return false;
    if (!t.steps[i] || t.steps[i] > 8) return false;
    if (i && (t.strides[i - 1] % 16 || t.strides[i - 1] >= uint64_t{1} << 40)) return false;
  }
  return !t.fill || t.type >= kFirstFloat;
}

// The same of the first dimension of a box, which has so many elements.
bool valid_row(const Tensor &t, uint32_t count) {
  if (t.interleave) return t.rank >= 3;
  const uint32_t inner = count * kSizes[t.type];
  return inner % 16 == 0 && (!t.swizzle || inner <= 16u << t.swizzle);
}

bool valid(const Tensor &t) {
  if (!valid_tensor(t) || !t.box) return false;
  uint64_t bytes = kSizes[t.type];
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (!t.box[i] || t.box[i] > 256) return false;
    bytes *= t.box[i];
  }
  return bytes < kShared && valid_row(t, t.box[0]);
}

// A column of pixels: the window's corners, and how many channels of how many pixels.
struct Column {
  const int *lower, *upper;
  uint32_t channels, pixels;
};

int64_t last_of(const Tensor &t, const Column &column, uint32_t k) {
  return static_cast<int64_t>(t.elements[k + 1]) - 1 + column.upper[k];
}

bool valid(const Tensor &t, const Column &column) {
  if (!valid_tensor(t) || t.rank < 3 || !column.lower || !column.upper) return false;
  if (!column.channels || column.channels > 256 || !column.pixels || column.pixels > 1024) return false;
  if (uint64_t{column.channels} * column.pixels * kSizes[t.type] > kBlock) return false;
  const int range = t.rank == 3 ? 1 << 15 : t.rank == 4 ? 1 << 7 : 1 << 4;
  for (uint32_t k = 0; k + 2 < t.rank; ++k) {
    for (const int corner : {column.lower[k], column.upper[k]})
      if (corner < -range || corner >= range) return false;
    if (last_of(t, column, k) < column.lower[k]) return false;
  }
  return valid_row(t, column.channels);
}

// What the copies do not do with rows of so many elements; null: nothing.
const char *missing(const Tensor &t, uint32_t count) {
  if (t.interleave) return "a tensor map with an interleaved layout";
  if (t.swizzle && count * kSizes[t.type] != 16u << t.swizzle) return "a tensor map whose box is narrower than its swizzle";
  if (t.fill) return "a tensor map that fills with NaN";
  if (t.type >= kFlushed) return "a tensor map of TF32 or of flushed FP32";
  for (uint32_t i = 0; i < t.rank; ++i)
    if (t.elements[i] > kLargest) return "a tensor map with a dimension of over 2^27 elements";
  return nullptr;
}

bool strided(const Tensor &t) {
  for (uint32_t i = 1; i < t.rank; ++i)
    if (t.steps[i] != 1) return true;
  return false;
}

Map encoded(const Tensor &t, uint32_t magic) {
  Map map{};
  map.address = t.address;
  map.magic = magic + t.rank;
  const uint32_t size = kSizes[t.type];
  const uint32_t unit = size == 1 ? 0 : size == 2 ? 1 : 2;
  map.flags = unit | (size == 8 ? 4 : 0) | (4 + t.swizzle) << 4 | t.type << kTypeBit;
  for (uint32_t i = 0; i < t.rank; ++i) {
    map.elements[i] = static_cast<uint32_t>(t.elements[i]);
    if (i) map.strides[i - 1] = t.strides[i - 1];
  }
  return map;
}

Map encoded(const Tensor &t) {
  Map map = encoded(t, kMagic);
  for (uint32_t i = 0; i < t.rank; ++i) map.box[i] = t.box[i];
  return map;
}

Map encoded(const Tensor &t, const Column &column) {
  Map map = encoded(t, kPixels);
  map.box[0] = column.channels;
  map.box[1] = column.pixels;
  map.flags |= kWithin;
  for (uint32_t k = 0; k + 2 < t.rank; ++k) {
    const uint32_t step = t.steps[k + 1];
    const auto last = static_cast<int32_t>(last_of(t, column, k));
    map.flags |= step << (8 + 4 * k);
    if (column.lower[k] < 0 || column.upper[k] > 0) map.flags &= ~kWithin;
    map.box[2 + k] = step == 1 ? 0 : static_cast<uint32_t>(((uint64_t{1} << 32) + step - 1) / step);
    map.window[k][0] = column.lower[k];
    map.window[k][1] = last;
    map.window[k][2] = (last - column.lower[k]) / static_cast<int32_t>(step) + 1;
  }
  return map;
}

}  // namespace

SX_API cuTensorMapEncodeTiled(void *out, uint32_t type, uint32_t rank, void *address, const uint64_t *elements,
                              const uint64_t *strides, const uint32_t *box, const uint32_t *steps,
                              uint32_t interleave, uint32_t swizzle, uint32_t promotion, uint32_t fill) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    const Tensor tensor{type, rank, reinterpret_cast<uintptr_t>(address), elements, strides, box, steps,
                        interleave, swizzle, promotion, fill};
    if (!out || reinterpret_cast<uintptr_t>(out) % 64 || !valid(tensor)) return CUDA_ERROR_INVALID_VALUE;
    if (strided(tensor)) return refuse("a tensor map with strides of elements");
    if (const char *what = missing(tensor, box[0])) return refuse(what);
    const Map map = encoded(tensor);
    std::memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
  });
}

SX_API cuTensorMapEncodeIm2col(void *out, uint32_t type, uint32_t rank, void *address, const uint64_t *elements,
                               const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                               uint32_t pixels, const uint32_t *steps, uint32_t interleave, uint32_t swizzle,
                               uint32_t promotion, uint32_t fill) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    const Tensor tensor{type, rank, reinterpret_cast<uintptr_t>(address), elements, strides, nullptr, steps,
                        interleave, swizzle, promotion, fill};
    const Column column{lower, upper, channels, pixels};
    if (!out || reinterpret_cast<uintptr_t>(out) % 64 || !valid(tensor, column)) return CUDA_ERROR_INVALID_VALUE;
    if (const char *what = missing(tensor, channels)) return refuse(what);
    const Map map = encoded(tensor, column);
    std::memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
  });
}

SX_API cuTensorMapReplaceAddress(void *out, void *address) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    const auto place = reinterpret_cast<uintptr_t>(address);
    if (!out || reinterpret_cast<uintptr_t>(out) % 64 || place % 16) return CUDA_ERROR_INVALID_VALUE;
    Map map;
    std::memcpy(&map, out, sizeof map);
    const uint32_t rank = map.magic % 16;
    if ((map.magic - rank != kMagic && map.magic - rank != kPixels) || !rank || rank > kRanks) return CUDA_ERROR_INVALID_VALUE;
    map.address = place;
    std::memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
  });
}

}  // namespace sx
