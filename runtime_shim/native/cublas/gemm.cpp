#include "gemm.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "host_blas.h"
#include "numbers.h"

namespace sx::cublas {
namespace {

// How products are computed: in the types of BLAS, or in wider ones that the operands are copied to.
enum class Way { Float, Double, Complex, DoubleComplex, WidenToFloat, Integers, IntegersToFloat, None };

Way way_of(const Product &p) {
  const bool narrow = p.a_type == p.b_type && (p.a_type == kR16F || p.a_type == kR16BF);
  switch (p.compute) {
    case kCompute16F:
    case kCompute16FPedantic:
      return p.a_type == kR16F && p.b_type == kR16F && p.c_type == kR16F ? Way::WidenToFloat : Way::None;
    case kCompute32F:
    case kCompute32FPedantic:
    case kCompute32FFast16F:
    case kCompute32FFast16BF:
    case kCompute32FFastTf32:
    case kCompute32FEmulated:
      if (narrow && (p.c_type == p.a_type || p.c_type == kR32F)) return Way::WidenToFloat;
      if (p.a_type == kR8I && p.b_type == kR8I && p.c_type == kR32F) return Way::IntegersToFloat;
      if (p.a_type == kR32F && p.b_type == kR32F && p.c_type == kR32F) return Way::Float;
      if (p.a_type == kC32F && p.b_type == kC32F && p.c_type == kC32F) return Way::Complex;
      return Way::None;
    case kCompute64F:
    case kCompute64FPedantic:
      if (p.a_type == kR64F && p.b_type == kR64F && p.c_type == kR64F) return Way::Double;
      if (p.a_type == kC64F && p.b_type == kC64F && p.c_type == kC64F) return Way::DoubleComplex;
      return Way::None;
    case kCompute32I:
    case kCompute32IPedantic:
      return p.a_type == kR8I && p.b_type == kR8I && p.c_type == kR32I ? Way::Integers : Way::None;
    default: return Way::None;
  }
}

// The columns of a matrix, one after another.
template <class T>
void gather(const void *from, int type, int64_t rows, int64_t columns, int64_t ld, T *to) {
  const auto size = static_cast<int64_t>(size_of(type));
  for (int64_t j = 0; j < columns; ++j) widen(static_cast<const char *>(from) + j * ld * size, type, rows, 1, to + j * rows);
}

// The factors of the product, of the type that the compute type wants.
struct Factors {
  Factors(const cublasContext &handle, const Product &p, const void *a, const void *b) {
    device = handle.pointer_mode == kPointerDevice;
    half = p.compute == kCompute16F || p.compute == kCompute16FPedantic;
    alpha = a;
    beta = b;
    if (device) return;
    const size_t size = half ? 2 : p.compute == kCompute32I || p.compute == kCompute32IPedantic ? 4 : bytes(p);
    memcpy(kept[0], a, size);
    memcpy(kept[1], b, size);
  }
  static size_t bytes(const Product &p) { return p.c_type == kC64F ? 16 : p.c_type == kC32F || p.c_type == kR64F ? 8 : 4; }

  template <class T>
  T get(int which) const {
    T value{};
    const void *at = device ? (which ? beta : alpha) : kept[which];
    if (device && !replace::reachable_from_work(at, sizeof value)) fault("cuBLAS", at);
    else memcpy(&value, at, sizeof value);
    return value;
  }
  float real(int which) const { return half ? get<Half>(which).value() : get<float>(which); }

