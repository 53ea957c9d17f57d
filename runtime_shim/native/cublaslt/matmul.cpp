#include "matmul.h"

#include <algorithm>
#include <cmath>

#include "../cublas/handle.h"
#include "../cublas/numbers.h"
#include "epilogue.h"

namespace sx::lt {
namespace {

using cublas::size_of;

const char *base(const Layout &l, const void *at, int64_t index) {
  if (l.batch_mode == kBatchPointers) return static_cast<const char *const *>(at)[index];
  return static_cast<const char *>(at) + index * l.batch_step * static_cast<int64_t>(size_of(l.type));
}

// Elements from one of a column to the next, and from one column to the next.
int64_t row_step(const Layout &l) { return l.order == kOrderRow ? l.ld : 1; }
int64_t column_step(const Layout &l) { return l.order == kOrderRow ? 1 : l.ld; }

template <class T>
constexpr bool kComplex = !std::is_arithmetic_v<T>;

template <class T>
constexpr int type_of() {
  return std::is_same_v<T, float> ? kR32F : std::is_same_v<T, double> ? kR64F : std::is_same_v<T, Float2> ? kC32F : kC64F;
}

float scale_at(const void *at, int64_t index) { return at ? static_cast<const float *>(at)[index] : 1.0f; }

}  // namespace

Matmul::Matmul(const Plan &plan, const Arguments &arguments) : p_(plan), g_(arguments) {
  const size_t size = size_of(p_.o.scale);
  const int mode = p_.o.pointer_mode;
  if (mode == kHost) memcpy(kept_[0], g_.alpha, size);
  if (mode == kHost || mode == kAlphaVectorBetaHost) memcpy(kept_[1], g_.beta, size);
}

// alpha (0) or beta (1), of the scale type, for a row of D.
template <class T>
T Matmul::factor(int which, int64_t row) const {
  const int mode = p_.o.pointer_mode;
  if (which && mode == kAlphaVectorBetaZero) return T();
  const void *at = which ? g_.beta : g_.alpha;
  int64_t index = 0;
  if (mode == kHost || (which && mode == kAlphaVectorBetaHost)) at = kept_[which];
  else if (mode != kDevice) index = row;
  if constexpr (std::is_same_v<T, float>)
    if (p_.o.scale == kR16F) return static_cast<const cublas::Half *>(at)[index].value();
  return static_cast<const T *>(at)[index];
}

// The operand as BLAS takes it: in its place, or copied if it is of another type.
template <class T>
const T *Matmul::operand(const Layout &l, const char *from, int op, std::vector<T> &space, int64_t &ld, int &blas_op) {
  const bool row = l.order == kOrderRow;
  const auto lines = static_cast<int64_t>(row ? l.rows : l.columns), length = static_cast<int64_t>(row ? l.columns : l.rows);
  // A matrix by rows is its transpose by columns.
  blas_op = row ? (op == 0 ? 112 : 111) : 111 + op;
  const bool conjugated = kComplex<T> && row && op == 2;
  ld = l.ld;
  if (l.type == type_of<T>() && !conjugated) return reinterpret_cast<const T *>(from);
  ld = std::max<int64_t>(length, 1);
  space.resize(static_cast<size_t>(lines) * static_cast<size_t>(length));
  for (int64_t j = 0; j < lines; ++j) {
    T *to = space.data() + j * length;
    const char *line = from + j * l.ld * static_cast<int64_t>(size_of(l.type));
    if constexpr (kComplex<T>)
      for (int64_t i = 0; i < length; ++i) to[i] = std::conj(reinterpret_cast<const T *>(line)[i]);
    else cublas::widen(line, l.type, length, 1, to);
  }
  return space.data();
}

template <class T>
void Matmul::run(int64_t index) {
  const int64_t m = p_.m, n = p_.n, k = p_.k;
  const char *c = base(p_.c, g_.c, index);
  char *d = const_cast<char *>(base(p_.d, g_.d, index));
  std::vector<T> a_space, b_space;
  int64_t lda = 0, ldb = 0;
  int op_a = 0, op_b = 0;
  const T *a = operand<T>(p_.a, base(p_.a, g_.a, index), p_.o.op_a, a_space, lda, op_a);
  const T *b = operand<T>(p_.b, base(p_.b, g_.b, index), p_.o.op_b, b_space, ldb, op_b);
  const bool plain = p_.o.epilogue == kDefault && p_.o.pointer_mode <= kDevice && p_.d.type == type_of<T>() &&
                     p_.c.type == p_.d.type && p_.o.scale == p_.d.type && p_.d.order == kOrderCol && c == d && p_.c.ld == p_.d.ld &&
                     p_.c.order == kOrderCol && !p_.o.a_scale && !p_.o.b_scale && !p_.o.c_scale && !p_.o.d_scale && !p_.o.amax;
  if (plain) {
    cublas::gemm(op_a, op_b, m, n, k, factor<T>(0, 0), a, lda, b, ldb, factor<T>(1, 0), reinterpret_cast<T *>(d), p_.d.ld);
    return;
  }
  std::vector<T> product(static_cast<size_t>(m) * static_cast<size_t>(n));
  cublas::gemm(op_a, op_b, m, n, k, T(1), a, lda, b, ldb, T(), product.data(), std::max<int64_t>(m, 1));

  const auto c_size = static_cast<int64_t>(size_of(p_.c.type)), d_size = static_cast<int64_t>(size_of(p_.d.type));
  if constexpr (kComplex<T>) {
    const T alpha = factor<T>(0, 0), beta = factor<T>(1, 0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        T value = alpha * product[static_cast<size_t>(j * m + i)];
        if (beta != T()) value += beta * *reinterpret_cast<const T *>(c + (i * row_step(p_.c) + j * column_step(p_.c)) * c_size);
        memcpy(d + (i * row_step(p_.d) + j * column_step(p_.d)) * d_size, &value, sizeof value);
      }
  } else if (p_.o.scale == kR32I) {
    const auto alpha = static_cast<uint32_t>(factor<int32_t>(0, 0)), beta = static_cast<uint32_t>(factor<int32_t>(1, 0));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        // Modulo 2^32, as integers are.
        uint32_t value = alpha * static_cast<uint32_t>(static_cast<int64_t>(product[static_cast<size_t>(j * m + i)])), old = 0;
        if (beta) memcpy(&old, c + (i * row_step(p_.c) + j * column_step(p_.c)) * c_size, sizeof old);
        value += beta * old;
        memcpy(d + (i * row_step(p_.d) + j * column_step(p_.d)) * d_size, &value, sizeof value);
      }
  } else {
    // What follows the sums of bytes' products is float's.
    using R = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const bool integers = p_.kind == Kind::Integers;
    const bool rows_differ = p_.o.pointer_mode > kDevice;
    auto get = [&](int which, int64_t i) { return integers ? static_cast<R>(factor<float>(which, i)) : static_cast<R>(factor<T>(which, i)); };
    const bool a_vector = p_.o.a_scale_mode == kScaleOuterVector, b_vector = p_.o.b_scale_mode == kScaleOuterVector;
    const R c_scale = scale_at(p_.o.c_scale, 0), d_scale = scale_at(p_.o.d_scale, 0);
    const R first[2] = {get(0, 0), get(1, 0)};
    std::vector<R> column(static_cast<size_t>(m)), old(static_cast<size_t>(m));
    EpiloguePass<R> pass(p_, index);
    R most = 0;
    for (int64_t j = 0; j < n; ++j) {
      const R b_scale = scale_at(p_.o.b_scale, b_vector ? j : 0);
      if (rows_differ || first[1] != 0) cublas::widen(c + j * column_step(p_.c) * c_size, p_.c.type, m, row_step(p_.c), old.data());
      for (int64_t i = 0; i < m; ++i) {
        const auto at = static_cast<size_t>(i);
        const R alpha = rows_differ ? get(0, i) : first[0], beta = rows_differ ? get(1, i) : first[1];
        R value = alpha * static_cast<R>(product[static_cast<size_t>(j * m + i)]);
        if (p_.o.a_scale || p_.o.b_scale) value *= scale_at(p_.o.a_scale, a_vector ? i : 0) * b_scale;
        if (beta != 0) value += beta * c_scale * old[at];
        column[at] = value;
      }
      pass.column(j, column.data());
      if (p_.o.amax)
        for (R v : column) most = std::isnan(v) ? v : std::max(most, std::abs(v));
      if (p_.o.d_scale)
        for (R &v : column) v *= d_scale;
      cublas::narrow(column.data(), p_.d.type, m, row_step(p_.d), d + j * column_step(p_.d) * d_size);
    }
    pass.finish();
    if (p_.o.amax) {
      auto *to = static_cast<float *>(p_.o.amax);
      *to = index == 0 ? static_cast<float>(most) : std::max(*to, static_cast<float>(most));
    }
    if (p_.o.epilogue & (kBiasGradientA | kBiasGradientB)) {
      // Sums over k: of the rows of op(A), or the columns of op(B).
      const bool of_a = p_.o.epilogue & kBiasGradientA;
      const int64_t count = of_a ? m : n;
      std::vector<R> sums(static_cast<size_t>(count));
      const T *from = of_a ? a : b;
      const int64_t ld = of_a ? lda : ldb;
      const bool along = of_a ? op_a != 111 : op_b == 111;  // k runs along memory
      for (int64_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) sum += static_cast<double>(along ? from[i * ld + l] : from[l * ld + i]);
        sums[static_cast<size_t>(i)] = static_cast<R>(sum);
      }
      pass.store_bias(sums.data(), count);
    }
  }
}

