// Host code of kernels: from the cache, or made by the service.
#pragma once
#include "code_object.h"
#include "module.h"

namespace sx {

// Name of the kernel's image in the cache: BLAKE2b-128, in hexadecimal, of the code object's bytes, a zero
// byte, the kernel's name, a zero byte, and "strict" or "plain", followed by " counts" if it counts and, if blocks were
// left out of it, by " entered " and those that were entered (`part`, tiers.cpp).
std::string image_key(const CodeObject &code, const std::string &kernel, bool strict, bool counts, const std::string &part = "");

// Finds the image or has it built, checks it and maps it.  Never throws; the error is in `image`, and is reported once
// on standard error.  If the compiler was stopped or ended, neither: `stopped` says how (SX0914, SX0905), or that the cache
// knows it of an earlier run (`known`).
struct Stopped {
  std::string line;
  bool known = false;
  explicit operator bool() const { return known || !line.empty(); }
};
void load_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image, Stopped &stopped);

// The same without optimisation, which takes less time.
void load_quick_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image);

// The same if it is in the cache; false if it is not.
bool cached_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image);

// The partial image that was made last, if the cache has it; `part`: the blocks that had been entered then.
bool cached_part(const CodeObject &code, const KernelInfo &kernel, std::string &part, HostImage &image);

// The cache's file of how warm the kernel became in earlier runs (tiers.cpp) with the baseline's code, or with the partial image
// of `part`; empty without a cache.
std::string warmth_path(const CodeObject &code, const KernelInfo &kernel, const std::string &part);

// Has it built for a kernel that runs meanwhile: nothing is reported, and an error is only that it is not there.  `part`:
// the blocks that have been entered, or empty for all of the kernel.
bool better_image(const CodeObject &code, const KernelInfo &kernel, const std::string &part, HostImage &image);

}  // namespace sx
