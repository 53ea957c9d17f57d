// The numbers that transforms of a length need, made once and shared.
#pragma once
#include <memory>
#include <vector>

#include "lines.h"

namespace sx::fft {

template <class T>
struct Tables {
  Line<T> line{};
  std::vector<Pass<T>> passes;
  std::vector<std::vector<T>> numbers;
  std::shared_ptr<const Tables> inner, columns, rows;
};

// Of a length of at least 1; those that are in use are shared.  Raises std::bad_alloc and std::length_error.
template <class T>
std::shared_ptr<const Tables<T>> tables(Size length);

extern template std::shared_ptr<const Tables<float>> tables(Size);
extern template std::shared_ptr<const Tables<double>> tables(Size);

// exp(-2 pi i k / n) for 0 <= k < n, rounded from 64 bits of precision.
class Roots {
 public:
  explicit Roots(Size n);
  template <class T>
  void put(Size k, T *to) const {
    const Pair &high = high_[k >> shift_], &low = low_[k & ((Size{1} << shift_) - 1)];
    to[0] = static_cast<T>(high.re * low.re - high.im * low.im);
    to[1] = static_cast<T>(high.re * low.im + high.im * low.re);
  }

 private:
  struct Pair {
    long double re, im;
  };
  unsigned shift_ = 0;
  std::vector<Pair> high_, low_;
};

}  // namespace sx::fft
