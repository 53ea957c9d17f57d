// Plane rotations.
#pragma once
#include <vector>

#include "vectors.h"

namespace sx::cublas {

// x = c x + s y, y = c y - conj(s) x
template <class T, class S>
cublasStatus do_rot(cublasHandle handle, const char *name, int64_t n, T *x, int64_t incx, T *y, int64_t incy, const Real<T> *c, const S *s) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!c || !s) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    if (!vector_usable(x, n, incx, name) || !vector_usable(y, n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return submit(h, [=, fc = Scalar<Real<T>>(h, c), fs = Scalar<S>(h, s)] {
      const Real<T> cosine = fc.get();
      const S sine = fs.get();
      for (int64_t i = 0; i < n; ++i) {
        T &a = element(x, n, incx, i), &b = element(y, n, incy, i);
        const T old = a;
        a = cosine * old + sine * b;
        b = cosine * b - conjugate(sine) * old;
      }
    });
  });
}

template <class T>
void make_rotation(T *a, T *b, Real<T> *c, T *s) {
  using R = Real<T>;
  const R size_a = std::abs(*a), size_b = std::abs(*b), scale = size_a + size_b;
  if constexpr (std::is_same_v<T, R>) {
    if (scale == 0) {
      *c = 1, *s = 0, *a = 0, *b = 0;
      return;
    }
    const R r = std::copysign(scale * std::sqrt(*a / scale * (*a / scale) + *b / scale * (*b / scale)), size_a > size_b ? *a : *b);
    *c = *a / r;
    *s = *b / r;
    const R z = size_a > size_b ? *s : *c != 0 ? 1 / *c : R(1);
    *a = r;
    *b = z;
  } else {
    if (size_a == 0) {
      *c = 0, *s = T(1), *a = *b;
      return;
    }
    const R norm = scale * std::sqrt(size_a / scale * (size_a / scale) + size_b / scale * (size_b / scale));
    const T direction = *a / size_a;
    *c = size_a / norm;
    *s = direction * std::conj(*b) / norm;
    *a = direction * norm;
  }
}

// Numbers that are on the host are worked on at once, after what the stream holds has no part in it.
template <class F, class... T>
cublasStatus on_scalars(cublasContext &h, F body, T *...at) {
  if (h.pointer_mode == kPointerDevice) {
    const bool there = (usable(at, 1, sizeof *at, "cuBLAS", !std::is_const_v<T>) && ...);
    return there ? submit(h, body) : CUBLAS_STATUS_EXECUTION_FAILED;
  }
  body();
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus do_rotg(cublasHandle handle, T *a, T *b, Real<T> *c, T *s) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!a || !b || !c || !s) return CUBLAS_STATUS_INVALID_VALUE;
    return on_scalars(h, [=] { make_rotation(a, b, c, s); }, a, b, c, s);
  });
}

template <class T>
cublasStatus do_rotm(cublasHandle handle, const char *name, int64_t n, T *x, int64_t incx, T *y, int64_t incy, const T *param) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!param) return CUBLAS_STATUS_INVALID_VALUE;
    if (n <= 0) return CUBLAS_STATUS_SUCCESS;
    if (!vector_usable(x, n, incx, name) || !vector_usable(y, n, incy, name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    const bool device = h.pointer_mode == kPointerDevice;
    if (device && !usable(param, 5, sizeof(T), name)) return CUBLAS_STATUS_EXECUTION_FAILED;
    std::vector<T> kept(5);
    if (!device) std::copy_n(param, 5, kept.begin());
    return submit(h, [=] {
      const T *p = device ? param : kept.data();
      const T flag = p[0];
      if (flag == -2) return;
      const T h11 = flag == 0 ? 1 : p[1], h21 = flag == 1 ? -1 : p[2], h12 = flag == 1 ? 1 : p[3], h22 = flag == 0 ? 1 : p[4];
      for (int64_t i = 0; i < n; ++i) {
        T &a = element(x, n, incx, i), &b = element(y, n, incy, i);
        const T old = a;
        a = old * h11 + b * h12;
        b = old * h21 + b * h22;
      }
    });
  });
}

inline void host_rotmg(float *d1, float *d2, float *x1, float y1, float *param) { host_blas().srotmg(d1, d2, x1, y1, param); }
inline void host_rotmg(double *d1, double *d2, double *x1, double y1, double *param) { host_blas().drotmg(d1, d2, x1, y1, param); }

template <class T>
cublasStatus do_rotmg(cublasHandle handle, T *d1, T *d2, T *x1, const T *y1, T *param) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!d1 || !d2 || !x1 || !y1 || !param) return CUBLAS_STATUS_INVALID_VALUE;
    if (h.pointer_mode == kPointerDevice && !usable(param, 5, sizeof(T), "cublasRotmg", true)) return CUBLAS_STATUS_EXECUTION_FAILED;
    return on_scalars(h, [=] { host_rotmg(d1, d2, x1, *y1, param); }, d1, d2, x1, y1);
  });
}

}  // namespace sx::cublas
