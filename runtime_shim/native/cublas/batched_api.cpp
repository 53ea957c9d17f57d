// The functions for many small matrices.
#include "batched.h"

using namespace sx::cublas;

#define SX_FACTOR(x, T)                                                                                                      \
  SX_API cublasStatus cublas##x##getrfBatched(cublasHandle h, int n, T *const a[], int lda, int *pivots, int *info, int count) { \
    return do_getrf<T>(h, "cublas" #x "getrfBatched", n, a, lda, pivots, info, count);                                       \
  }                                                                                                                          \
  SX_API cublasStatus cublas##x##getriBatched(cublasHandle h, int n, const T *const a[], int lda, const int *pivots, T *const c[], \
                                              int ldc, int *info, int count) {                                               \
    return do_getri<T>(h, "cublas" #x "getriBatched", n, a, lda, pivots, c, ldc, info, count);                               \
  }                                                                                                                          \
  SX_API cublasStatus cublas##x##getrsBatched(cublasHandle h, int trans, int n, int columns, const T *const a[], int lda,    \
                                              const int *pivots, T *const b[], int ldb, int *info, int count) {              \
    return do_getrs<T>(h, "cublas" #x "getrsBatched", trans, n, columns, a, lda, pivots, b, ldb, info, count);               \
  }                                                                                                                          \
  SX_API cublasStatus cublas##x##geqrfBatched(cublasHandle h, int m, int n, T *const a[], int lda, T *const taus[], int *info, \
                                              int count) {                                                                   \
    return do_geqrf<T>(h, "cublas" #x "geqrfBatched", m, n, a, lda, taus, info, count);                                      \
  }                                                                                                                          \
  SX_API cublasStatus cublas##x##gelsBatched(cublasHandle h, int trans, int m, int n, int columns, T *const a[], int lda,    \
                                             T *const c[], int ldc, int *info, int *each, int count) {                       \
    return do_gels<T>(h, "cublas" #x "gelsBatched", trans, m, n, columns, a, lda, c, ldc, info, each, count);                \
  }                                                                                                                          \
  SX_API cublasStatus cublas##x##matinvBatched(cublasHandle h, int n, const T *const a[], int lda, T *const c[], int ldc, int *info, \
                                               int count) {                                                                  \
    return do_matinv<T>(h, "cublas" #x "matinvBatched", n, a, lda, c, ldc, info, count);                                     \
  }
SX_FACTOR(S, float)
SX_FACTOR(D, double)
SX_FACTOR(C, Float2)
SX_FACTOR(Z, Double2)
#undef SX_FACTOR

#define I int
#define SX_NAME(name) name
#include "batched_api.inc"
#undef I
#undef SX_NAME

#define I int64_t
#define SX_NAME(name) name##_64
#include "batched_api.inc"