  const void *alpha, *beta;
  bool device, half;
  alignas(16) char kept[2][16];
};

template <class T>
void direct(const Product &p, const Factors &f, const void *a, const void *b, void *c) {
  gemm(op(p.op_a), op(p.op_b), p.m, p.n, p.k, f.get<T>(0), static_cast<const T *>(a), p.lda, static_cast<const T *>(b), p.ldb,
       f.get<T>(1), static_cast<T *>(c), p.ldc);
}

// Rows and columns of an operand as it is stored.
struct Stored {
  int64_t rows, columns;
  size_t count() const { return static_cast<size_t>(rows) * static_cast<size_t>(columns); }
};
Stored stored_a(const Product &p) { return p.op_a == 0 ? Stored{p.m, p.k} : Stored{p.k, p.m}; }
Stored stored_b(const Product &p) { return p.op_b == 0 ? Stored{p.k, p.n} : Stored{p.n, p.k}; }

// Products of 16-bit numbers are exact in float, whose sums are rounded; the result is rounded once more.
void wide_product(const Product &p, const Factors &f, const void *a, const void *b, void *c, std::vector<float> &space) {
  const Stored sa = stored_a(p), sb = stored_b(p);
  float *wa = space.data(), *wb = wa + sa.count(), *wc = wb + sb.count();
  gather(a, p.a_type, sa.rows, sa.columns, p.lda, wa);
  gather(b, p.b_type, sb.rows, sb.columns, p.ldb, wb);
  const float alpha = f.real(0), beta = f.real(1);
  const int64_t lda = std::max<int64_t>(sa.rows, 1), ldb = std::max<int64_t>(sb.rows, 1);
  if (p.c_type == kR32F) {
    gemm(op(p.op_a), op(p.op_b), p.m, p.n, p.k, alpha, wa, lda, wb, ldb, beta, static_cast<float *>(c), p.ldc);
    return;
  }
  if (beta != 0.0f) gather(c, p.c_type, p.m, p.n, p.ldc, wc);
  gemm(op(p.op_a), op(p.op_b), p.m, p.n, p.k, alpha, wa, lda, wb, ldb, beta, wc, p.m);
  for (int64_t j = 0; j < p.n; ++j) narrow(wc + j * p.m, p.c_type, p.m, 1, static_cast<char *>(c) + j * p.ldc * 2);
}

// Sums of bytes' products are exact in double.
void integer_product(const Product &p, const Factors &f, const void *a, const void *b, void *c, std::vector<double> &space) {
  const Stored sa = stored_a(p), sb = stored_b(p);
  double *wa = space.data(), *wb = wa + sa.count(), *wc = wb + sb.count();
  gather(a, p.a_type, sa.rows, sa.columns, p.lda, wa);
  gather(b, p.b_type, sb.rows, sb.columns, p.ldb, wb);
  gemm(op(p.op_a), op(p.op_b), p.m, p.n, p.k, 1.0, wa, std::max<int64_t>(sa.rows, 1), wb, std::max<int64_t>(sb.rows, 1), 0.0, wc,
       p.m);
  for (int64_t j = 0; j < p.n; ++j)
    for (int64_t i = 0; i < p.m; ++i, ++wc) {
      if (p.c_type == kR32F) {
        float &to = static_cast<float *>(c)[j * p.ldc + i];
        const float beta = f.get<float>(1), product = f.get<float>(0) * static_cast<float>(*wc);
        to = beta == 0.0f ? product : product + beta * to;
      } else {
        // Modulo 2^32, as integers are.
        auto &to = static_cast<int32_t *>(c)[j * p.ldc + i];
        const uint32_t product = static_cast<uint32_t>(f.get<int32_t>(0)) * static_cast<uint32_t>(static_cast<int64_t>(*wc));
        to = static_cast<int32_t>(product + static_cast<uint32_t>(f.get<int32_t>(1)) * static_cast<uint32_t>(to));
      }
    }
}

struct Job {
  const char *name;
  Product p;
  Way way;
  Factors f;
  Operands o;
  std::vector<float> floats;
  std::vector<double> doubles;

