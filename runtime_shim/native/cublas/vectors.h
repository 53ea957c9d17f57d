// Vectors and matrices: what is between cuBLAS's functions and the host's, for each type.
#pragma once
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "handle.h"
#include "host_blas.h"

namespace sx::cublas {

template <class T>
struct RealOf {
  using Type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using Type = T;
};
template <class T>
using Real = typename RealOf<T>::Type;

template <class T>
T conjugate(T value) {
  if constexpr (std::is_same_v<T, Real<T>>) return value;
  else return std::conj(value);
}

// |re| + |im|, by which the greatest element is chosen and which asum adds.
template <class T>
Real<T> magnitude(T value) {
  if constexpr (std::is_same_v<T, Real<T>>) return std::abs(value);
  else return std::abs(value.real()) + std::abs(value.imag());
}

// Element i of a vector; with a negative increment the first is the last in memory.
template <class T>
T &element(T *x, int64_t n, int64_t inc, int64_t i) {
  return x[inc < 0 ? (i - (n - 1)) * inc : i * inc];
}

// What is not const is written.
template <class T>
bool vector_usable(T *x, int64_t n, int64_t inc, const char *name) {
  return usable(x, vector_extent(n, inc), sizeof(T), name, !std::is_const_v<T>);
}
template <class T>
bool matrix_usable(T *a, int64_t rows, int64_t columns, int64_t ld, const char *name) {
  return usable(a, matrix_extent(rows, columns, ld), sizeof(T), name, !std::is_const_v<T>);
}

// y = alpha x + y
template <class T>
cublasStatus do_axpy(cublasHandle handle, const char *name, int64_t n, const T *alpha, const T *x, int64_t incx, T *y, int64_t incy) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    if (!vector_usable(x, n, incx, name) || !vector_usable(y, n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<T>(h, alpha)] { axpy(n, factor.get(), x, incx, y, incy); });
  });
}

// Copies, or exchanges.
template <class T>
cublasStatus do_move(cublasHandle handle, const char *name, int64_t n, T *x, int64_t incx, T *y, int64_t incy, bool both) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    if (!vector_usable(x, n, incx, name) || !vector_usable(y, n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t i = 0; i < n; ++i) {
        T &from = element(x, n, incx, i), &to = element(y, n, incy, i);
        if (both) std::swap(from, to);
        else to = from;
      }
    });
  });
}

// x = alpha x; S is T, or real for complex x.
template <class T, class S>
cublasStatus do_scal(cublasHandle handle, const char *name, int64_t n, const S *alpha, T *x, int64_t incx) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
    if (!vector_usable(x, n, incx, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<S>(h, alpha)] {
      const S f = factor.get();
      for (int64_t i = 0; i < n; ++i) x[i * incx] = x[i * incx] * f;
    });
  });
}

// The sum of products; of the conjugate of x if `conjugated`.  Sums of single precision are kept in double.
template <class T>
cublasStatus do_dot(cublasHandle handle, const char *name, int64_t n, const T *x, int64_t incx, const T *y, int64_t incy,
                    T *result, bool conjugated) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    using Wide = std::conditional_t<std::is_same_v<T, Real<T>>, double, Double2>;
    if (!vector_usable(x, n, incx, name) || !vector_usable(y, n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit_result(h, result, [=] {
      Wide sum{};
      for (int64_t i = 0; i < n; ++i) {
        const T a = element(x, n, incx, i);
        sum += Wide(conjugated ? conjugate(a) : a) * Wide(element(y, n, incy, i));
      }
      return static_cast<T>(sum);
    });
  });
}

template <class T>
cublasStatus do_nrm2(cublasHandle handle, const char *name, int64_t n, const T *x, int64_t incx, Real<T> *result) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const bool empty = n <= 0 || incx <= 0;
    if (!empty && !vector_usable(x, n, incx, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit_result(h, result, [=] { return empty ? Real<T>() : nrm2(n, x, incx); });
  });
}

template <class T>
cublasStatus do_asum(cublasHandle handle, const char *name, int64_t n, const T *x, int64_t incx, Real<T> *result) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const bool empty = n <= 0 || incx <= 0;
    if (!empty && !vector_usable(x, n, incx, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit_result(h, result, [=] {
      double sum = 0;
      for (int64_t i = 0; !empty && i < n; ++i) sum += magnitude(x[i * incx]);
      return static_cast<Real<T>>(sum);
    });
  });
}

