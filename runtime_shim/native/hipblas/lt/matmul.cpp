// cublasLtMatmul on a card.  A plain product is hipBLAS's, which needs no workspace and has kernels for all types; what it
// does not have, an epilogue or a D beside C, is hipBLASLt's, whose kernels for RDNA3 are for few types.
#include <algorithm>
#include <climits>

#include "hipblaslt.h"
#include "library.h"

using namespace sx;
using namespace sx::lt;

namespace {

// Whether hipBLAS has it, if D is C or C does not count.
bool plain(const Plan &p) {
  if (p.o.epilogue != kDefault || (p.o.pointer_mode != kHost && p.o.pointer_mode != kDevice)) return false;
  if (p.o.a_scale || p.o.b_scale || p.o.c_scale || p.o.d_scale || p.o.amax) return false;
  for (const Layout *l : {&p.a, &p.b, &p.c, &p.d})
    if (l->order != kOrderCol || l->type == kR8E4M3 || l->type == kR8E5M2) return false;
  return p.kind != Kind::Integers || p.d.type == kR32I;
}
bool same(const Layout &c, const Layout &d) { return c.ld == d.ld && (d.batch <= 1 || c.batch_step == d.batch_step); }

template <class N>
cublasStatus product(void *engine, const Plan &p, const hipblas::Operands &o, bool wide) {
  using namespace sx::hipblas;
  auto n = [](int64_t value) { return static_cast<typename N::Cuda>(value); };
  const Layout &a = p.a, &b = p.b, &d = p.d;
  if (d.batch_mode == kBatchPointers) {
    static const Entry entry("cublasLtMatmul", "hipblasGemmBatchedEx", true, wide);
    return Call<Op, Op, N, N, N, P, P, Type, N, P, Type, N, P, P, Type, N, N, Compute, Algo>::pass(
        engine, entry, p.o.op_a, p.o.op_b, n(p.m), n(p.n), n(p.k), o.alpha, o.a, a.type, n(a.ld), o.b, b.type, n(b.ld), o.beta, o.d,
        d.type, n(d.ld), n(d.batch), p.o.compute, 0);
  }
  static const Entry entry("cublasLtMatmul", "hipblasGemmStridedBatchedEx", true, wide);
  return Call<Op, Op, N, N, N, P, P, Type, N, L, P, Type, N, L, P, P, Type, N, L, N, Compute, Algo>::pass(
      engine, entry, p.o.op_a, p.o.op_b, n(p.m), n(p.n), n(p.k), o.alpha, o.a, a.type, n(a.ld), a.batch_step, o.b, b.type, n(b.ld),
      b.batch_step, o.beta, o.d, d.type, n(d.ld), d.batch_step, n(d.batch), p.o.compute, 0);
}

}  // namespace

cublasStatus sx::lt::possible(cublas::Mark &handle, const Plan &p) {
  if (plain(p) && same(p.c, p.d)) return CUBLAS_STATUS_SUCCESS;
  std::lock_guard<std::mutex> guard(handle.calls);
  return hipblas::light_possible(handle, p, 0);
}

SX_API cublasStatus cublasLtMatmul(void *handle, const Operation *o, const void *alpha, const void *a, const Layout *la, const void *b,
                                   const Layout *lb, const void *beta, const void *c, const Layout *lc, void *d, const Layout *ld,
                                   const Algorithm *algorithm, void *workspace, size_t workspace_size, CUstream stream) {
  return cublas::with_any_handle(handle, [&]() -> cublasStatus {
    Plan p;
    if (cublasStatus status = make_plan(o, la, lb, lc, ld, p)) return status;
    if (!alpha || (!beta && o->pointer_mode != kAlphaVectorBetaZero) || !known(algorithm)) return CUBLAS_STATUS_INVALID_VALUE;
    if (p.m == 0 || p.n == 0 || p.d.batch == 0) return CUBLAS_STATUS_SUCCESS;
    const bool unused = c_unused(p, beta);
    if (!a || !b || !d || !(c || unused)) return CUBLAS_STATUS_INVALID_VALUE;
    if (cublasStatus status = hipblas::check_stream("cublasLtMatmul", stream)) return status;
    auto &mark = *static_cast<cublas::Mark *>(handle);
    const hipblas::Operands all{alpha, beta, a, b, c ? c : d, d, workspace, workspace ? workspace_size : 0};
    std::lock_guard<std::mutex> guard(mark.calls);
    if (!plain(p) || !(unused || (c == d && same(p.c, p.d)))) return hipblas::light_matmul(mark, p, all, stream);
    if (cublasStatus status = hipblas::prepare(mark.engine, stream, o->pointer_mode, 0)) return status;
    const int64_t largest = std::max({p.m, p.n, p.k, p.a.ld, p.b.ld, p.d.ld});
    return largest > INT_MAX ? product<hipblas::I64>(mark.engine, p, all, true) : product<hipblas::I32>(mark.engine, p, all, false);
  });
}
