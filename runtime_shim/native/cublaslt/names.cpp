// Every name of cuBLASLt: a weak function that says once that it is not there, unless another file defines it.
#include <string>

#include "../cublas/cublas_abi.h"
#include "device.h"

namespace {

cublasStatus refused(const char *name) {
  sx::replace::refuse(name, std::string("SX0780: ") + name + " is not implemented; it returns 15 (CUBLAS_STATUS_NOT_SUPPORTED)");
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace

// Callers pass arguments; none is looked at.
#define F(name) \
  SX_API __attribute__((weak)) cublasStatus name() { return refused(#name); }
#include "names.inc"
#undef F