// What arrays of pointers hold is known only now.
bool Matmul::named_usable(int64_t index) const {
  if (p_.d.batch_mode != kBatchPointers) return true;
  const Layout *layouts[] = {&p_.a, &p_.b, &p_.c, &p_.d};
  const void *arrays[] = {g_.a, g_.b, g_.c, g_.d};
  for (int i = 0; i < 4; ++i) {
    const Layout &l = *layouts[i];
    const auto rows = static_cast<int64_t>(l.rows), columns = static_cast<int64_t>(l.columns);
    const uint64_t extent = l.order == kOrderRow ? cublas::matrix_extent(columns, rows, l.ld) : cublas::matrix_extent(rows, columns, l.ld);
    const char *at = base(l, arrays[i], index);
    if (extent && !replace::reachable_from_work(at, cublas::times(extent, size_of(l.type)), i == 3)) return cublas::fault("cublasLtMatmul", at), false;
  }
  return true;
}

void Matmul::operator()() {
  for (int64_t i = 0; i < p_.d.batch && named_usable(i); ++i) switch (p_.kind) {
      case Kind::Float: run<float>(i); break;
      case Kind::Double:
      case Kind::Integers: run<double>(i); break;
      case Kind::Complex: run<Float2>(i); break;
      case Kind::DoubleComplex: run<Double2>(i); break;
    }
}

}  // namespace sx::lt