  void operator()() {
    for (int64_t i = 0; i < o.count; ++i) {
      const void *a = at(o.a, i, o.a_step, p.a_type), *b = at(o.b, i, o.b_step, p.b_type);
      void *c = const_cast<void *>(at(o.c, i, o.c_step, p.c_type));
      if (o.pointers && !named_usable(a, b, c)) continue;
      switch (way) {
        case Way::Float: direct<float>(p, f, a, b, c); break;
        case Way::Double: direct<double>(p, f, a, b, c); break;
        case Way::Complex: direct<Float2>(p, f, a, b, c); break;
        case Way::DoubleComplex: direct<Double2>(p, f, a, b, c); break;
        case Way::WidenToFloat: wide_product(p, f, a, b, c, floats); break;
        case Way::Integers:
        case Way::IntegersToFloat: integer_product(p, f, a, b, c, doubles); break;
        case Way::None: break;
      }
    }
  }
  // What an array of pointers holds is known only now.
  bool named_usable(const void *a, const void *b, const void *c) const {
    const Stored sa = stored_a(p), sb = stored_b(p);
    const uint64_t extents[] = {times(matrix_extent(sa.rows, sa.columns, p.lda), size_of(p.a_type)),
                                times(matrix_extent(sb.rows, sb.columns, p.ldb), size_of(p.b_type)),
                                times(matrix_extent(p.m, p.n, p.ldc), size_of(p.c_type))};
    const void *named[] = {a, b, c};
    for (int i = 0; i < 3; ++i)
      if (extents[i] && !replace::reachable_from_work(named[i], extents[i], i == 2)) return fault(name, named[i]), false;
    return true;
  }
  const void *at(const void *base, int64_t i, int64_t step, int type) const {
    if (o.pointers) return static_cast<const void *const *>(base)[i];
    return static_cast<const char *>(base) + i * step * static_cast<int64_t>(size_of(type));
  }
};

bool operands_usable(const char *name, const Product &p, const Operands &o) {
  if (o.pointers) {
    const auto count = static_cast<uint64_t>(o.count);
    return usable(o.a, count, 8, name) && usable(o.b, count, 8, name) && usable(o.c, count, 8, name);
  }
  const Stored a = stored_a(p), b = stored_b(p);
  return usable(o.a, batch_extent(matrix_extent(a.rows, a.columns, p.lda), o.count, o.a_step), size_of(p.a_type), name) &&
         usable(o.b, batch_extent(matrix_extent(b.rows, b.columns, p.ldb), o.count, o.b_step), size_of(p.b_type), name) &&
         usable(o.c, batch_extent(matrix_extent(p.m, p.n, p.ldc), o.count, o.c_step), size_of(p.c_type), name, true);
}

}  // namespace

cublasStatus multiply(cublasHandle handle, const char *name, const Product &p, const void *alpha, const void *beta,
                      const Operands &o) {
  return with_handle(handle, [&](cublasContext &h) -> cublasStatus {
    if (!op(p.op_a) || !op(p.op_b) || p.m < 0 || p.n < 0 || p.k < 0 || o.count < 0) return CUBLAS_STATUS_INVALID_VALUE;
    const Stored a = stored_a(p), b = stored_b(p);
    if (p.lda < std::max<int64_t>(1, a.rows) || p.ldb < std::max<int64_t>(1, b.rows) || p.ldc < std::max<int64_t>(1, p.m))
      return CUBLAS_STATUS_INVALID_VALUE;
    if (!alpha || !beta || (o.count > 1 && (o.a_step < 0 || o.b_step < 0 || o.c_step < 0))) return CUBLAS_STATUS_INVALID_VALUE;
    const Way way = way_of(p);
    if (way == Way::None) {
      char line[200];
      snprintf(line, sizeof line,
               "SX0780: %s of data types %d, %d and %d with compute type %d is not implemented; it returns 15 "
               "(CUBLAS_STATUS_NOT_SUPPORTED)",
               name, p.a_type, p.b_type, p.c_type, p.compute);
      replace::refuse(line, line);
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (p.m == 0 || p.n == 0 || o.count == 0) return CUBLAS_STATUS_SUCCESS;
    if (!operands_usable(name, p, o)) return CUBLAS_STATUS_EXECUTION_FAILED;
    Job job{name, p, way, Factors(h, p, alpha, beta), o, {}, {}};
    const size_t room = a.count() + b.count() + static_cast<size_t>(p.m) * static_cast<size_t>(p.n);
    if (way == Way::WidenToFloat) job.floats.resize(room);
    if (way == Way::Integers || way == Way::IntegersToFloat) job.doubles.resize(room);
    return submit(h, std::move(job));
  });
}

}  // namespace sx::cublas
