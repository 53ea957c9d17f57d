// Symmetric, Hermitian and triangular matrices of which a triangle is stored: dense, packed or as bands; with vectors.
#pragma once
#include <vector>

#include "vectors.h"

namespace sx::cublas {

enum class Form { Dense, Packed, Band };

// The triangle of an n x n matrix: `lower` or not, with k diagonals beside the main one if it is a band.
template <class T>
struct Triangle {
  T *a;
  Form form;
  int uplo;  // cuBLAS's: 0 lower, 1 upper
  int64_t n, ld, k;

  bool lower() const { return uplo == 0; }
  bool valid() const {
    if (uplo < 0 || uplo > 1 || n < 0) return false;
    if (form == Form::Dense) return ld >= std::max<int64_t>(1, n);
    return form == Form::Packed || (k >= 0 && ld > k);
  }
  bool reachable(const char *name) const {
    const auto order = static_cast<uint64_t>(n);
    const uint64_t packed = order % 2 ? times(order, order / 2 + 1) : times(order / 2, order + 1);
    const uint64_t extent = form == Form::Packed ? packed : matrix_extent(form == Form::Band ? k + 1 : n, n, ld);
    return usable(a, extent, sizeof(T), name, !std::is_const_v<T>);
  }
  bool holds(int64_t i, int64_t j) const {
    if (lower() ? i < j : i > j) return false;
    return form != Form::Band || std::abs(i - j) <= k;
  }
  T &at(int64_t i, int64_t j) const {
    switch (form) {
      case Form::Packed: return a[lower() ? i + j * (2 * n - j - 1) / 2 : i + j * (j + 1) / 2];
      case Form::Band: return a[(lower() ? i - j : k + i - j) + j * ld];
      default: return a[i + j * ld];
    }
  }
  // An element of the whole matrix.
  std::remove_const_t<T> whole(int64_t i, int64_t j, bool hermitian) const {
    using V = std::remove_const_t<T>;
    if (holds(i, j)) return hermitian && i == j ? V(std::real(at(i, j))) : at(i, j);
    if (!holds(j, i)) return V();
    return hermitian ? conjugate(at(j, i)) : at(j, i);
  }
};

template <class T>
std::vector<T> gathered(const T *x, int64_t n, int64_t inc) {
  std::vector<T> v(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) v[static_cast<size_t>(i)] = element(x, n, inc, i);
  return v;
}

// y = alpha A x + beta y
template <class T>
cublasStatus do_symmetric_mv(cublasHandle handle, const char *name, const Triangle<const T> &s, bool hermitian, const T *alpha, const T *x,
                             int64_t incx, const T *beta, T *y, int64_t incy) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!s.valid() || !incx || !incy || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (s.n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!s.reachable(name) || !vector_usable(x, s.n, incx, name) || !vector_usable(y, s.n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      const T f = fa.get(), g = fb.get();
      const std::vector<T> v = gathered(x, s.n, incx);
      std::vector<T> sums(v.size());
      for (int64_t j = 0; j < s.n; ++j)
        for (int64_t i = 0; i < s.n; ++i) sums[static_cast<size_t>(i)] += s.whole(i, j, hermitian) * v[static_cast<size_t>(j)];
      for (int64_t i = 0; i < s.n; ++i) {
        T &to = element(y, s.n, incy, i);
        to = f * sums[static_cast<size_t>(i)] + (g == T() ? T() : g * to);
      }
    });
  });
}

// x = op(A) x, or op(A)^-1 x (`solve`)
template <class T>
cublasStatus do_triangular_mv(cublasHandle handle, const char *name, bool solve, const Triangle<const T> &s, int trans, int unit, T *x,
                              int64_t incx) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!s.valid() || !op(trans) || !diagonal(unit) || !incx) return CUBLAS_STATUS_INVALID_VALUE;
    if (s.n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!s.reachable(name) || !vector_usable(x, s.n, incx, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      auto get = [&](int64_t i, int64_t j) {
        if (i == j && unit) return T(1);
        if (!trans) return s.holds(i, j) ? s.at(i, j) : T();
        const T value = s.holds(j, i) ? s.at(j, i) : T();
        return trans == 2 ? conjugate(value) : value;
      };
      std::vector<T> v = gathered(static_cast<const T *>(x), s.n, incx);
      const bool lower = s.lower() != (trans != 0);
      for (int64_t step = 0; step < s.n; ++step) {
        // Solving goes from the corner with one element; multiplying the other way, so that what is needed is still there.
        const int64_t i = lower == solve ? step : s.n - 1 - step;
        const int64_t first = lower ? 0 : i + 1, last = lower ? i : s.n;
        T sum{};
        for (int64_t j = first; j < last; ++j) sum += get(i, j) * v[static_cast<size_t>(j)];
        T &to = v[static_cast<size_t>(i)];
        if (solve) to = unit ? to - sum : (to - sum) / get(i, i);
        else to = get(i, i) * to + sum;
      }
      for (int64_t i = 0; i < s.n; ++i) element(x, s.n, incx, i) = v[static_cast<size_t>(i)];
    });
  });
}

