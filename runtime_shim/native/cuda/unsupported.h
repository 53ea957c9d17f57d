// The behaviour of an entry point that is exported but not implemented.
#pragma once
#include <atomic>

namespace sx {

// CUDA_ERROR_NOT_SUPPORTED, with a line on stderr the first time (`said`).
int unsupported(const char *name, std::atomic<bool> &said);

}  // namespace sx
