// Vectors and matrices to and from the device.
#include "handle.h"

#include <cstring>

using namespace sx::cublas;

namespace {

struct Side {
  char *at;
  int64_t ld;  // in elements
  bool device;
};

// `columns` of `rows` elements.  The host's memory may be the caller's to change when the call returns, so it waits,
// unless the stream is being captured.
cublasStatus transfer(const char *name, int64_t rows, int64_t columns, int64_t size, const Side &from, const Side &to, CUstream stream) {
  if (sx::replace::enter()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (rows < 0 || columns < 0 || size <= 0 || from.ld < 1 || to.ld < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  for (const Side *s : {&from, &to}) {
    if (!s->at) return CUBLAS_STATUS_INVALID_VALUE;
    if (s->device && !usable(s->at, times(matrix_extent(rows, columns, s->ld), static_cast<uint64_t>(size)), 1, name, s == &to)) return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  bool captured = false;
  if (sx::replace::capturing(stream, captured)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const cublasStatus status = submit(stream, [=] {
    for (int64_t j = 0; j < columns; ++j) memcpy(to.at + j * to.ld * size, from.at + j * from.ld * size, static_cast<size_t>(rows * size));
  });
  if (status != CUBLAS_STATUS_SUCCESS || captured) return status;
  return sx::replace::synchronize(stream) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

Side side_of(const void *at, int64_t ld, bool device) { return {const_cast<char *>(static_cast<const char *>(at)), ld, device}; }

// A vector is a matrix with one row.
cublasStatus vector(const char *name, int64_t n, int64_t size, const void *x, int64_t incx, void *y, int64_t incy, bool set, CUstream stream) {
  if (incx < 1 || incy < 1) return CUBLAS_STATUS_INVALID_VALUE;
  return transfer(name, 1, n, size, side_of(x, incx, !set), side_of(y, incy, set), stream);
}
cublasStatus matrix(const char *name, int64_t rows, int64_t columns, int64_t size, const void *a, int64_t lda, void *b, int64_t ldb, bool set,
                    CUstream stream) {
  if (lda < rows || ldb < rows) return CUBLAS_STATUS_INVALID_VALUE;
  return transfer(name, rows, columns, size, side_of(a, lda, !set), side_of(b, ldb, set), stream);
}

}  // namespace

#define SX_TRANSFERS(I, suffix)                                                                                             \
  SX_TRANSFER(I, suffix, Set, true)                                                                                         \
  SX_TRANSFER(I, suffix, Get, false)
#define SX_TRANSFER(I, suffix, Way, set)                                                                                    \
  SX_API cublasStatus cublas##Way##Vector##suffix(I n, I size, const void *x, I incx, void *y, I incy) {                    \
    return vector("cublas" #Way "Vector", n, size, x, incx, y, incy, set, nullptr);                                         \
  }                                                                                                                         \
  SX_API cublasStatus cublas##Way##VectorAsync##suffix(I n, I size, const void *x, I incx, void *y, I incy, CUstream stream) { \
    return vector("cublas" #Way "VectorAsync", n, size, x, incx, y, incy, set, stream);                                     \
  }                                                                                                                         \
  SX_API cublasStatus cublas##Way##Matrix##suffix(I rows, I columns, I size, const void *a, I lda, void *b, I ldb) {        \
    return matrix("cublas" #Way "Matrix", rows, columns, size, a, lda, b, ldb, set, nullptr);                               \
  }                                                                                                                         \
  SX_API cublasStatus cublas##Way##MatrixAsync##suffix(I rows, I columns, I size, const void *a, I lda, void *b, I ldb,     \
                                                       CUstream stream) {                                                   \
    return matrix("cublas" #Way "MatrixAsync", rows, columns, size, a, lda, b, ldb, set, stream);                           \
  }
SX_TRANSFERS(int, )
SX_TRANSFERS(int64_t, _64)
