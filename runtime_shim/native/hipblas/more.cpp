// What cuBLAS has and hipBLAS has under another name or by another function, and transfers, which have no handle.
#include "arguments.h"
#include "library.h"

using namespace sx;
using namespace sx::hipblas;

// Products with fewer multiplications (3m) may round more than plain ones do, which these are.
#define SX_PLAIN(function, base, wide, ...)                                                       \
  SX_API cublasStatus function(cublasHandle handle, SX_DECLARE(__VA_ARGS__)) {                    \
    static const Entry entry(#function, base, false, wide);                                       \
    return Call<__VA_ARGS__>::run(handle, entry, SX_USE(__VA_ARGS__));                            \
  }
// GemmEx with sums of float.
#define SX_FLOAT(function, wide, N)                                                                                      \
  SX_API cublasStatus function(cublasHandle handle, int op_a, int op_b, N::Cuda m, N::Cuda n, N::Cuda k, const void *alpha, \
                               const void *a, int at, N::Cuda lda, const void *b, int bt, N::Cuda ldb, const void *beta, \
                               void *c, int ct, N::Cuda ldc) {                                                           \
    using Product = Call<Op, Op, N, N, N, P, P, Type, N, P, Type, N, P, P, Type, N, Compute, Algo>;                      \
    static const Entry entry(#function, "hipblasGemmEx", true, wide);                                                    \
    return Product::run(handle, entry, op_a, op_b, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, kCompute32F, 0); \
  }
#define SX_MORE(suffix, wide, N)                                                                                         \
  SX_PLAIN(cublasCgemm3m##suffix, "hipblasCgemm", wide, Op, Op, N, N, N, P, P, N, P, N, P, P, N)                         \
  SX_PLAIN(cublasZgemm3m##suffix, "hipblasZgemm", wide, Op, Op, N, N, N, P, P, N, P, N, P, P, N)                         \
  SX_PLAIN(cublasCgemm3mBatched##suffix, "hipblasCgemmBatched", wide, Op, Op, N, N, N, P, P, N, P, N, P, P, N, N)        \
  SX_PLAIN(cublasCgemm3mStridedBatched##suffix, "hipblasCgemmStridedBatched", wide, Op, Op, N, N, N, P, P, N, L, P, N, L, P, P, N, L, N) \
  SX_FLOAT(cublasSgemmEx##suffix, wide, N)                                                                               \
  SX_FLOAT(cublasCgemmEx##suffix, wide, N)                                                                               \
  SX_FLOAT(cublasCgemm3mEx##suffix, wide, N)
SX_MORE(, false, I32)
SX_MORE(_64, true, I64)

namespace {

template <class... T>
cublasStatus transfer(const char *cuda, const char *name, T... given) {
  if (const cublasStatus status = cublas::ready()) return status;
  void *found = function(cuda, name);
  if (!found) return CUBLAS_STATUS_NOT_SUPPORTED;
  return status_of(cuda, reinterpret_cast<int (*)(T...)>(found)(given...));
}

}  // namespace

#define SX_TRANSFER(Way)                                                                                                 \
  SX_API cublasStatus cublas##Way##Vector(int n, int size, const void *x, int incx, void *y, int incy) {                 \
    return transfer("cublas" #Way "Vector", "hipblas" #Way "Vector", n, size, x, incx, y, incy);                         \
  }                                                                                                                      \
  SX_API cublasStatus cublas##Way##VectorAsync(int n, int size, const void *x, int incx, void *y, int incy, CUstream stream) { \
    if (const cublasStatus status = check_stream("cublas" #Way "VectorAsync", stream)) return status;                    \
    return transfer("cublas" #Way "VectorAsync", "hipblas" #Way "VectorAsync", n, size, x, incx, y, incy, native_stream(stream)); \
  }                                                                                                                      \
  SX_API cublasStatus cublas##Way##Matrix(int rows, int columns, int size, const void *a, int lda, void *b, int ldb) {   \
    return transfer("cublas" #Way "Matrix", "hipblas" #Way "Matrix", rows, columns, size, a, lda, b, ldb);               \
  }                                                                                                                      \
  SX_API cublasStatus cublas##Way##MatrixAsync(int rows, int columns, int size, const void *a, int lda, void *b, int ldb, \
                                               CUstream stream) {                                                        \
    if (const cublasStatus status = check_stream("cublas" #Way "MatrixAsync", stream)) return status;                    \
    return transfer("cublas" #Way "MatrixAsync", "hipblas" #Way "MatrixAsync", rows, columns, size, a, lda, b, ldb,      \
                    native_stream(stream));                                                                                  \
  }
SX_TRANSFER(Set)
SX_TRANSFER(Get)
