// A library in the place of hipBLAS: names, numbers and order of arguments as in hipblas.h of release RELEASE (2 or 3).
// Matrices are computed by the BLAS that SASSXLATE_BLAS names, as the memory of the emulated device is the process's.
// Settings are printed, and what hipBLAS would not take is answered as hipBLAS does.
#include <dlfcn.h>

#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { kSuccess = 0, kInvalidValue = 3, kNotSupported = 7, kInvalidEnum = 10 };
struct Handle {
  int pointer_mode = 0;
};

void *blas(const char *name) {
  static void *const library = dlopen(getenv("SASSXLATE_BLAS"), RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, ("scipy_cblas_" + std::string(name) + "64_").c_str()) : nullptr;
  if (!found) abort();
  return found;
}
template <class... T>
void call(const char *name, T... arguments) {
  reinterpret_cast<void (*)(T...)>(blas(name))(arguments...);
}
bool op(int value) { return value >= 111 && value <= 113; }
bool fill(int value) { return value == 121 || value == 122; }
bool diag(int value) { return value == 131 || value == 132; }
bool side(int value) { return value == 141 || value == 142; }
constexpr int kColumns = 102;
using I = int64_t;
using Complex = std::complex<double>;

template <class N>
int dgemm(Handle *, int ta, int tb, N m, N n, N k, const double *alpha, const double *a, N lda, const double *b, N ldb,
          const double *beta, double *c, N ldc) {
  if (k < 0) return static_cast<int>(-k);  // a test asks for this status
  if (!op(ta) || !op(tb)) return kInvalidEnum;
  call("dgemm", kColumns, ta, tb, I(m), I(n), I(k), *alpha, a, I(lda), b, I(ldb), *beta, c, I(ldc));
  return kSuccess;
}

// hipDataType and hipblasComputeType_t.
template <class N>
int gemm_ex(Handle *h, int ta, int tb, N m, N n, N k, const void *alpha, const void *a, int at, N lda, const void *b, int bt, N ldb,
            const void *beta, void *c, int ct, N ldc, int compute, int algorithm) {
  printf("hipblasGemmEx types %d %d %d compute %d algorithm %d\n", at, bt, ct, compute, algorithm);
  if (at == 0 && bt == 0 && ct == 0 && compute == 2) {
    call("sgemm", kColumns, ta, tb, I(m), I(n), I(k), *static_cast<const float *>(alpha), static_cast<const float *>(a), I(lda),
         static_cast<const float *>(b), I(ldb), *static_cast<const float *>(beta), static_cast<float *>(c), I(ldc));
    return kSuccess;
  }
  if (at == 1 && bt == 1 && ct == 1 && compute == 7)
    return dgemm<N>(h, ta, tb, m, n, k, static_cast<const double *>(alpha), static_cast<const double *>(a), lda,
                    static_cast<const double *>(b), ldb, static_cast<const double *>(beta), static_cast<double *>(c), ldc);
  return kNotSupported;
}

}  // namespace

API int hipblasCreate(Handle **handle) {
  *handle = new Handle;
  puts("hipblasCreate");
  const char *status = getenv("FAKE_CREATE");
  return status ? atoi(status) : 0;
}
API int hipblasDestroy(Handle *handle) {
  delete handle;
  puts("hipblasDestroy");
  return 0;
}
API int hipblasSetStream(Handle *, void *stream) {
  printf("stream %p ", stream);
  return 0;
}
API int hipblasSetPointerMode(Handle *handle, int mode) {
  handle->pointer_mode = mode;
  printf("pointer mode %d ", mode);
  return 0;
}
API int hipblasSetAtomicsMode(Handle *, int mode) {
  printf("atomics %d\n", mode);
  return 0;
}

