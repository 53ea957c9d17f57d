// Handles and their settings.
#include "handle.h"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "host_blas.h"

using sx::cublas::with_handle;

namespace {

constexpr int kVersion[] = {SX_CUBLAS_VERSION};  // major, minor, patch

template <class T>
cublasStatus set(cublasHandle handle, T cublasContext::*member, T value) {
  return with_handle(handle, [&](cublasContext &h) {
    h.*member = value;
    return CUBLAS_STATUS_SUCCESS;
  });
}

template <class T>
cublasStatus get(cublasHandle handle, T cublasContext::*member, T *value) {
  return with_handle(handle, [&](cublasContext &h) {
    if (!value) return CUBLAS_STATUS_INVALID_VALUE;
    *value = h.*member;
    return CUBLAS_STATUS_SUCCESS;
  });
}

}  // namespace

bool sx::cublas::usable(const void *address, uint64_t elements, size_t size, const char *function) {
  if (elements == 0) return true;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const size_t alignment = size > 8 ? 8 : size;
  uint64_t bytes = 0;
  if (address && at % alignment == 0 && !__builtin_mul_overflow(elements, size, &bytes) && replace::reachable(address, bytes))
    return true;
  char line[256];
  snprintf(line, sizeof line, "SX0782: %s: an operand, %" PRIu64 " elements of %zu bytes at 0x%" PRIxPTR ", is not %s", function,
           elements, size, at, at % alignment ? "aligned" : "within one allocation of the device");
  replace::refuse(function, line);
  return false;
}

SX_API cublasStatus cublasCreate_v2(cublasHandle *handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = nullptr;
  if (sx::replace::enter()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!sx::replace::emulated()) {
    sx::replace::refuse("cublas", "SX0786: cuBLAS is not replaced on an AMD card yet: run with --replace cufft");
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (!sx::cublas::host_blas().complete) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = new (std::nothrow) cublasContext;
  if (!*handle) return CUBLAS_STATUS_ALLOC_FAILED;
  sx::replace::note_replaced("cublas", "the host's BLAS");
  return CUBLAS_STATUS_SUCCESS;
}

SX_API cublasStatus cublasDestroy_v2(cublasHandle handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

SX_API cublasStatus cublasSetStream_v2(cublasHandle handle, CUstream stream) { return set(handle, &cublasContext::stream, stream); }
SX_API cublasStatus cublasGetStream_v2(cublasHandle handle, CUstream *stream) { return get(handle, &cublasContext::stream, stream); }
SX_API cublasStatus cublasSetPointerMode_v2(cublasHandle handle, int mode) {
  if (mode != kPointerHost && mode != kPointerDevice) return CUBLAS_STATUS_INVALID_VALUE;
  return set(handle, &cublasContext::pointer_mode, mode);
}
SX_API cublasStatus cublasGetPointerMode_v2(cublasHandle handle, int *mode) { return get(handle, &cublasContext::pointer_mode, mode); }
// A math mode allows less precise products; these are never.
SX_API cublasStatus cublasSetMathMode(cublasHandle handle, int mode) { return set(handle, &cublasContext::math_mode, mode); }
SX_API cublasStatus cublasGetMathMode(cublasHandle handle, int *mode) { return get(handle, &cublasContext::math_mode, mode); }
SX_API cublasStatus cublasSetAtomicsMode(cublasHandle handle, int mode) { return set(handle, &cublasContext::atomics_mode, mode); }
SX_API cublasStatus cublasGetAtomicsMode(cublasHandle handle, int *mode) { return get(handle, &cublasContext::atomics_mode, mode); }
SX_API cublasStatus cublasSetSmCountTarget(cublasHandle handle, int count) { return set(handle, &cublasContext::sm_count, count); }
SX_API cublasStatus cublasGetSmCountTarget(cublasHandle handle, int *count) { return get(handle, &cublasContext::sm_count, count); }
// There is no workspace to need.
SX_API cublasStatus cublasSetWorkspace_v2(cublasHandle handle, void *, size_t) {
  return with_handle(handle, [](cublasContext &) { return CUBLAS_STATUS_SUCCESS; });
}

SX_API cublasStatus cublasGetVersion_v2(cublasHandle, int *version) {
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = kVersion[0] * 10000 + kVersion[1] * 100 + kVersion[2];
  return CUBLAS_STATUS_SUCCESS;
}

SX_API cublasStatus cublasGetProperty(int which, int *value) {
  if (!value || which < 0 || which > 2) return CUBLAS_STATUS_INVALID_VALUE;
  *value = kVersion[which];
  return CUBLAS_STATUS_SUCCESS;
}

SX_API cublasStatus cublasLoggerConfigure(int, int, int, const char *) { return CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasSetLoggerCallback(void *) { return CUBLAS_STATUS_SUCCESS; }

SX_API const char *cublasGetStatusName(int status) {
  switch (status) {
    case 0: return "CUBLAS_STATUS_SUCCESS";
    case 1: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 3: return "CUBLAS_STATUS_ALLOC_FAILED";
    case 7: return "CUBLAS_STATUS_INVALID_VALUE";
    case 8: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case 11: return "CUBLAS_STATUS_MAPPING_ERROR";
    case 13: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 14: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case 15: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case 16: return "CUBLAS_STATUS_LICENSE_ERROR";
    default: return "CUBLAS_STATUS_UNKNOWN";
  }
}
SX_API const char *cublasGetStatusString(int status) { return cublasGetStatusName(status); }
