// Products: the call, and the one algorithm that it has.
#include <cstring>
#include <limits>

#include "../cublas/handle.h"
#include "../cublas/numbers.h"
#include "matmul.h"

using namespace sx;
using namespace sx::lt;
using sx::cublas::usable;

namespace {

constexpr uint32_t kMark = 0x53584c54;
constexpr int kConfigurations = 9;

Algorithm the_algorithm() {
  Algorithm made{};
  made.mark = kMark;
  made.id = 0;
  made.config[2] = 1;  // no split of k
  return made;
}

// Elements from the first to the last of all matrices of a batch.
uint64_t extent(const Layout &l) {
  const auto rows = static_cast<int64_t>(l.rows), columns = static_cast<int64_t>(l.columns);
  const uint64_t one = l.order == kOrderRow ? cublas::matrix_extent(columns, rows, l.ld) : cublas::matrix_extent(rows, columns, l.ld);
  return cublas::batch_extent(one, l.batch, l.batch_step);
}

bool reachable(const Layout &l, const void *at, bool write = false) {
  if (l.batch_mode == kBatchPointers) return usable(at, static_cast<uint64_t>(l.batch), sizeof(void *), "cublasLtMatmul");
  if (l.batch > 1 && l.batch_step < 0) return false;
  return usable(at, extent(l), cublas::size_of(l.type), "cublasLtMatmul", write);
}

bool vectors_reachable(const Plan &p) {
  const auto rows = static_cast<uint64_t>(p.m), columns = static_cast<uint64_t>(p.n);
  auto all = [&p](uint64_t one, int64_t step) { return cublas::batch_extent(one, p.d.batch, step); };
  if (p.d.batch > 1 && (p.o.bias_step < 0 || p.o.aux_step < 0)) return false;
  const char *name = "cublasLtMatmul";
  const unsigned e = p.o.epilogue;
  if (e & (kBias | kBiasGradient | kBiasGradientA | kBiasGradientB)) {
    const uint64_t length = e & kBiasGradientB ? columns : rows;
    if (!usable(p.o.bias, all(length, p.o.bias_step), cublas::size_of(p.bias_type), name, !(e & kBias))) return false;
  }
  if (e & kAux) {
    const uint64_t one = cublas::matrix_extent(p.m, p.n, p.o.aux_ld);
    const bool bits = e & (kRelu | kDRelu);
    const uint64_t elements = all(one, p.o.aux_step);
    if (!usable(p.o.aux, bits ? elements / 8 + (elements % 8 != 0) : elements, bits ? 1 : cublas::size_of(p.aux_type), name,
                !(e & (kDRelu | kDGelu)))) return false;
  }
  auto scale = [&](const void *at, bool vector, uint64_t length) { return !at || usable(at, vector ? length : 1, sizeof(float), name); };
  return scale(p.o.a_scale, p.o.a_scale_mode == kScaleOuterVector, rows) && scale(p.o.b_scale, p.o.b_scale_mode == kScaleOuterVector, columns) &&
         scale(p.o.c_scale, false, 1) && scale(p.o.d_scale, false, 1) &&
         (!p.o.amax || usable(p.o.amax, 1, sizeof(float), name, true));
}

bool factors_reachable(const Plan &p, const Arguments &g) {
  const size_t size = cublas::size_of(p.o.scale);
  const auto rows = static_cast<uint64_t>(p.m);
  switch (p.o.pointer_mode) {
    case kHost: return true;
    case kDevice: return usable(g.alpha, 1, size, "cublasLtMatmul") && usable(g.beta, 1, size, "cublasLtMatmul");
    case kDeviceVector: return usable(g.alpha, rows, size, "cublasLtMatmul") && usable(g.beta, rows, size, "cublasLtMatmul");
    default: return usable(g.alpha, rows, size, "cublasLtMatmul");
  }
}

// Whether the host knows that C does not count.
bool c_unused(const Plan &p, const void *beta) {
  if (p.o.pointer_mode == kAlphaVectorBetaZero) return true;
  if (p.o.pointer_mode != kHost && p.o.pointer_mode != kAlphaVectorBetaHost) return false;
  switch (p.o.scale) {
    case kR16F: return (*static_cast<const uint16_t *>(beta) & 0x7fff) == 0;
    case kR32I: return *static_cast<const int32_t *>(beta) == 0;
    case kR32F: return *static_cast<const float *>(beta) == 0;
    case kC32F: return *static_cast<const Float2 *>(beta) == Float2();
    case kR64F: return *static_cast<const double *>(beta) == 0;
    default: return *static_cast<const Double2 *>(beta) == Double2();
  }
}

}  // namespace

SX_API cublasStatus cublasLtMatmul(void *handle, const Operation *o, const void *alpha, const void *a, const Layout *la, const void *b,
                                   const Layout *lb, const void *beta, const void *c, const Layout *lc, void *d, const Layout *ld,
                                   const Algorithm *algorithm, void *, size_t, CUstream stream) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    Plan p;
    if (cublasStatus status = make_plan(o, la, lb, lc, ld, p)) return status;
    if (!alpha || (!beta && o->pointer_mode != kAlphaVectorBetaZero)) return CUBLAS_STATUS_INVALID_VALUE;
    if (algorithm && (algorithm->mark != kMark || algorithm->id != 0)) return CUBLAS_STATUS_INVALID_VALUE;
    if (p.m == 0 || p.n == 0 || p.d.batch == 0) return CUBLAS_STATUS_SUCCESS;
    const Arguments g{alpha, beta, a, b, c_unused(p, beta) && !c ? d : c, d};
    if (!a || !b || !d || !g.c) return CUBLAS_STATUS_INVALID_VALUE;
    if (!reachable(p.a, a) || !reachable(p.b, b) || !(c_unused(p, beta) || reachable(p.c, c)) || !reachable(p.d, d, true) ||
        !vectors_reachable(p) || !factors_reachable(p, g))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return cublas::submit(stream, Matmul(p, g));
  });
}

SX_API cublasStatus cublasLtMatmulAlgoGetHeuristic(void *handle, const Operation *o, const Layout *a, const Layout *b, const Layout *c,
                                                   const Layout *d, const Preference *preference, int wanted, Heuristic *results,
                                                   int *found) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    if (found) *found = 0;
    if (!preference || !results || !found || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    Plan p;
    if (cublasStatus status = make_plan(o, a, b, c, d, p)) return status;
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
    const cublasStatus status = make_plan(o, a, b, c, d, p);
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
