// The baseline tier: kernels that run at once, built of stencils, until the compiler's code is there.
#pragma once
#include "code_object.h"
#include "module.h"

#include <string>

namespace sx {

// Builds the kernel of stencils; the service makes those that are missing.  False where this tier has no code for the
// kernel, with a reason in `why`.  Not for strict mode.  `wait`: however many stencils are missing; otherwise only while
// that is less work than to compile the kernel.
bool load_baseline(const CodeObject &code, const KernelInfo &kernel, bool wait, HostImage &image, std::string &why);

}  // namespace sx
