// Tensor maps: their 128 bytes are opaque to programs, so the layout is ours, and the copies' rules read it.
#include "unsupported.h"

#include <cstdint>
#include <cstring>

namespace sx {
namespace {

constexpr uint32_t kMagic = 0x53585440;  // plus the rank
constexpr uint64_t kLargest = 1 << 27;   // elements of a dimension
constexpr uint64_t kShared = 1 << 18;    // bytes: a box of so many is an error
constexpr uint32_t kRanks = 5;

// The layout of lowering/rules/memory/tensor_copies.py.
struct Map {
  uint64_t address;
  uint32_t magic, flags;
  uint32_t elements[kRanks], box[kRanks];
  uint64_t strides[kRanks - 1];
  uint64_t unused[5];
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

// What NVIDIA's documentation says is an error, and what driver 13.0 answers on an H100.
bool valid(const Tensor &t) {
  if (t.type >= kTypes || !t.rank || t.rank > kRanks || !t.elements || !t.box || !t.steps) return false;
  if (t.address % 16 || t.interleave > 2 || t.swizzle > 3 || t.promotion > 3 || t.fill > 1) return false;
  if (t.rank > 1 && !t.strides) return false;
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (!t.elements[i] || t.elements[i] > uint64_t{1} << 32) return false;
    if (!t.box[i] || t.box[i] > 256 || !t.steps[i] || t.steps[i] > 8) return false;
    if (i && (t.strides[i - 1] % 16 || t.strides[i - 1] >= uint64_t{1} << 40)) return false;
  }
  if (t.fill && t.type < kFirstFloat) return false;
  uint64_t bytes = kSizes[t.type];
  for (uint32_t i = 0; i < t.rank; ++i) bytes *= t.box[i];
  if (bytes >= kShared) return false;
  if (t.interleave) return t.rank >= 3;
  const uint32_t inner = t.box[0] * kSizes[t.type];
  return inner % 16 == 0 && (!t.swizzle || inner <= 16u << t.swizzle);
}

// What the copies do not do; null: nothing.
const char *missing(const Tensor &t) {
  if (t.interleave) return "a tensor map with an interleaved layout";
  if (t.swizzle && t.box[0] * kSizes[t.type] != 16u << t.swizzle) return "a tensor map whose box is narrower than its swizzle";
  if (t.fill) return "a tensor map that fills with NaN";
  if (t.type >= kFlushed) return "a tensor map of TF32 or of flushed FP32";
  for (uint32_t i = 0; i < t.rank; ++i) {
    if (i && t.steps[i] != 1) return "a tensor map with strides of elements";
    if (t.elements[i] > kLargest) return "a tensor map with a dimension of over 2^27 elements";
  }
  return nullptr;
}

Map encoded(const Tensor &t) {
  Map map{};
  map.address = t.address;
  map.magic = kMagic + t.rank;
  const uint32_t size = kSizes[t.type];
  const uint32_t unit = size == 1 ? 0 : size == 2 ? 1 : 2;
  map.flags = unit | (size == 8 ? 4 : 0) | (4 + t.swizzle) << 4;
  for (uint32_t i = 0; i < t.rank; ++i) {
    map.elements[i] = static_cast<uint32_t>(t.elements[i]);
    map.box[i] = t.box[i];
    if (i) map.strides[i - 1] = t.strides[i - 1];
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
    if (const char *what = missing(tensor)) return refuse(what);
    const Map map = encoded(tensor);
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
    if (map.magic <= kMagic || map.magic > kMagic + kRanks) return CUDA_ERROR_INVALID_VALUE;
    map.address = place;
    std::memcpy(out, &map, sizeof map);
    return CUDA_SUCCESS;
  });
}

}  // namespace sx
