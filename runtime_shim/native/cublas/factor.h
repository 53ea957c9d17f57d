// Factorisations of small matrices: LU with and without pivots, QR by reflections.  Columns are contiguous.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "vectors.h"

namespace sx::cublas {

// A = P L U in place.  The number, from 1, of the first pivot that is zero, or 0.  Pivots count from 1; null: no exchanges.
template <class T>
int lu(int64_t n, T *a, int64_t lda, int *pivots) {
  int info = 0;
  for (int64_t k = 0; k < n; ++k) {
    T *column = a + k * lda;
    int64_t best = k;
    if (pivots) {
      for (int64_t i = k + 1; i < n; ++i)
        if (magnitude(column[i]) > magnitude(column[best])) best = i;
      pivots[k] = static_cast<int>(best + 1);
      if (best != k)
        for (int64_t j = 0; j < n; ++j) std::swap(a[j * lda + k], a[j * lda + best]);
    }
    if (column[k] == T()) {
      if (!info) info = static_cast<int>(k + 1);
      continue;
    }
    for (int64_t i = k + 1; i < n; ++i) column[i] /= column[k];
    for (int64_t j = k + 1; j < n; ++j) {
      const T factor = a[j * lda + k];
      if (factor == T()) continue;
      for (int64_t i = k + 1; i < n; ++i) a[j * lda + i] -= factor * column[i];
    }
  }
  return info;
}

// B = op(A)^-1 B with A as lu() leaves it.
template <class T>
void lu_solve(int trans, int64_t n, int64_t count, const T *a, int64_t lda, const int *pivots, T *b, int64_t ldb) {
  auto exchange = [&](int64_t k) {
    const int64_t other = pivots[k] - 1;
    if (other != k && other >= 0 && other < n)
      for (int64_t j = 0; j < count; ++j) std::swap(b[j * ldb + k], b[j * ldb + other]);
  };
  if (trans == 0) {
    for (int64_t k = 0; pivots && k < n; ++k) exchange(k);
    trsm(141, 122, 111, 132, n, count, T(1), a, lda, b, ldb);
    trsm(141, 121, 111, 131, n, count, T(1), a, lda, b, ldb);
  } else {
    trsm(141, 121, op(trans), 131, n, count, T(1), a, lda, b, ldb);
    trsm(141, 122, op(trans), 132, n, count, T(1), a, lda, b, ldb);
    for (int64_t k = n - 1; pivots && k >= 0; --k) exchange(k);
  }
}

// The first zero on the diagonal, from 1; 0: none.
template <class T>
int first_zero(int64_t n, const T *a, int64_t lda) {
  for (int64_t i = 0; i < n; ++i)
    if (a[i * lda + i] == T()) return static_cast<int>(i + 1);
  return 0;
}

// C = A^-1 with A as lu() leaves it.  As lu().
template <class T>
int lu_inverse(int64_t n, const T *a, int64_t lda, const int *pivots, T *c, int64_t ldc) {
  if (const int info = first_zero(n, a, lda)) return info;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) c[j * ldc + i] = T(i == j);
  lu_solve(0, n, n, a, lda, pivots, c, ldc);
  return 0;
}

// B = H B or H' B, with H = I - tau v v' and v = (1, tail).
template <class T>
void reflect(int64_t m, int64_t n, T tau, const T *tail, T *b, int64_t ldb) {
  for (int64_t j = 0; j < n; ++j) {
    T *column = b + j * ldb, sum = column[0];
    for (int64_t i = 1; i < m; ++i) sum += conjugate(tail[i - 1]) * column[i];
    sum *= tau;
    column[0] -= sum;
    for (int64_t i = 1; i < m; ++i) column[i] -= tail[i - 1] * sum;
  }
}

// A = Q R in place, as LAPACK's geqrf keeps it.
template <class T>
void qr(int64_t m, int64_t n, T *a, int64_t lda, T *taus) {
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    T *head = a + k * lda + k;
    const Real<T> tail = m - k > 1 ? nrm2(m - k - 1, head + 1, 1) : Real<T>();
    taus[k] = T();
    if (tail == 0 && std::imag(*head) == 0) continue;
    const Real<T> beta = -std::copysign(std::hypot(std::abs(*head), tail), std::real(*head));
    taus[k] = (T(beta) - *head) / beta;
    const T divisor = *head - T(beta);
    for (int64_t i = 1; i < m - k; ++i) head[i] /= divisor;
    *head = T(beta);
    reflect(m - k, n - k - 1, conjugate(taus[k]), head + 1, head + lda, lda);
  }
}

// The least-squares solution of A X = B in the first n rows of B, m >= n; A and B are overwritten.  As first_zero() of R.
template <class T>
int least_squares(int64_t m, int64_t n, int64_t count, T *a, int64_t lda, T *b, int64_t ldb) {
  std::vector<T> taus(static_cast<size_t>(std::max<int64_t>(n, 1)));
  qr(m, n, a, lda, taus.data());
  for (int64_t k = 0; k < n; ++k) reflect(m - k, count, conjugate(taus[static_cast<size_t>(k)]), a + k * lda + k + 1, b + k, ldb);
  if (const int info = first_zero(n, a, lda)) return info;
  trsm(141, 121, 111, 131, n, count, T(1), a, lda, b, ldb);
  return 0;
}

}  // namespace sx::cublas
