// Products by hipBLASLt: those with an epilogue, or with a D beside C.
#pragma once
#include "handle.h"
#include "plan.h"

namespace sx::hipblas {

struct Operands {
  const void *alpha, *beta, *a, *b, *c;
  void *d, *workspace;
  size_t workspace_size;
};

// CUBLAS_STATUS_NOT_SUPPORTED, with a line, where no hipBLASLt is there, where what the plan has cannot be told to it, or
// where it has no kernel.  Under the handle's mutex.
cublasStatus light_possible(cublas::Mark &handle, const lt::Plan &plan, size_t workspace);
cublasStatus light_matmul(cublas::Mark &handle, const lt::Plan &plan, const Operands &operands, CUstream stream);

}  // namespace sx::hipblas
