// Functions for many small matrices, at the addresses that arrays on the device hold.
#pragma once
#include "factor.h"

namespace sx::cublas {

// An array of `count` pointers to matrices of `extent` elements each.  What it holds is known when the work runs.
template <class T>
struct Batch {
  T *const *at;
  int64_t count;
  uint64_t extent;
  bool usable(const char *name) const { return sx::cublas::usable(at, static_cast<uint64_t>(count), sizeof(T *), name); }
  // Null after a fault: nothing is computed then.
  T *get(int64_t i, const char *name) const {
    T *pointer = at[i];
    if (extent == 0 || replace::reachable_from_work(pointer, times(extent, sizeof(T)), !std::is_const_v<T>)) return pointer;
    fault(name, pointer);
    return nullptr;
  }
};

inline bool info_usable(const int *info, int64_t count, const char *name) {
  return usable(info, static_cast<uint64_t>(count), sizeof(int), name);
}

template <class T>
cublasStatus do_getrf(cublasHandle handle, const char *name, int64_t n, T *const *a, int64_t lda, int *pivots, int *info, int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (n < 0 || count < 0 || lda < std::max<int64_t>(1, n)) return CUBLAS_STATUS_INVALID_VALUE;
    if (count == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<T> batch{a, count, matrix_extent(n, n, lda)};
    if (!batch.usable(name) || !info_usable(info, count, name) || (pivots && n && !info_usable(pivots, n * count, name)))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t i = 0; i < count; ++i)
        if (T *matrix = batch.get(i, name)) info[i] = lu(n, matrix, lda, pivots ? pivots + i * n : nullptr);
    });
  });
}

template <class T>
cublasStatus do_getri(cublasHandle handle, const char *name, int64_t n, const T *const *a, int64_t lda, const int *pivots, T *const *c,
                      int64_t ldc, int *info, int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (n < 0 || count < 0 || lda < std::max<int64_t>(1, n) || ldc < std::max<int64_t>(1, n)) return CUBLAS_STATUS_INVALID_VALUE;
    if (count == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<const T> from{a, count, matrix_extent(n, n, lda)};
    const Batch<T> to{c, count, matrix_extent(n, n, ldc)};
    if (!from.usable(name) || !to.usable(name) || !info_usable(info, count, name) || (pivots && n && !info_usable(pivots, n * count, name)))
      return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t i = 0; i < count; ++i) {
        const T *matrix = from.get(i, name);
        T *inverse = to.get(i, name);
        if (matrix && inverse) info[i] = lu_inverse(n, matrix, lda, pivots ? pivots + i * n : nullptr, inverse, ldc);
      }
    });
  });
}

template <class T>
cublasStatus do_matinv(cublasHandle handle, const char *name, int64_t n, const T *const *a, int64_t lda, T *const *c, int64_t ldc, int *info,
                       int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (n < 0 || count < 0 || lda < std::max<int64_t>(1, n) || ldc < std::max<int64_t>(1, n)) return CUBLAS_STATUS_INVALID_VALUE;
    if (n > 32) return CUBLAS_STATUS_NOT_SUPPORTED;  // as documented
    if (count == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<const T> from{a, count, matrix_extent(n, n, lda)};
    const Batch<T> to{c, count, matrix_extent(n, n, ldc)};
    if (!from.usable(name) || !to.usable(name) || !info_usable(info, count, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      std::vector<T> space(static_cast<size_t>(n * n));
      std::vector<int> pivots(static_cast<size_t>(n));
      for (int64_t i = 0; i < count; ++i) {
        const T *matrix = from.get(i, name);
        T *inverse = to.get(i, name);
        if (!matrix || !inverse) continue;
        for (int64_t j = 0; j < n; ++j) std::copy_n(matrix + j * lda, n, space.data() + j * n);
        info[i] = lu(n, space.data(), std::max<int64_t>(n, 1), pivots.data());
        if (info[i] == 0) lu_inverse(n, space.data(), n, pivots.data(), inverse, ldc);
      }
    });
  });
}

// `info` is the host's: 0, or minus the number of a wrong parameter.
template <class T>
cublasStatus do_getrs(cublasHandle handle, const char *name, int trans, int64_t n, int64_t columns, const T *const *a, int64_t lda,
                      const int *pivots, T *const *b, int64_t ldb, int *info, int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!info) return CUBLAS_STATUS_INVALID_VALUE;
    *info = !op(trans) ? -1 : n < 0 ? -2 : columns < 0 ? -3 : lda < std::max<int64_t>(1, n) ? -5 : ldb < std::max<int64_t>(1, n) ? -8 : count < 0 ? -10 : 0;
    if (*info) return CUBLAS_STATUS_INVALID_VALUE;
    if (count == 0 || n == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<const T> from{a, count, matrix_extent(n, n, lda)};
    const Batch<T> to{b, count, matrix_extent(n, columns, ldb)};
    if (!from.usable(name) || !to.usable(name) || (pivots && !info_usable(pivots, n * count, name))) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t i = 0; i < count; ++i) {
        const T *matrix = from.get(i, name);
        T *right = to.get(i, name);
        if (matrix && right) lu_solve(trans, n, columns, matrix, lda, pivots ? pivots + i * n : nullptr, right, ldb);
      }
    });
  });
}

