// How often the blocks of kernels began, for `sassxlate run --report`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sx {

struct Launch;

// The numbers of one image.  They lie in a file that processes and the system keep, so that what a process
// has done that is killed is there, too.
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
  size_t mapped = 0;  // bytes at `words` that are a file's; 0: they are the heap's
  uint64_t *blocks() const { return words ? words + 8 : nullptr; }
  void launched(const Launch &launch, uint32_t shared) const;
};

// Whether SASSXLATE_COUNTS names a directory.
bool counting();

// The numbers of a new image; where no file can be made they are kept nowhere, which is said once.
Counts open_counts(const std::string &key, const std::string &kernel, uint32_t blocks);

// Nobody counts there any more; the file stays.
void close_counts(Counts &counts);

}  // namespace sx
