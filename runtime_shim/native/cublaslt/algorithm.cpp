// The one algorithm that products have.
#include <cstring>

#include "../cublas/handle.h"
#include "plan.h"

using namespace sx;
using namespace sx::lt;

namespace {

constexpr int kConfigurations = 9;

Algorithm the_algorithm() {
  Algorithm made{};
  made.mark = kMark;
  made.id = 0;
  made.config[2] = 1;  // no split of k
  return made;
}

}  // namespace

SX_API cublasStatus cublasLtMatmulAlgoGetHeuristic(void *handle, const Operation *o, const Layout *a, const Layout *b, const Layout *c,
                                                   const Layout *d, const Preference *preference, int wanted, Heuristic *results,
                                                   int *found) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    if (found) *found = 0;
    if (!preference || !results || !found || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    Plan p;
    if (cublasStatus status = make_plan(o, a, b, c, d, p)) return status;
    if (cublasStatus status = possible(*static_cast<cublas::Mark *>(handle), p)) return status;
    results[0] = {the_algorithm(), 0, CUBLAS_STATUS_SUCCESS, 1.0f, {}};
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
  });
}

SX_API cublasStatus cublasLtMatmulAlgoCheck(void *handle, const Operation *o, const Layout *a, const Layout *b, const Layout *c,
                                            const Layout *d, const Algorithm *algorithm, Heuristic *result) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    if (!algorithm || !result || algorithm->mark != kMark) return CUBLAS_STATUS_INVALID_VALUE;
    Plan p;
    cublasStatus status = make_plan(o, a, b, c, d, p);
    if (status == CUBLAS_STATUS_SUCCESS) status = possible(*static_cast<cublas::Mark *>(handle), p);
    const Algorithm kept = *algorithm;
    *result = {kept, 0, status, 1.0f, {}};
    return status;
  });
}

SX_API cublasStatus cublasLtMatmulAlgoGetIds(void *handle, int, int, int, int, int, int, int wanted, int *ids, int *found) {
  return cublas::with_any_handle(handle, [&] {
    if (!ids || !found || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    ids[0] = 0;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
  });
}

SX_API cublasStatus cublasLtMatmulAlgoInit(void *handle, int, int, int, int, int, int, int id, Algorithm *algorithm) {
  return cublas::with_any_handle(handle, [&] {
    if (!algorithm || id != 0) return CUBLAS_STATUS_INVALID_VALUE;
    *algorithm = the_algorithm();
    return CUBLAS_STATUS_SUCCESS;
  });
}

namespace {

// 0: the number, 7 and 8: shapes of 16 bits, else words.
size_t config_size(int attribute) {
  if (attribute < 0 || attribute >= kConfigurations) return 0;
  return attribute == 7 || attribute == 8 ? 2 : 4;
}

}  // namespace

SX_API cublasStatus cublasLtMatmulAlgoConfigSetAttribute(Algorithm *algorithm, int attribute, const void *from, size_t size) {
  if (!algorithm || !from || !config_size(attribute) || size != config_size(attribute)) return CUBLAS_STATUS_INVALID_VALUE;
  if (attribute == 0) memcpy(&algorithm->id, from, size);
  else memcpy(&algorithm->config[attribute], from, size);
  return CUBLAS_STATUS_SUCCESS;
}

SX_API cublasStatus cublasLtMatmulAlgoConfigGetAttribute(const Algorithm *algorithm, int attribute, void *to, size_t size,
                                                         size_t *written) {
  const size_t own = config_size(attribute);
  if (!algorithm || !own || (size == 0 ? !written : !to || size != own)) return CUBLAS_STATUS_INVALID_VALUE;
  if (size) memcpy(to, attribute == 0 ? &algorithm->id : &algorithm->config[attribute], size);
  if (written) *written = own;
  return CUBLAS_STATUS_SUCCESS;
}

SX_API cublasStatus cublasLtMatmulAlgoCapGetAttribute(const Algorithm *algorithm, int attribute, void *to, size_t size, size_t *written) {
  if (!algorithm || algorithm->mark != kMark) return CUBLAS_STATUS_INVALID_VALUE;
  uint64_t value = 0;
  size_t own = 4;
  switch (attribute) {
    case 3:
    case 4: value = 1; break;            // batches; D beside C
    case 6:
    case 13: own = size ? 4 : 0; break;  // no tiles, no stages
    case 11: value = 31; break;          // all pointer modes
    case 12: value = 0x3ff; break;       // all epilogues
    case 15: own = 8, value = 1 | 2 << 8; break;  // FMA, sums in 32 bits
    case 0: case 1: case 2: case 5: case 7: case 10: case 14: break;
    case 16: case 17: case 18: case 19: value = 1; break;  // alignments in bytes
    default: return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (size == 0 ? !written : !to || size < own) return CUBLAS_STATUS_INVALID_VALUE;
  if (size) memcpy(to, &value, own);
  if (written) *written = own;
  return CUBLAS_STATUS_SUCCESS;
}