template <class T>
cublasStatus do_geqrf(cublasHandle handle, const char *name, int64_t m, int64_t n, T *const *a, int64_t lda, T *const *taus, int *info,
                      int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!info) return CUBLAS_STATUS_INVALID_VALUE;
    *info = m < 0 ? -1 : n < 0 ? -2 : lda < std::max<int64_t>(1, m) ? -4 : count < 0 ? -7 : 0;
    if (*info) return CUBLAS_STATUS_INVALID_VALUE;
    if (count == 0 || m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<T> batch{a, count, matrix_extent(m, n, lda)}, factors{taus, count, static_cast<uint64_t>(std::min(m, n))};
    if (!batch.usable(name) || !factors.usable(name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t i = 0; i < count; ++i) {
        T *matrix = batch.get(i, name), *tau = factors.get(i, name);
        if (matrix && tau) qr(m, n, matrix, lda, tau);
      }
    });
  });
}

// Overdetermined systems alone, not transposed: as documented.
template <class T>
cublasStatus do_gels(cublasHandle handle, const char *name, int trans, int64_t m, int64_t n, int64_t columns, T *const *a, int64_t lda,
                     T *const *c, int64_t ldc, int *info, int *each, int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!info) return CUBLAS_STATUS_INVALID_VALUE;
    *info = !op(trans) ? -1 : m < 0 ? -2 : n < 0 ? -3 : columns < 0 ? -4 : lda < std::max<int64_t>(1, m) ? -6 : ldc < std::max<int64_t>(1, m) ? -8 : count < 0 ? -11 : 0;
    if (*info) return CUBLAS_STATUS_INVALID_VALUE;
    if (trans != 0 || m < n) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (count == 0 || n == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<T> batch{a, count, matrix_extent(m, n, lda)}, right{c, count, matrix_extent(m, columns, ldc)};
    if (!batch.usable(name) || !right.usable(name) || (each && !info_usable(each, count, name))) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=] {
      for (int64_t i = 0; i < count; ++i) {
        T *matrix = batch.get(i, name), *b = right.get(i, name);
        if (!matrix || !b) continue;
        const int zero = least_squares(m, n, columns, matrix, lda, b, ldc);
        if (each) each[i] = zero;
      }
    });
  });
}

template <class T>
cublasStatus do_trsm_batched(cublasHandle handle, const char *name, int side_, int uplo, int trans, int unit, int64_t m, int64_t n,
                             const T *alpha, const T *const *a, int64_t lda, T *const *b, int64_t ldb, int64_t count) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    const int64_t order = side_ ? n : m;
    if (!side(side_) || !fill(uplo) || !op(trans) || !diagonal(unit) || m < 0 || n < 0 || count < 0 || lda < std::max<int64_t>(1, order) ||
        ldb < std::max<int64_t>(1, m) || !alpha)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || count == 0) return CUBLAS_STATUS_SUCCESS;
    const Batch<const T> from{a, count, matrix_extent(order, order, lda)};
    const Batch<T> to{b, count, matrix_extent(m, n, ldb)};
    if (!from.usable(name) || !to.usable(name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, factor = Scalar<T>(h, alpha)] {
      for (int64_t i = 0; i < count; ++i) {
        const T *matrix = from.get(i, name);
        T *right = to.get(i, name);
        if (matrix && right) trsm(side(side_), fill(uplo), op(trans), diagonal(unit), m, n, factor.get(), matrix, lda, right, ldb);
      }
    });
  });
}

// y = alpha op(A) x + beta y, for arrays a distance apart (`table` false) or at the addresses in arrays.
template <class T>
struct Many {
  const void *a, *x;
  void *y;
  int64_t a_step, x_step, y_step, count;
  bool table;
};
template <class T>
cublasStatus do_gemv_many(cublasHandle handle, const char *name, int trans, int64_t m, int64_t n, const T *alpha, int64_t lda, int64_t incx,
                          const T *beta, int64_t incy, const Many<T> &o) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!op(trans) || m < 0 || n < 0 || lda < std::max<int64_t>(1, m) || !incx || !incy || !alpha || !beta || o.count < 0)
      return CUBLAS_STATUS_INVALID_VALUE;
    if (m == 0 || n == 0 || o.count == 0) return CUBLAS_STATUS_SUCCESS;
    const int64_t in = trans ? m : n, out = trans ? n : m;
    const uint64_t extents[3] = {matrix_extent(m, n, lda), vector_extent(in, incx), vector_extent(out, incy)};
    const void *bases[3] = {o.a, o.x, o.y};
    const int64_t steps[3] = {o.a_step, o.x_step, o.y_step};
    for (int i = 0; i < 3; ++i) {
      if (!o.table && o.count > 1 && steps[i] < 0) return CUBLAS_STATUS_INVALID_VALUE;
      const uint64_t all = batch_extent(extents[i], o.count, steps[i]);
      if (!(o.table ? usable(bases[i], static_cast<uint64_t>(o.count), sizeof(T *), name) : usable(bases[i], all, sizeof(T), name, i == 2)))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return submit(h, [=, fa = Scalar<T>(h, alpha), fb = Scalar<T>(h, beta)] {
      const T factor = fb.get();
      for (int64_t i = 0; i < o.count; ++i) {
        const T *a = static_cast<const T *>(o.a) + i * o.a_step, *x = static_cast<const T *>(o.x) + i * o.x_step;
        T *y = static_cast<T *>(o.y) + i * o.y_step;
        if (o.table) {
          a = Batch<const T>{static_cast<const T *const *>(o.a), o.count, extents[0]}.get(i, name);
          x = Batch<const T>{static_cast<const T *const *>(o.x), o.count, extents[1]}.get(i, name);
          y = Batch<T>{static_cast<T *const *>(o.y), o.count, extents[2]}.get(i, name);
          if (!a || !x || !y) continue;
        }
        scaled_gemv(trans, m, n, fa.get(), a, lda, x, incx, factor, y, incy);
      }
    });
  });
}

}  // namespace sx::cublas