// The number, from 1, of the first element that is greatest or least; 0 of an empty vector.
template <class T, class I>
cublasStatus do_iamax(cublasHandle handle, const char *name, int64_t n, const T *x, int64_t incx, I *result, bool least) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const bool empty = n <= 0 || incx <= 0;
    if (!empty && !vector_usable(x, n, incx, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit_result(h, result, [=] {
      int64_t best = 0;
      for (int64_t i = 1; !empty && i < n; ++i) {
        const Real<T> a = magnitude(x[i * incx]), b = magnitude(x[best * incx]);
        if (least ? a < b : a > b) best = i;
      }
      return static_cast<I>(empty ? 0 : best + 1);
    });
  });
}

// y = alpha op(A) x + beta y, for arrays already checked.  The host's BLAS multiplies x by alpha first: that overflows, or is a
// NaN (infinity by zero), where alpha times the sum is not.  A and x do not count if alpha is zero, nor y if beta is, not even a NaN.
template <class T>
void scaled_gemv(int trans, int64_t m, int64_t n, T alpha, const T *a, int64_t lda, const T *x, int64_t incx, T beta, T *y,
                 int64_t incy) {
  const int64_t out = trans ? n : m;
  std::vector<T> sums(static_cast<size_t>(out));
  if (alpha != T()) gemv(op(trans), m, n, T(1), a, lda, x, incx, T(), sums.data(), 1);
  for (int64_t i = 0; i < out; ++i) {
    T &to = element(y, out, incy, i);
    const T kept = beta == T() ? T() : beta * to;
    to = alpha == T() ? kept : alpha * sums[static_cast<size_t>(i)] + kept;
  }
}

// y = alpha op(A) x + beta y
template <class T>
cublasStatus do_gemv(cublasHandle handle, const char *name, int trans, int64_t m, int64_t n, const T *alpha, const T *a, int64_t lda,
                     const T *x, int64_t incx, const T *beta, T *y, int64_t incy) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!op(trans) || m < 0 || n < 0 || lda < std::max<int64_t>(1, m) || !incx || !incy || !alpha || !beta)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const int64_t in = trans ? m : n, out = trans ? n : m;
    if (!matrix_usable(a, m, n, lda, name) || !vector_usable(x, in, incx, name) || !vector_usable(y, out, incy, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      scaled_gemv(trans, m, n, fa.get(), a, lda, x, incx, fb.get(), y, incy);
    });
  });
}

// A = alpha x y' + A; the conjugate of y if `conjugated`.
template <class T>
cublasStatus do_ger(cublasHandle handle, const char *name, int64_t m, int64_t n, const T *alpha, const T *x, int64_t incx, const T *y,
                    int64_t incy, T *a, int64_t lda, bool conjugated) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (m < 0 || n < 0 || lda < std::max<int64_t>(1, m) || !incx || !incy || !alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (!matrix_usable(a, m, n, lda, name) || !vector_usable(x, m, incx, name) || !vector_usable(y, n, incy, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<T>(h, alpha)] {
      const T f = factor.get();
      if (f == T()) return;
      // Not by axpy, which does nothing for a zero in y: x may hold a NaN.
      for (int64_t j = 0; j < n; ++j) {
        const T y_j = element(y, n, incy, j), right = f * (conjugated ? conjugate(y_j) : y_j);
        for (int64_t i = 0; i < m; ++i) a[j * lda + i] += right * element(x, m, incx, i);
      }
    });
  });
}

// C = alpha op(A) op(A)' + beta C, one triangle.
template <class T>
cublasStatus do_syrk(cublasHandle handle, const char *name, int uplo, int trans, int64_t n, int64_t k, const T *alpha, const T *a,
                     int64_t lda, const T *beta, T *c, int64_t ldc) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const int64_t rows = trans ? k : n, columns = trans ? n : k;
    const bool conjugated = trans == 2 && !std::is_same_v<T, Real<T>>;  // is herk's
    if (!fill(uplo) || !op(trans) || conjugated || n < 0 || k < 0 || lda < std::max<int64_t>(1, rows) ||
        ldc < std::max<int64_t>(1, n) || !alpha || !beta)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!matrix_usable(a, rows, columns, lda, name) || !matrix_usable(c, n, n, ldc, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      syrk(fill(uplo), op(trans), n, k, fa.get(), a, lda, fb.get(), c, ldc);
    });
  });
}

