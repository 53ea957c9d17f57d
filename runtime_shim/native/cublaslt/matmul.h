// What is computed when a product's turn in its stream comes.
#pragma once
#include <vector>

#include "../cublas/host_blas.h"
#include "plan.h"

namespace sx::lt {

struct Arguments {
  const void *alpha, *beta, *a, *b, *c;
  void *d;
};

class Matmul {
 public:
  // Factors that are in the host's memory are read here.
  Matmul(const Plan &plan, const Arguments &arguments);
  void operator()();

 private:
  bool named_usable(int64_t index) const;
  template <class T>
  void run(int64_t index);
  template <class T>
  const T *operand(const Layout &layout, const char *from, int op, std::vector<T> &space, int64_t &ld, int &blas_op);
  template <class T>
  T factor(int which, int64_t row) const;

  Plan p_;
  Arguments g_;
  alignas(16) char kept_[2][16] = {};
};

}  // namespace sx::lt
