// cuBLASLt's public interface: numbers of its attributes, and its descriptors, which callers may keep in memory of their own.
#pragma once
#include <cstdint>

#include "../cublas/cublas_abi.h"

namespace sx::lt {

constexpr int kOrderCol = 0, kOrderRow = 1;
constexpr int kBatchStrided = 0, kBatchPointers = 1;
constexpr int kFillFull = 2;
constexpr int kScaleWhole = 0, kScaleOuterVector = 3;

enum PointerMode : int { kHost = 0, kDevice = 1, kDeviceVector = 2, kAlphaVectorBetaZero = 3, kAlphaVectorBetaHost = 4 };

enum Epilogue : unsigned {
  kDefault = 1, kRelu = 2, kBias = 4, kDRelu = 8, kBiasGradient = 16, kGelu = 32, kDGelu = 64, kAux = 128,
  kBiasGradientA = 256, kBiasGradientB = 512,
};

// The size that programs give these is that of CUDA 12 at least: 8, 32, 8 and 8 words of 64 bits.
struct Layout {
  int32_t type, order = kOrderCol;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1, batch_mode = kBatchStrided;
  int64_t batch_step = 0, plane_offset = 0;
};

struct Operation {
  int32_t compute, scale;
  int32_t pointer_mode = kHost, op_a = 0, op_b = 0, op_c = 0, fill = kFillFull, sm_count = 0, aux_type = -1, bias_type = -1;
  uint32_t epilogue = kDefault;
  int32_t a_scale_mode = 0, b_scale_mode = 0, c_scale_mode = 0, d_scale_mode = 0, aux_scale_mode = 0, out_scale_mode = 0;
  int8_t fast_accumulation = 0;
  const void *bias = nullptr;
  int64_t bias_step = 0;
  void *aux = nullptr;
  int64_t aux_ld = 0, aux_step = 0, alpha_vector_step = 0;
  const void *a_scale = nullptr, *b_scale = nullptr, *c_scale = nullptr, *d_scale = nullptr;
  void *amax = nullptr, *aux_scale = nullptr, *aux_amax = nullptr, *out_scale = nullptr;
  void *emulation = nullptr;
  int64_t alpha_step = 0, beta_step = 0;
};

struct Transform {
  int32_t scale, pointer_mode = kHost, op_a = 0, op_b = 0;
};

struct Preference {
  uint32_t search = 0, reductions = 7, align_a = 256, align_b = 256, align_c = 256, align_d = 256;
  uint64_t workspace = 0, implementations = ~uint64_t{0};
  float waves = 0;
};

struct Emulation {
  int32_t strategy = 0, special = 0xffff, control = 0, most_bits = 0, bit_offset = 0;
  int32_t *bits = nullptr;
};

// There is one algorithm.  Its configuration is kept, and changes nothing.
constexpr uint32_t kMark = 0x53584c54;
struct Algorithm {
  uint32_t mark, id, config[14];
};
// Whether a product may be given it: that algorithm, or none.
inline bool known(const Algorithm *given) { return !given || (given->mark == kMark && given->id == 0); }

struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  int32_t state;
  float waves;
  int32_t reserved[4];
};

static_assert(sizeof(Layout) <= 64 && sizeof(Operation) <= 256 && sizeof(Transform) <= 64 && sizeof(Preference) <= 64 &&
              sizeof(Emulation) <= 64 && sizeof(Algorithm) == 64 && sizeof(Heuristic) == 96);

}  // namespace sx::lt
