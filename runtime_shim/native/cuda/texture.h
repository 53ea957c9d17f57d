// Arrays, which are linear in memory here, and the objects through which kernels see them.
#pragma once
#include "driver.h"

namespace sx {

enum class Channel { Unsigned, Signed, Float };

struct ArrayFormat {
  unsigned number, shift;  // CUDA's, log2 of a channel's bytes
  Channel kind;
};

// Limits of textures of linear memory, as an H200 answers.  No texel then lies 4 GiB or more after the first, which is
// what code on the device counts in.
constexpr size_t most_linear_texels(size_t texel) {
  size_t most = (size_t{1} << 32) / texel, limit = size_t{1} << 30;
  return most < limit ? most : limit;
}
constexpr int kPitchedTextureWidth = 131072, kPitchedTextureHeight = 65000, kPitchedTexturePitch = 2097120;

// The format of CUDA's number, or null.
const ArrayFormat *array_format(unsigned number);

struct Array {
  Device *device = nullptr;
  unsigned generation = 0;  // of the device: a reset takes the memory
  char *memory = nullptr;
  size_t pitch = 0;
  CUDA_ARRAY3D_DESCRIPTOR described = {};

  size_t rows() const { return described.Height ? described.Height : 1; }
  size_t planes() const { return described.Depth ? described.Depth : 1; }
  size_t row = 0;  // bytes of a row's texels; the pitch has what comes to a multiple of 64
};

// The array of a handle, or null.
Array *find_array(CUarray handle);

// The device address of the table of descriptors.
CUresult texture_table(Device &device, uint64_t &address);

}  // namespace sx
