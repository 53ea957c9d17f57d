// Handles and their settings.
#include "handle.h"

#include <cinttypes>
#include <cstdio>
#include <string>

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

SX_API cublasStatus cublasCreate_v2(cublasHandle *handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = nullptr;
  if (const cublasStatus status = sx::cublas::ready()) return status;
  return sx::cublas::Handles<cublasContext>::make(handle);
}

SX_API cublasStatus cublasDestroy_v2(cublasHandle handle) {
  if (!handle || handle->live != sx::cublas::kLive || handle->owner != sx::cublas::kOwnBlas) return CUBLAS_STATUS_NOT_INITIALIZED;
  sx::cublas::Handles<cublasContext>::unmake(handle);
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

SX_API const char *cublasGetStatusName(int status) { return sx::cublas::status_name(status); }
SX_API const char *cublasGetStatusString(int status) { return sx::cublas::status_name(status); }

// Floating-point emulation would compute with narrower types; products are plain here, whatever is set.
#define SX_SETTING(name, type, member)                                                                                      \
  SX_API cublasStatus cublasSet##name(cublasHandle handle, type value) { return set(handle, &cublasContext::member, value); } \
  SX_API cublasStatus cublasGet##name(cublasHandle handle, type *value) { return get(handle, &cublasContext::member, value); }
SX_SETTING(EmulationStrategy, int, emulation_strategy)
SX_SETTING(EmulationSpecialValuesSupport, int, special_values)
SX_SETTING(FixedPointEmulationMantissaControl, int, mantissa_control)
SX_SETTING(FixedPointEmulationMaxMantissaBitCount, int, mantissa_bits)
SX_SETTING(FixedPointEmulationMantissaBitOffset, int, mantissa_offset)
SX_SETTING(FixedPointEmulationMantissaBitCountPointer, int32_t *, mantissa_count)
// No header declares it, and NVIDIA's cuSOLVER calls it with a handle and a number.  It changes nothing here: what
// cuSOLVER computes with the handle afterwards is what the documented functions give.
SX_API cublasStatus cublasSetEnvironmentMode(cublasHandle handle, int mode) { return set(handle, &cublasContext::environment_mode, mode); }
#undef SX_SETTING