API int hipblasDgemm(Handle *h, int ta, int tb, int m, int n, int k, const double *alpha, const double *a, int lda, const double *b,
                     int ldb, const double *beta, double *c, int ldc) {
  return dgemm<int>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
API int hipblasDgemm_64(Handle *h, int ta, int tb, I m, I n, I k, const double *alpha, const double *a, I lda, const double *b, I ldb,
                        const double *beta, double *c, I ldc) {
  puts("hipblasDgemm_64");
  return dgemm<I>(h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
API int hipblasZgemm(Handle *, int ta, int tb, int m, int n, int k, const Complex *alpha, const Complex *a, int lda, const Complex *b,
                     int ldb, const Complex *beta, Complex *c, int ldc) {
  if (!op(ta) || !op(tb)) return kInvalidEnum;
  call("zgemm", kColumns, ta, tb, I(m), I(n), I(k), static_cast<const void *>(alpha), static_cast<const void *>(a), I(lda),
       static_cast<const void *>(b), I(ldb), static_cast<const void *>(beta), static_cast<void *>(c), I(ldc));
  return kSuccess;
}
API int hipblasDtrsm(Handle *, int left, int uplo, int trans, int unit, int m, int n, const double *alpha, const double *a, int lda,
                     double *b, int ldb) {
  if (!side(left) || !fill(uplo) || !op(trans) || !diag(unit)) return kInvalidEnum;
  call("dtrsm", kColumns, left, uplo, trans, unit, I(m), I(n), *alpha, a, I(lda), b, I(ldb));
  return kSuccess;
}
API int hipblasDsymv(Handle *, int uplo, int n, const double *alpha, const double *a, int lda, const double *x, int incx,
                     const double *beta, double *y, int incy) {
  if (!fill(uplo)) return kInvalidEnum;
  call("dsymv", kColumns, uplo, I(n), *alpha, a, I(lda), x, I(incx), *beta, y, I(incy));
  return kSuccess;
}
API int hipblasDaxpy(Handle *, int n, const double *alpha, const double *x, int incx, double *y, int incy) {
  call("daxpy", I(n), *alpha, x, I(incx), y, I(incy));
  return kSuccess;
}
API int hipblasDgemmStridedBatched(Handle *h, int ta, int tb, int m, int n, int k, const double *alpha, const double *a, int lda,
                                   int64_t sa, const double *b, int ldb, int64_t sb, const double *beta, double *c, int ldc,
                                   int64_t sc, int count) {
  for (int i = 0; i < count; ++i)
    if (const int status = dgemm<int>(h, ta, tb, m, n, k, alpha, a + i * sa, lda, b + i * sb, ldb, beta, c + i * sc, ldc)) return status;
  return kSuccess;
}
API int hipblasSetVector(int n, int size, const void *x, int incx, void *y, int incy) {
  for (int i = 0; i < n; ++i)
    memcpy(static_cast<char *>(y) + i * incy * size, static_cast<const char *>(x) + i * incx * size, static_cast<size_t>(size));
  return kSuccess;
}

#if RELEASE == 2
// The names without _v2 have other numbers: nothing may call them.
API int hipblasGemmEx() { abort(); }
API int hipblasGemmStridedBatchedEx() { abort(); }
#define EX(name) name##_v2
#else
#define EX(name) name
#endif
API int EX(hipblasGemmEx)(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int at, int lda, const void *b,
                          int bt, int ldb, const void *beta, void *c, int ct, int ldc, int compute, int algorithm) {
  return gemm_ex<int>(h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, compute, algorithm);
}
API int EX(hipblasGemmStridedBatchedEx)(Handle *h, int ta, int tb, int m, int n, int k, const void *alpha, const char *a, int at, int lda,
                                        int64_t sa, const char *b, int bt, int ldb, int64_t sb, const void *beta, char *c, int ct, int ldc,
                                        int64_t sc, int count, int compute, int algorithm) {
  const int64_t size = at == 1 ? 8 : 4;
  for (int i = 0; i < count; ++i)
    if (const int status = gemm_ex<int>(h, ta, tb, m, n, k, alpha, a + i * sa * size, at, lda, b + i * sb * size, bt, ldb, beta,
                                        c + i * sc * size, ct, ldc, compute, algorithm))
      return status;
  return kSuccess;
}
