// Updates of a triangle by products (syrkx, herk, syr2k, ...), and products with Hermitian matrices.
#pragma once
#include <vector>

#include "triangles.h"

namespace sx::cublas {

// What an update is: C = alpha A B' + beta C, and the same with A and B exchanged if `two`; ' is the conjugate transpose
// of a Hermitian one.
struct Update {
  bool hermitian, two;
};

template <class T, class S, class R>
cublasStatus do_update(cublasHandle handle, const char *name, Update u, int uplo, int trans, int64_t n, int64_t k, const S *alpha,
                       const T *a, int64_t lda, const T *b, int64_t ldb, const R *beta, T *c, int64_t ldc) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    constexpr bool kReal = std::is_same_v<T, Real<T>>;
    const int64_t rows = trans ? k : n, columns = trans ? n : k;
    const bool other = u.hermitian ? trans == 1 : trans == 2 && !kReal;
    if (!fill(uplo) || !op(trans) || other || n < 0 || k < 0 || lda < std::max<int64_t>(1, rows) || ldb < std::max<int64_t>(1, rows) ||
        ldc < std::max<int64_t>(1, n) || !alpha || !beta)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (n == 0) return CUBLAS_STATUS_SUCCESS;
    if (!matrix_usable(a, rows, columns, lda, name) || !matrix_usable(b, rows, columns, ldb, name) || !matrix_usable(c, n, n, ldc, name))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fa = Scalar<S>(h, alpha), fb = Scalar<R>(h, beta)] {
      const int flip = u.hermitian ? 113 : 112;
      const int left = trans ? flip : 111, right = trans ? 111 : flip;
      const T f(fa.get());
      const R g = fb.get();
      std::vector<T> product(static_cast<size_t>(n) * static_cast<size_t>(n));
      gemm(left, right, n, n, k, f, a, lda, b, ldb, T(), product.data(), n);
      if (u.two) gemm(left, right, n, n, k, u.hermitian ? conjugate(f) : f, b, ldb, a, lda, T(1), product.data(), n);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = uplo == 0 ? j : 0; i < (uplo == 0 ? n : j + 1); ++i) {
          T &to = c[j * ldc + i];
          to = product[static_cast<size_t>(j * n + i)] + (g == R() ? T() : g * to);
          if (u.hermitian && i == j) to = T(std::real(to));
        }
    });
  });
}

// C = alpha A B + beta C with Hermitian A, on the left or the right
template <class T>
cublasStatus do_hemm(cublasHandle handle, const char *name, int side_, int uplo, int64_t m, int64_t n, const T *alpha, const T *a,
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
      const Triangle<const T> stored{a, Form::Dense, uplo, order, lda, 0};
      std::vector<T> whole(static_cast<size_t>(order) * static_cast<size_t>(order));
      for (int64_t j = 0; j < order; ++j)
        for (int64_t i = 0; i < order; ++i) whole[static_cast<size_t>(j * order + i)] = stored.whole(i, j, true);
      if (side_) gemm(111, 111, m, n, n, fa.get(), b, ldb, whole.data(), order, fb.get(), c, ldc);
      else gemm(111, 111, m, n, m, fa.get(), whole.data(), order, b, ldb, fb.get(), c, ldc);
    });
  });
}

}  // namespace sx::cublas