// A = alpha x x' + A; the factor of a Hermitian update is real.
template <class T, class S>
cublasStatus do_rank_one(cublasHandle handle, const char *name, const Triangle<T> &s, bool hermitian, const S *alpha, const T *x,
                         int64_t incx) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!s.valid() || !incx || !alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (s.n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!s.reachable(name) || !vector_usable(x, s.n, incx, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<S>(h, alpha)] {
      const S f = factor.get();
      const std::vector<T> v = gathered(x, s.n, incx);
      for (int64_t j = 0; j < s.n; ++j) {
        const T right = v[static_cast<size_t>(j)];
        for (int64_t i = s.lower() ? j : 0; i < (s.lower() ? s.n : j + 1); ++i) {
          T &to = s.at(i, j);
          to += f * v[static_cast<size_t>(i)] * (hermitian ? conjugate(right) : right);
          if (hermitian && i == j) to = T(std::real(to));
        }
      }
    });
  });
}

// A = alpha x y' + alpha' y x' + A
template <class T>
cublasStatus do_rank_two(cublasHandle handle, const char *name, const Triangle<T> &s, bool hermitian, const T *alpha, const T *x,
                         int64_t incx, const T *y, int64_t incy) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!s.valid() || !incx || !incy || !alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (s.n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!s.reachable(name) || !vector_usable(x, s.n, incx, name) || !vector_usable(y, s.n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<T>(h, alpha)] {
      const T f = factor.get(), g = hermitian ? conjugate(f) : f;
      const std::vector<T> v = gathered(x, s.n, incx), w = gathered(y, s.n, incy);
      for (int64_t j = 0; j < s.n; ++j) {
        T vj = v[static_cast<size_t>(j)], wj = w[static_cast<size_t>(j)];
        if (hermitian) vj = conjugate(vj), wj = conjugate(wj);
        for (int64_t i = s.lower() ? j : 0; i < (s.lower() ? s.n : j + 1); ++i) {
          T &to = s.at(i, j);
          to += f * v[static_cast<size_t>(i)] * wj + g * w[static_cast<size_t>(i)] * vj;
          if (hermitian && i == j) to = T(std::real(to));
        }
      }
    });
  });
}

// y = alpha op(A) x + beta y, with kl diagonals below the main one and ku above
template <class T>
cublasStatus do_band_mv(cublasHandle handle, const char *name, int trans, int64_t m, int64_t n, int64_t kl, int64_t ku, const T *alpha,
                        const T *a, int64_t lda, const T *x, int64_t incx, const T *beta, T *y, int64_t incy) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!op(trans) || m < 0 || n < 0 || kl < 0 || ku < 0 || lda <= kl || lda - kl <= ku || !incx || !incy || !alpha || !beta)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const int64_t in = trans ? m : n, out = trans ? n : m;
    if (!matrix_usable(a, kl + ku + 1, n, lda, name) || !vector_usable(x, in, incx, name) || !vector_usable(y, out, incy, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      const T f = fa.get(), g = fb.get();
      std::vector<T> sums(static_cast<size_t>(out));
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = std::max<int64_t>(0, j - ku); i < std::min(m, j + kl + 1); ++i) {
          const T value = a[ku + i - j + j * lda];
          sums[static_cast<size_t>(trans ? j : i)] += (trans == 2 ? conjugate(value) : value) * element(x, in, incx, trans ? i : j);
        }
      for (int64_t i = 0; i < out; ++i) {
        T &to = element(y, out, incy, i);
        to = f * sums[static_cast<size_t>(i)] + (g == T() ? T() : g * to);
      }
    });
  });
}

}  // namespace sx::cublas
