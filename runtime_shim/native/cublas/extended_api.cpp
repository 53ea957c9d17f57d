// Functions for vectors whose types are parameters.  Halves and bfloat16 are computed as float, and rounded once.
#include <vector>

#include "numbers.h"
#include "vectors.h"

using namespace sx::cublas;

namespace {

cublasStatus refused(const char *name, int a, int b, int execution) {
  char line[200];
  snprintf(line, sizeof line,
           "SX0780: %s of data types %d and %d with execution type %d is not implemented; it returns 15 (CUBLAS_STATUS_NOT_SUPPORTED)", name,
           a, b, execution);
  sx::replace::refuse(line, line);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

bool short_type(int type) { return type == kR16F || type == kR16BF; }
bool plain(int type) { return type == kR32F || type == kR64F || type == kC32F || type == kC64F; }

// Vectors of 16-bit numbers as floats.
struct Short {
  char *at;
  int type;
  int64_t n, inc;
  bool usable(const char *name, bool write = false) const { return sx::cublas::usable(at, vector_extent(n, inc), 2, name, write); }
  char *first() const { return inc < 0 ? at - (n - 1) * inc * 2 : at; }
  std::vector<float> get() const {
    std::vector<float> v(static_cast<size_t>(std::max<int64_t>(n, 0)));
    widen(first(), type, n, inc, v.data());
    return v;
  }
  void set(const std::vector<float> &v) const { narrow(v.data(), type, n, inc, first()); }
};
Short short_vector(const void *at, int type, int64_t n, int64_t inc) {
  return {const_cast<char *>(static_cast<const char *>(at)), type, n, inc};
}

// A factor of a 16-bit vector: of the vector's type, or float.
struct Factor {
  Factor(const cublasContext &h, const void *given, int kind) : type(kind), at(h.pointer_mode == kPointerDevice ? given : nullptr) {
    if (!at) memcpy(kept, given, size_of(type));
  }
  float get() const {
    float value = 0;
    if (at && !sx::replace::reachable_from_work(at, size_of(type))) fault("cuBLAS", at);
    else widen(static_cast<const char *>(at ? at : kept), type, 1, 1, &value);
    return value;
  }
  int type;
  const void *at;
  char kept[4] = {};
};

template <class F>
cublasStatus by_type(int type, F body) {
  switch (type) {
    case kR32F: return body(float());
    case kR64F: return body(double());
    case kC32F: return body(Float2());
    default: return body(Double2());
  }
}

cublasStatus axpy_ex(cublasHandle handle, int64_t n, const void *alpha, int at, const void *x, int xt, int64_t incx, void *y, int yt,
                     int64_t incy, int et) {
  const char *name = "cublasAxpyEx";
  if (plain(xt) && at == xt && yt == xt && et == xt)
    return by_type(xt, [&](auto t) {
      using T = decltype(t);
      return do_axpy<T>(handle, name, n, static_cast<const T *>(alpha), static_cast<const T *>(x), incx, static_cast<T *>(y), incy);
    });
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!short_type(xt) || yt != xt || et != kR32F || (at != xt && at != kR32F)) return refused(name, xt, yt, et);
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    const Short v = short_vector(x, xt, n, incx), w = short_vector(y, yt, n, incy);
    if (!v.usable(name) || !w.usable(name, true)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, f = Factor(h, alpha, at)] {
      const std::vector<float> a = v.get();
      std::vector<float> b = w.get();
      for (size_t i = 0; i < b.size(); ++i) b[i] += f.get() * a[i];
      w.set(b);
    });
  });
}

cublasStatus scal_ex(cublasHandle handle, int64_t n, const void *alpha, int at, void *x, int xt, int64_t incx, int et) {
  const char *name = "cublasScalEx";
  if (plain(xt) && at == xt && et == xt)
    return by_type(xt, [&](auto t) {
      using T = decltype(t);
      return do_scal<T, T>(handle, name, n, static_cast<const T *>(alpha), static_cast<T *>(x), incx);
    });
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!short_type(xt) || et != kR32F || (at != xt && at != kR32F)) return refused(name, at, xt, et);
    if (!alpha) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0 || incx <= 0) return CUBLAS_STATUS_SUCCESS;
    const Short v = short_vector(x, xt, n, incx);
    if (!v.usable(name, true)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, f = Factor(h, alpha, at)] {
      std::vector<float> a = v.get();
      for (float &value : a) value *= f.get();
      v.set(a);
    });
  });
}

