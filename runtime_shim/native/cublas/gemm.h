// Products of matrices of any supported types, one or many.
#pragma once
#include "handle.h"

namespace sx::cublas {

// C = alpha op(A) op(B) + beta C.  Columns are contiguous.
struct Product {
  int op_a, op_b;
  int64_t m, n, k;
  int a_type, b_type, c_type, compute;
  int64_t lda, ldb, ldc;
};

// The operands of a batch: arrays a distance apart, or at the addresses that arrays on the device hold.
struct Operands {
  const void *a, *b;
  void *c;
  int64_t count = 1;
  int64_t a_step = 0, b_step = 0, c_step = 0;  // in elements
  bool pointers = false;
};

// Types that do not go together are CUBLAS_STATUS_NOT_SUPPORTED, with one line that names them.
cublasStatus multiply(cublasHandle handle, const char *name, const Product &product, const void *alpha, const void *beta,
                      const Operands &operands);

}  // namespace sx::cublas
