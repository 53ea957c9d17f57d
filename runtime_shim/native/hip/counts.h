// How often the blocks of kernels began, for `sassxlate run --report`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sx {

struct Launch;

// The counts of one image.  They are in a mapped file that the system keeps, so that they survive
// a killed process.
//
// The file is `counts-PID-N` in the directory that SASSXLATE_COUNTS names: lines of text, zeros up to a
// multiple of 4096 bytes, then words of 64 bits.
//   sassxlate-counts 1
//   key KEY                     of the image: see image_key
//   blocks N
//   kernel NAME
// and the words: launches, workgroups, waves, the most threads of a workgroup, the most dynamic shared memory
// of one (bytes), three that are 0, and then for each block how often a wave began it.
struct Counts {
  uint64_t *words = nullptr;
  size_t mapped = 0;  // bytes mapped at `words`; 0: `words` is on the heap
  uint64_t *blocks() const { return words ? words + 8 : nullptr; }
  void launched(const Launch &launch, uint32_t shared) const;
};

// Whether SASSXLATE_COUNTS names a directory.
bool counting();

// The counts of a new image; if no file can be made they are not stored, which is reported once.
Counts open_counts(const std::string &key, const std::string &kernel, uint32_t blocks);

// Counting ends; the file remains.
void close_counts(Counts &counts);

}  // namespace sx
