// The library: handles, versions, log.
#include <atomic>

#include "../cublas/handle.h"

using namespace sx;

namespace {

constexpr size_t kVersion[] = {SX_CUBLAS_VERSION};  // major, minor, patch
std::atomic<size_t> g_capacity{8192};

}  // namespace

SX_API cublasStatus cublasLtCreate(void **handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = nullptr;
  if (const cublasStatus status = cublas::ready()) return status;
  cublas::Mark *made = nullptr;
  const cublasStatus status = cublas::Handles<cublas::Mark>::make(&made);
  *handle = made;
  return status;
}

SX_API cublasStatus cublasLtDestroy(void *handle) {
  auto *mark = static_cast<cublas::Mark *>(handle);
  if (!mark || mark->live != cublas::kLive) return CUBLAS_STATUS_NOT_INITIALIZED;
  // One that cublasCreate made is that library's to destroy.
  if (mark->owner != cublas::kOwnLt) return CUBLAS_STATUS_INVALID_VALUE;
  cublas::Handles<cublas::Mark>::unmake(mark);
  return CUBLAS_STATUS_SUCCESS;
}

SX_API size_t cublasLtGetVersion() { return kVersion[0] * 10000 + kVersion[1] * 100 + kVersion[2]; }
SX_API size_t cublasLtGetCudartVersion() { return kVersion[0] * 1000 + kVersion[1] * 10; }
SX_API cublasStatus cublasLtGetProperty(int which, int *value) {
  if (!value || which < 0 || which > 2) return CUBLAS_STATUS_INVALID_VALUE;
  *value = static_cast<int>(kVersion[which]);
  return CUBLAS_STATUS_SUCCESS;
}
SX_API const char *cublasLtGetStatusName(int status) { return cublas::status_name(status); }
SX_API const char *cublasLtGetStatusString(int status) { return cublas::status_name(status); }

// There is no log of calls, and no cache: nothing is searched for.
SX_API cublasStatus cublasLtLoggerSetCallback(void *) { return CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasLtLoggerSetFile(void *) { return CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasLtLoggerOpenFile(const char *) { return CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasLtLoggerSetLevel(int level) { return level < 0 || level > 5 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasLtLoggerSetMask(int) { return CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasLtLoggerForceDisable() { return CUBLAS_STATUS_SUCCESS; }
SX_API cublasStatus cublasLtHeuristicsCacheGetCapacity(size_t *capacity) {
  if (!capacity) return CUBLAS_STATUS_INVALID_VALUE;
  *capacity = g_capacity;
  return CUBLAS_STATUS_SUCCESS;
}
SX_API cublasStatus cublasLtHeuristicsCacheSetCapacity(size_t capacity) {
  g_capacity = capacity;
  return CUBLAS_STATUS_SUCCESS;
}
SX_API unsigned cublasLtDisableCpuInstructionsSetMask(unsigned) { return 0; }
