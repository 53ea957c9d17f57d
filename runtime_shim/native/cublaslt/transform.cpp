// C = alpha op(A) + beta op(B), from one type and order to another.
#include <cmath>

#include "../cublas/handle.h"
#include "../cublas/numbers.h"
#include "plan.h"

using namespace sx;
using namespace sx::lt;

namespace {

bool known(const Layout &l) {
  const int t = l.type;
  return t == kR32F || t == kR64F || t == kR16F || t == kR16BF || t == kR8I || t == kR32I;
}

struct Source {
  const void *at;
  Layout layout;
  int op;
  double get(int64_t batch, int64_t i, int64_t j) const {
    if (op) std::swap(i, j);
    const int64_t element = batch * layout.batch_step + (layout.order == kOrderRow ? i * layout.ld + j : j * layout.ld + i);
    double value = 0;
    cublas::widen(static_cast<const char *>(at) + element * static_cast<int64_t>(cublas::size_of(layout.type)), layout.type, 1, 1, &value);
    return value;
  }
};

double number(const void *at, int type) {
  double value = 0;
  cublas::widen(static_cast<const char *>(at), type, 1, 1, &value);
  return value;
}

bool reachable(const void *at, const Layout &l, bool write = false) {
  const auto rows = static_cast<int64_t>(l.rows), columns = static_cast<int64_t>(l.columns);
  const uint64_t one = l.order == kOrderRow ? cublas::matrix_extent(columns, rows, l.ld) : cublas::matrix_extent(rows, columns, l.ld);
  if (l.batch > 1 && l.batch_step < 0) return false;
  return cublas::usable(at, cublas::batch_extent(one, l.batch, l.batch_step), cublas::size_of(l.type), "cublasLtMatrixTransform", write);
}

}  // namespace

SX_API cublasStatus cublasLtMatrixTransform(void *handle, const Transform *t, const void *alpha, const void *a, const Layout *la,
                                            const void *beta, const void *b, const Layout *lb, void *c, const Layout *lc,
                                            CUstream stream) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    if (!t || !lc || !c || (a && (!la || !alpha)) || (b && (!lb || !beta)) || (!a && !b)) return CUBLAS_STATUS_INVALID_VALUE;
    if (t->op_a < 0 || t->op_a > 2 || t->op_b < 0 || t->op_b > 2) return CUBLAS_STATUS_INVALID_VALUE;
    if (t->scale != kR32F && t->scale != kR64F && t->scale != kR16F && t->scale != kR32I)
      return not_supported("a transform with scale type %d is not implemented", t->scale);
    if (t->pointer_mode != kHost && t->pointer_mode != kDevice)
      return not_supported("a transform with pointer mode %d is not implemented", t->pointer_mode);
    Source sources[2] = {{a, a ? *la : *lc, a ? t->op_a : 0}, {b, b ? *lb : *lc, b ? t->op_b : 0}};
    const Layout target = *lc;
    for (const Layout *l : std::initializer_list<const Layout *>{&sources[0].layout, &sources[1].layout, &target}) {
      if (l->order != kOrderCol && l->order != kOrderRow)
        return not_supported("memory order %d%s is not implemented", l->order, l->order == 2 ? " (COL32)" : "");
      if (!known(*l)) return not_supported("a transform of data type %d is not implemented", l->type);
      if (l->plane_offset || l->batch_mode != kBatchStrided) return not_supported("a transform of this layout is not implemented");
      if (!valid(*l) || l->batch != target.batch) return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (const Source &s : sources) {
      const uint64_t rows = s.op ? s.layout.columns : s.layout.rows, columns = s.op ? s.layout.rows : s.layout.columns;
      if (s.at && (rows != target.rows || columns != target.columns)) return CUBLAS_STATUS_INVALID_VALUE;
      if (s.at && !reachable(s.at, s.layout)) return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    if (!reachable(c, target, true)) return CUBLAS_STATUS_EXECUTION_FAILED;
    const bool device = t->pointer_mode == kDevice;
    for (const void *factor : {a ? alpha : nullptr, b ? beta : nullptr})
      if (device && factor && !cublas::usable(factor, 1, cublas::size_of(t->scale), "cublasLtMatrixTransform"))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    const double kept[2] = {device || !a ? 0 : number(alpha, t->scale), device || !b ? 0 : number(beta, t->scale)};
    return cublas::submit(stream, [=, first = sources[0], second = sources[1], scale = t->scale] {
      const double x = device && a ? number(alpha, scale) : kept[0], y = device && b ? number(beta, scale) : kept[1];
      const auto rows = static_cast<int64_t>(target.rows), columns = static_cast<int64_t>(target.columns);
      const auto size = static_cast<int64_t>(cublas::size_of(target.type));
      for (int64_t batch = 0; batch < target.batch; ++batch)
        for (int64_t j = 0; j < columns; ++j)
          for (int64_t i = 0; i < rows; ++i) {
            const double value = (first.at && x != 0 ? x * first.get(batch, i, j) : 0) + (second.at && y != 0 ? y * second.get(batch, i, j) : 0);
            const int64_t element = batch * target.batch_step + (target.order == kOrderRow ? i * target.ld + j : j * target.ld + i);
            char *to = static_cast<char *>(c) + element * size;
            if (target.type == kR32I) {
              const auto whole = static_cast<int32_t>(std::clamp(std::nearbyint(value), -2147483648.0, 2147483647.0));
              memcpy(to, &whole, sizeof whole);
            } else {
              cublas::store(value, target.type, to);
            }
          }
    });
  });
}
