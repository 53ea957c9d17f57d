// The behaviour of what is exported but not implemented.
#pragma once
#include <atomic>

#include "driver.h"

namespace sx {

// CUDA_ERROR_NOT_SUPPORTED, with a line on stderr the first time (`said`).
int unsupported(const char *name, std::atomic<bool> &said);

// The same for what a function does not take among its parameters: `what`, a literal, is named once.
CUresult refuse(const char *what);

}  // namespace sx