cublasStatus dot_ex(cublasHandle handle, const char *name, int64_t n, const void *x, int xt, int64_t incx, const void *y, int yt,
                    int64_t incy, void *result, int rt, int et, bool conjugated) {
  if (plain(xt) && yt == xt && rt == xt && et == xt)
    return by_type(xt, [&](auto t) {
      using T = decltype(t);
      return do_dot<T>(handle, name, n, static_cast<const T *>(x), incx, static_cast<const T *>(y), incy, static_cast<T *>(result), conjugated);
    });
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!short_type(xt) || yt != xt || et != kR32F || (rt != xt && rt != kR32F)) return refused(name, xt, rt, et);
    const Short v = short_vector(x, xt, n, incx), w = short_vector(y, yt, n, incy);
    if (!v.usable(name) || !w.usable(name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    auto sum = [=] {
      const std::vector<float> a = v.get(), b = w.get();
      double all = 0;
      for (size_t i = 0; i < a.size(); ++i) all += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      return static_cast<float>(all);
    };
    if (rt == kR32F) return submit_result(h, static_cast<float *>(result), sum);
    return submit_result(h, static_cast<uint16_t *>(result), [=] {
      uint16_t bits = 0;
      store(sum(), rt, reinterpret_cast<char *>(&bits));
      return bits;
    });
  });
}

cublasStatus nrm2_ex(cublasHandle handle, int64_t n, const void *x, int xt, int64_t incx, void *result, int rt, int et) {
  const char *name = "cublasNrm2Ex";
  const int real = xt == kC32F ? kR32F : xt == kC64F ? kR64F : xt;
  if (plain(xt) && rt == real && et == real)
    return by_type(xt, [&](auto t) {
      using T = decltype(t);
      return do_nrm2<T>(handle, name, n, static_cast<const T *>(x), incx, static_cast<Real<T> *>(result));
    });
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!short_type(xt) || rt != xt || et != kR32F) return refused(name, xt, rt, et);
    const bool empty = n <= 0 || incx <= 0;
    const Short v = short_vector(x, xt, empty ? 0 : n, incx);
    if (!v.usable(name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit_result(h, static_cast<uint16_t *>(result), [=] {
      double all = 0;
      for (float value : v.get()) all += static_cast<double>(value) * static_cast<double>(value);
      uint16_t bits = 0;
      store(static_cast<float>(std::sqrt(all)), rt, reinterpret_cast<char *>(&bits));
      return bits;
    });
  });
}

}  // namespace

#define SX_EXTENDED(I, suffix)                                                                                              \
  SX_API cublasStatus cublasAxpyEx##suffix(cublasHandle h, I n, const void *alpha, int at, const void *x, int xt, I incx, void *y, \
                                           int yt, I incy, int et) {                                                        \
    return axpy_ex(h, n, alpha, at, x, xt, incx, y, yt, incy, et);                                                          \
  }                                                                                                                         \
  SX_API cublasStatus cublasScalEx##suffix(cublasHandle h, I n, const void *alpha, int at, void *x, int xt, I incx, int et) { \
    return scal_ex(h, n, alpha, at, x, xt, incx, et);                                                                       \
  }                                                                                                                         \
  SX_API cublasStatus cublasDotEx##suffix(cublasHandle h, I n, const void *x, int xt, I incx, const void *y, int yt, I incy, \
                                          void *result, int rt, int et) {                                                   \
    return dot_ex(h, "cublasDotEx", n, x, xt, incx, y, yt, incy, result, rt, et, false);                                    \
  }                                                                                                                         \
  SX_API cublasStatus cublasDotcEx##suffix(cublasHandle h, I n, const void *x, int xt, I incx, const void *y, int yt, I incy, \
                                           void *result, int rt, int et) {                                                  \
    return dot_ex(h, "cublasDotcEx", n, x, xt, incx, y, yt, incy, result, rt, et, true);                                    \
  }                                                                                                                         \
  SX_API cublasStatus cublasNrm2Ex##suffix(cublasHandle h, I n, const void *x, int xt, I incx, void *result, int rt, int et) { \
    return nrm2_ex(h, n, x, xt, incx, result, rt, et);                                                                      \
  }
SX_EXTENDED(int, )
SX_EXTENDED(int64_t, _64)
