// Products by the host's BLAS: the call.
#include <cstring>
#include <limits>

#include "../cublas/handle.h"
#include "../cublas/numbers.h"
#include "matmul.h"

using namespace sx;
using namespace sx::lt;
using sx::cublas::usable;

namespace {

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

}  // namespace

SX_API cublasStatus cublasLtMatmul(void *handle, const Operation *o, const void *alpha, const void *a, const Layout *la, const void *b,
                                   const Layout *lb, const void *beta, const void *c, const Layout *lc, void *d, const Layout *ld,
                                   const Algorithm *algorithm, void *, size_t, CUstream stream) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    Plan p;
    if (cublasStatus status = make_plan(o, la, lb, lc, ld, p)) return status;
    if (!alpha || (!beta && o->pointer_mode != kAlphaVectorBetaZero)) return CUBLAS_STATUS_INVALID_VALUE;
    if (!known(algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
    if (p.m == 0 || p.n == 0 || p.d.batch == 0) return CUBLAS_STATUS_SUCCESS;
    const Arguments g{alpha, beta, a, b, c_unused(p, beta) && !c ? d : c, d};
    if (!a || !b || !d || !g.c) return CUBLAS_STATUS_INVALID_VALUE;
    if (!reachable(p.a, a) || !reachable(p.b, b) || !(c_unused(p, beta) || reachable(p.c, c)) || !reachable(p.d, d, true) ||
        !vectors_reachable(p) || !factors_reachable(p, g))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return cublas::submit(stream, Matmul(p, g));
  });
}

// Whatever has a plan can be computed.
cublasStatus sx::lt::possible(cublas::Mark &, const Plan &) { return CUBLAS_STATUS_SUCCESS; }
