// A product as its descriptors describe it: checked, and what its types are computed in.
#pragma once
#include "lt_abi.h"

namespace sx::cublas {
struct Mark;
}

namespace sx::lt {

// What BLAS computes in.  Integers: sums of bytes' products, which double holds exactly.
enum class Kind { Float, Double, Complex, DoubleComplex, Integers };

// D = epilogue(alpha op(A) op(B) + beta C)
struct Plan {
  Operation o;
  Layout a, b, c, d;
  int64_t m, n, k;
  Kind kind;
  int bias_type, aux_type;
};

// CUBLAS_STATUS_INVALID_VALUE: descriptors that contradict each other; CUBLAS_STATUS_NOT_SUPPORTED: what is not
// implemented, with a line.  Pointers are not looked at.
cublasStatus make_plan(const Operation *o, const Layout *a, const Layout *b, const Layout *c, const Layout *d, Plan &plan);

// Whether a plan can be carried out here; CUBLAS_STATUS_NOT_SUPPORTED, with a line, where it cannot.
cublasStatus possible(cublas::Mark &handle, const Plan &plan);

// Whether the host knows that C does not count.
bool c_unused(const Plan &plan, const void *beta);

// Whether the numbers that a layout has go together.
bool valid(const Layout &layout);

// One line, once for each text.
cublasStatus not_supported(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace sx::lt