// C = alpha A B + beta C with symmetric A, on the left or the right.
template <class T>
cublasStatus do_symm(cublasHandle handle, const char *name, int side_, int uplo, int64_t m, int64_t n, const T *alpha, const T *a,
                     int64_t lda, const T *b, int64_t ldb, const T *beta, T *c, int64_t ldc) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const int64_t order = side_ ? n : m;
    if (!side(side_) || !fill(uplo) || m < 0 || n < 0 || lda < std::max<int64_t>(1, order) || ldb < std::max<int64_t>(1, m) ||
        ldc < std::max<int64_t>(1, m) || !alpha || !beta)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!matrix_usable(a, order, order, lda, name) || !matrix_usable(b, m, n, ldb, name) || !matrix_usable(c, m, n, ldc, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      symm(side(side_), fill(uplo), m, n, fa.get(), a, lda, b, ldb, fb.get(), c, ldc);
    });
  });
}

// B = alpha op(A)^-1 B (`solve`), or C = alpha op(A) B, with triangular A on the left or the right.
template <class T>
cublasStatus do_triangular(cublasHandle handle, const char *name, bool solve, int side_, int uplo, int trans, int unit, int64_t m,
                           int64_t n, const T *alpha, const T *a, int64_t lda, const T *b, int64_t ldb, T *c, int64_t ldc) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const int64_t order = side_ ? n : m;
    if (!side(side_) || !fill(uplo) || !op(trans) || !diagonal(unit) || m < 0 || n < 0 || lda < std::max<int64_t>(1, order) ||
        ldb < std::max<int64_t>(1, m) || ldc < std::max<int64_t>(1, m) || !alpha)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!matrix_usable(a, order, order, lda, name) || !matrix_usable(b, m, n, ldb, name) || !matrix_usable(c, m, n, ldc, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<T>(h, alpha)] {
      if (b != c)
        for (int64_t j = 0; j < n; ++j) std::copy_n(b + j * ldb, m, c + j * ldc);
      const T f = factor.get();
      if (solve) trsm(side(side_), fill(uplo), op(trans), diagonal(unit), m, n, f, a, lda, c, ldc);
      else trmm(side(side_), fill(uplo), op(trans), diagonal(unit), m, n, f, a, lda, c, ldc);
    });
  });
}

// C = alpha op(A) + beta op(B); C may be A or B where that is not transposed.  No beta is a beta of zero, as cuSOLVER counts
// on (singular vectors, least squares).
template <class T>
cublasStatus do_geam(cublasHandle handle, const char *name, int ta, int tb, int64_t m, int64_t n, const T *alpha, const T *a,
                     int64_t lda, const T *beta, const T *b, int64_t ldb, T *c, int64_t ldc) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const int64_t a_rows = ta ? n : m, b_rows = tb ? n : m;
    if (!op(ta) || !op(tb) || m < 0 || n < 0 || lda < std::max<int64_t>(1, a_rows) || ldb < std::max<int64_t>(1, b_rows) ||
        ldc < std::max<int64_t>(1, m) || !alpha || (c == a && ta) || (beta && c == b && tb))
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    // One whose factor the host knows to be zero is not read.
    const bool known = h.pointer_mode == kPointerHost;
    const bool need_a = !known || *alpha != T(), need_b = beta && (!known || *beta != T());
    if ((need_a && !matrix_usable(a, a_rows, ta ? m : n, lda, name)) || (need_b && !matrix_usable(b, b_rows, tb ? m : n, ldb, name)) ||
        !matrix_usable(c, m, n, ldc, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      const T x = fa.get(), y = fb.get();
      auto at = [](const T *matrix, int trans, int64_t ld, int64_t i, int64_t j) {
        const T value = trans ? matrix[i * ld + j] : matrix[j * ld + i];
        return trans == 2 ? conjugate(value) : value;
      };
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i)
          c[j * ldc + i] = (x == T() ? T() : x * at(a, ta, lda, i, j)) + (y == T() ? T() : y * at(b, tb, ldb, i, j));
    });
  });
}

// C = diag(x) A or A diag(x).
template <class T>
cublasStatus do_dgmm(cublasHandle handle, const char *name, int side_, int64_t m, int64_t n, const T *a, int64_t lda, const T *x,
                     int64_t incx, T *c, int64_t ldc) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!side(side_) || m < 0 || n < 0 || lda < std::max<int64_t>(1, m) || ldc < std::max<int64_t>(1, m))
      return CUBLAS_STATUS_INVALID_VALUE;
    const int64_t order = side_ ? n : m;
    if (!matrix_usable(a, m, n, lda, name) || !vector_usable(x, order, incx, name) || !matrix_usable(c, m, n, ldc, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) c[j * ldc + i] = a[j * lda + i] * element(x, order, incx, side_ ? j : i);
    });
  });
}

}  // namespace sx::cublas
