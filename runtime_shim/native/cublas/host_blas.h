// The BLAS of the host: OpenBLAS as NumPy's wheels bring it, or any other with the C interface.
#pragma once
#include <cstdint>
#include <initializer_list>

#include "cublas_abi.h"

namespace sx::cublas {

// The functions by their names in C without "cblas_", and their parameters.  Numbers that a library with 32-bit integers
// takes are passed in whole registers or words of the stack, so that one declaration serves both.
// clang-format off
#define SX_BLAS_REAL(F, x, T)                                                                                           \
  F(x##gemm, void, (int, int, int, int64_t, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t, T, T *, int64_t)) \
  F(x##gemv, void, (int, int, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t, T, T *, int64_t))            \
  F(x##syrk, void, (int, int, int, int64_t, int64_t, T, const T *, int64_t, T, T *, int64_t))                           \
  F(x##symm, void, (int, int, int, int64_t, int64_t, T, const T *, int64_t, const T *, int64_t, T, T *, int64_t))       \
  F(x##trsm, void, (int, int, int, int, int, int64_t, int64_t, T, const T *, int64_t, T *, int64_t))                    \
  F(x##trmm, void, (int, int, int, int, int, int64_t, int64_t, T, const T *, int64_t, T *, int64_t))                    \
  F(x##axpy, void, (int64_t, T, const T *, int64_t, T *, int64_t)) F(x##scal, void, (int64_t, T, T *, int64_t))
#define SX_BLAS_COMPLEX(F, x, T)                                                                                        \
  F(x##gemm, void, (int, int, int, int64_t, int64_t, int64_t, const T *, const T *, int64_t, const T *, int64_t, const T *, T *, int64_t)) \
  F(x##gemv, void, (int, int, int64_t, int64_t, const T *, const T *, int64_t, const T *, int64_t, const T *, T *, int64_t)) \
  F(x##syrk, void, (int, int, int, int64_t, int64_t, const T *, const T *, int64_t, const T *, T *, int64_t))           \
  F(x##symm, void, (int, int, int, int64_t, int64_t, const T *, const T *, int64_t, const T *, int64_t, const T *, T *, int64_t)) \
  F(x##trsm, void, (int, int, int, int, int, int64_t, int64_t, const T *, const T *, int64_t, T *, int64_t))            \
  F(x##trmm, void, (int, int, int, int, int, int64_t, int64_t, const T *, const T *, int64_t, T *, int64_t))            \
  F(x##axpy, void, (int64_t, const T *, const T *, int64_t, T *, int64_t)) F(x##scal, void, (int64_t, const T *, T *, int64_t))
#define SX_BLAS(F)                                                                                                      \
  SX_BLAS_REAL(F, s, float) SX_BLAS_REAL(F, d, double) SX_BLAS_COMPLEX(F, c, Float2) SX_BLAS_COMPLEX(F, z, Double2)     \
  F(srotmg, void, (float *, float *, float *, float, float *)) F(drotmg, void, (double *, double *, double *, double, double *)) \
  F(snrm2, float, (int64_t, const float *, int64_t)) F(dnrm2, double, (int64_t, const double *, int64_t))               \
  F(scnrm2, float, (int64_t, const Float2 *, int64_t)) F(dznrm2, double, (int64_t, const Double2 *, int64_t))
// clang-format on

struct HostBlas {
#define F(name, result, parameters) result(*name) parameters = nullptr;
  SX_BLAS(F)
#undef F
  bool complete = false;
  bool wide = false;  // 64-bit integers
};

// Loaded at the first use from SASSXLATE_BLAS, or as libopenblas.so.0 or libblas.so.3; not `complete` where there is none.
const HostBlas &host_blas();

// Whether the host's BLAS counts so far; if not, says so (SX0787), and it is a fault: a library with 32-bit integers would
// take the low half of a larger number.
bool counts(std::initializer_list<int64_t> numbers);

// The same functions by type.
#define SX_BY_TYPE(x, T)                                                                                               \
  inline void gemm(int a, int b, int64_t m, int64_t n, int64_t k, T alpha, const T *A, int64_t lda, const T *B,        \
                   int64_t ldb, T beta, T *C, int64_t ldc) {                                                           \
    if (counts({m, n, k, lda, ldb, ldc}))                                                                              \
      host_blas().x##gemm(102, a, b, m, n, k, SX_PASS(alpha), A, lda, B, ldb, SX_PASS(beta), C, ldc);                  \
  }                                                                                                                    \
  inline void gemv(int a, int64_t m, int64_t n, T alpha, const T *A, int64_t lda, const T *x_, int64_t incx, T beta,   \
                   T *y, int64_t incy) {                                                                               \
    if (counts({m, n, lda, incx, incy}))                                                                               \
      host_blas().x##gemv(102, a, m, n, SX_PASS(alpha), A, lda, x_, incx, SX_PASS(beta), y, incy);                     \
  }                                                                                                                    \
  inline void syrk(int fill, int a, int64_t n, int64_t k, T alpha, const T *A, int64_t lda, T beta, T *C, int64_t ldc) { \
    if (counts({n, k, lda, ldc}))                                                                                      \
      host_blas().x##syrk(102, fill, a, n, k, SX_PASS(alpha), A, lda, SX_PASS(beta), C, ldc);                          \
  }                                                                                                                    \
  inline void symm(int side, int fill, int64_t m, int64_t n, T alpha, const T *A, int64_t lda, const T *B, int64_t ldb, \
                   T beta, T *C, int64_t ldc) {                                                                        \
    if (counts({m, n, lda, ldb, ldc}))                                                                                 \
      host_blas().x##symm(102, side, fill, m, n, SX_PASS(alpha), A, lda, B, ldb, SX_PASS(beta), C, ldc);               \
  }                                                                                                                    \
  inline void trsm(int side, int fill, int a, int diagonal, int64_t m, int64_t n, T alpha, const T *A, int64_t lda,    \
                   T *B, int64_t ldb) {                                                                                \
    if (counts({m, n, lda, ldb}))                                                                                      \
      host_blas().x##trsm(102, side, fill, a, diagonal, m, n, SX_PASS(alpha), A, lda, B, ldb);                         \
  }                                                                                                                    \
  inline void trmm(int side, int fill, int a, int diagonal, int64_t m, int64_t n, T alpha, const T *A, int64_t lda,    \
                   T *B, int64_t ldb) {                                                                                \
    if (counts({m, n, lda, ldb}))                                                                                      \
      host_blas().x##trmm(102, side, fill, a, diagonal, m, n, SX_PASS(alpha), A, lda, B, ldb);                         \
  }                                                                                                                    \
  inline void axpy(int64_t n, T alpha, const T *x_, int64_t incx, T *y, int64_t incy) {                                \
    if (counts({n, incx, incy}))                                                                                       \
      host_blas().x##axpy(n, SX_PASS(alpha), x_, incx, y, incy);                                                       \
  }                                                                                                                    \
  inline void scal(int64_t n, T alpha, T *x_, int64_t incx) { \
    if (counts({n, incx})) host_blas().x##scal(n, SX_PASS(alpha), x_, incx); \
  }
#define SX_PASS(v) v
SX_BY_TYPE(s, float)
SX_BY_TYPE(d, double)
#undef SX_PASS
#define SX_PASS(v) &v
SX_BY_TYPE(c, Float2)
SX_BY_TYPE(z, Double2)
#undef SX_PASS

inline float nrm2(int64_t n, const float *x, int64_t inc) { return counts({n, inc}) ? host_blas().snrm2(n, x, inc) : 0; }
inline double nrm2(int64_t n, const double *x, int64_t inc) { return counts({n, inc}) ? host_blas().dnrm2(n, x, inc) : 0; }
inline float nrm2(int64_t n, const Float2 *x, int64_t inc) { return counts({n, inc}) ? host_blas().scnrm2(n, x, inc) : 0; }
inline double nrm2(int64_t n, const Double2 *x, int64_t inc) { return counts({n, inc}) ? host_blas().dznrm2(n, x, inc) : 0; }

}  // namespace sx::cublas
