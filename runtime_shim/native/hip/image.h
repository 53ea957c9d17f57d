// Host code of kernels: from the cache, or made by the service.
#pragma once
#include "code_object.h"
#include "module.h"

namespace sx {

// Name of the kernel's image in the cache: BLAKE2b-128, in hexadecimal, of the code object's bytes, a zero
// byte, the kernel's name, a zero byte, and "strict" or "plain", followed by " counts" if it counts.
std::string image_key(const CodeObject &code, const std::string &kernel, bool strict, bool counts);

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

// Has it built for a kernel that runs meanwhile: nothing is reported, and an error is only that it is not there.
bool better_image(const CodeObject &code, const KernelInfo &kernel, HostImage &image);

}  // namespace sx
