// cuFFT's imitation of FFTW's interface.  Its arrays are the program's own memory and its calls return when the work is done,
// so the host does it, whatever the device.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "float_controls.h"
#include "log.h"
#include "transform.h"

#define SX_API extern "C" __attribute__((visibility("default")))

namespace {

using sx::fft::Element;
using sx::fft::Kind;

// A dimension: length, and strides of input and output in elements.
struct Dimension {
  std::ptrdiff_t n, in, out;
};

struct Plan {
  std::unique_ptr<sx::fft::Plan> transform;
  sx::fft::Layout layout;
  std::vector<Dimension> loops;  // of transforms, beyond the layout's batch
  bool inverse = false;
  void *in = nullptr, *out = nullptr;
  size_t in_size = 0, out_size = 0;  // of elements, in bytes
};

constexpr std::ptrdiff_t kMost = std::ptrdiff_t{1} << 40;

bool sane(const std::vector<Dimension> &dimensions) {
  std::ptrdiff_t all = 1;
  for (const Dimension &d : dimensions)
    if (d.n < 1 || __builtin_mul_overflow(all, d.n, &all) || all > kMost) return false;
  return true;
}

// FFTW's answer to what cannot be planned is no plan.
Plan *make(Kind kind, Element element, const std::vector<Dimension> &lengths, std::vector<Dimension> batch, void *in, void *out,
           int sign) {
  if (lengths.empty() || lengths.size() > 3 || !sane(lengths) || !sane(batch) || !in || !out || (sign != 1 && sign != -1))
    return nullptr;
  const size_t part = element == Element::Double ? 8 : 4;
  try {
    auto plan = std::make_unique<Plan>();
    std::vector<size_t> sizes;
    for (const Dimension &d : lengths) {
      sizes.push_back(static_cast<size_t>(d.n));
      plan->layout.in.strides.push_back(d.in);
      plan->layout.out.strides.push_back(d.out);
    }
    if (!batch.empty()) {
      plan->layout.batch = static_cast<size_t>(batch.back().n);
      plan->layout.in.distance = batch.back().in;
      plan->layout.out.distance = batch.back().out;
      batch.pop_back();
    }
    plan->loops = std::move(batch);
    plan->inverse = sign == 1;
    plan->in = in;
    plan->out = out;
    plan->in_size = part * (kind == Kind::RealToComplex ? 1 : 2);
    plan->out_size = part * (kind == Kind::ComplexToReal ? 1 : 2);
    const sx::FloatControls defaults;
    plan->transform = sx::fft::make_plan(kind, element, sizes);
    return plan.release();
  } catch (const std::bad_alloc &) {
    return nullptr;
  } catch (const std::length_error &) {
    return nullptr;
  }
}

// Storage of one side in rows: the lengths themselves where none is given, which is, on the real side of a transform in
// place, the room of the complex row.  None if a stride is no number of 64 bits.
std::vector<std::ptrdiff_t> strides(Kind kind, bool out, bool in_place, int rank, const int *n, const int *embed,
                                    std::ptrdiff_t stride) {
  std::vector<std::ptrdiff_t> all(static_cast<size_t>(rank));
  const Kind real = out ? Kind::ComplexToReal : Kind::RealToComplex, halved = out ? Kind::RealToComplex : Kind::ComplexToReal;
  for (int d = rank - 1; d >= 0; --d) {
    all[static_cast<size_t>(d)] = stride;
    std::ptrdiff_t length = n[d];
    if (d == rank - 1 && (kind == halved || (kind == real && in_place))) length = length / 2 + 1;
    if (d == rank - 1 && kind == real && in_place) length *= 2;
    if (d > 0 && __builtin_mul_overflow(stride, embed ? embed[d] : length, &stride)) return {};
  }
  return all;
}

struct Many {
  const int *embed;
  int stride, distance;
};

Plan *make_many(Kind kind, Element element, int rank, const int *n, int count, void *in, Many from, void *out, Many to, int sign) {
  if (rank < 1 || rank > 3 || !n) return nullptr;
  const std::vector<std::ptrdiff_t> is = strides(kind, false, in == out, rank, n, from.embed, from.stride);
  const std::vector<std::ptrdiff_t> os = strides(kind, true, in == out, rank, n, to.embed, to.stride);
  if (is.empty() || os.empty()) return nullptr;
  std::vector<Dimension> lengths(is.size());
  for (size_t d = 0; d < is.size(); ++d) lengths[d] = {n[d], is[d], os[d]};
  return make(kind, element, lengths, {{count, from.distance, to.distance}}, in, out, sign);
}

Plan *make_dense(Kind kind, Element element, const std::vector<int> &n, void *in, void *out, int sign) {
  return make_many(kind, element, static_cast<int>(n.size()), n.data(), 1, in, {nullptr, 1, 0}, out, {nullptr, 1, 0}, sign);
}

template <class D>
Plan *make_guru(Kind kind, Element element, int rank, const D *dims, int many, const D *batch, void *in, void *out, int sign) {
  if (rank < 1 || rank > 3 || !dims || many < 0 || many > 16 || (many && !batch)) return nullptr;
  std::vector<Dimension> lengths(static_cast<size_t>(rank)), outer(static_cast<size_t>(many));
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = {dims[i].n, dims[i].is, dims[i].os};
  for (size_t i = 0; i < outer.size(); ++i) outer[i] = {batch[i].n, batch[i].is, batch[i].os};
  return make(kind, element, lengths, outer, in, out, sign);
}

void execute(const Plan *plan, const char *in, char *out) {
  if (!plan || !in || !out) return;
  const bool overlap = in == out;  // other arrays that share memory are none of FFTW's
  const std::unique_ptr<char[]> workspace(new (std::nothrow) char[plan->transform->workspace(plan->layout, overlap)]);
  if (!workspace) {
    // There is no code to return, and a result that was not computed must not be taken for one.
    sx::log_line("SX0784: no memory for a Fourier transform of libcufftw");
    std::abort();
  }
  const sx::FloatControls defaults;
  std::vector<std::ptrdiff_t> at(plan->loops.size());
  for (;;) {
    std::ptrdiff_t from = 0, to = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      from += at[d] * plan->loops[d].in;
      to += at[d] * plan->loops[d].out;
    }
    plan->transform->run(plan->layout, overlap, plan->inverse, in + from * static_cast<std::ptrdiff_t>(plan->in_size),
                         out + to * static_cast<std::ptrdiff_t>(plan->out_size), workspace.get());
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == plan->loops[d - 1].n) at[--d] = 0;
    if (d == 0) return;
  }
}

struct Iodim {
  int n, is, os;
};
struct Iodim64 {
  std::ptrdiff_t n, is, os;
};

}  // namespace

// The functions of one precision.  A sign is there for complex transforms alone.
#define SX_KIND(prefix, element, name, kind, SIGN, sign)                                                                     \
  SX_API Plan *prefix##_plan_dft##name##_1d(int n, void *in, void *out SIGN, unsigned) {                                    \
    return make_dense(kind, element, {n}, in, out, sign);                                                                   \
  }                                                                                                                         \
  SX_API Plan *prefix##_plan_dft##name##_2d(int a, int b, void *in, void *out SIGN, unsigned) {                             \
    return make_dense(kind, element, {a, b}, in, out, sign);                                                                \
  }                                                                                                                         \
  SX_API Plan *prefix##_plan_dft##name##_3d(int a, int b, int c, void *in, void *out SIGN, unsigned) {                      \
    return make_dense(kind, element, {a, b, c}, in, out, sign);                                                             \
  }                                                                                                                         \
  SX_API Plan *prefix##_plan_dft##name(int rank, const int *n, void *in, void *out SIGN, unsigned) {                        \
    return make_many(kind, element, rank, n, 1, in, {nullptr, 1, 0}, out, {nullptr, 1, 0}, sign);                           \
  }                                                                                                                         \
  SX_API Plan *prefix##_plan_many_dft##name(int rank, const int *n, int count, void *in, const int *inembed, int istride,   \
                                            int idist, void *out, const int *onembed, int ostride, int odist SIGN,          \
                                            unsigned) {                                                                     \
    return make_many(kind, element, rank, n, count, in, {inembed, istride, idist}, out, {onembed, ostride, odist}, sign);   \
  }                                                                                                                         \
  SX_API Plan *prefix##_plan_guru_dft##name(int rank, const Iodim *dims, int many, const Iodim *batch, void *in,            \
                                            void *out SIGN, unsigned) {                                                     \
    return make_guru(kind, element, rank, dims, many, batch, in, out, sign);                                                \
  }                                                                                                                         \
  SX_API Plan *prefix##_plan_guru64_dft##name(int rank, const Iodim64 *dims, int many, const Iodim64 *batch, void *in,      \
                                              void *out SIGN, unsigned) {                                                   \
    return make_guru(kind, element, rank, dims, many, batch, in, out, sign);                                                \
  }
#define SX_SIGN , int sign
#define SX_NO_SIGN

#define SX_PRECISION(prefix, element)                                                                                       \
  SX_KIND(prefix, element, , Kind::Complex, SX_SIGN, sign)                                                                  \
  SX_KIND(prefix, element, _r2c, Kind::RealToComplex, SX_NO_SIGN, -1)                                                       \
  SX_KIND(prefix, element, _c2r, Kind::ComplexToReal, SX_NO_SIGN, 1)                                                        \
  SX_API void prefix##_execute(const Plan *plan) {                                                                          \
    if (plan) execute(plan, static_cast<const char *>(plan->in), static_cast<char *>(plan->out));                           \
  }                                                                                                                         \
  SX_API void prefix##_execute_dft(const Plan *plan, const char *in, char *out) { execute(plan, in, out); }                 \
  SX_API void prefix##_execute_dft_r2c(const Plan *plan, const char *in, char *out) { execute(plan, in, out); }             \
  SX_API void prefix##_execute_dft_c2r(const Plan *plan, const char *in, char *out) { execute(plan, in, out); }             \
  SX_API void prefix##_destroy_plan(const Plan *plan) { delete plan; }                                                      \
  SX_API void prefix##_cleanup() {}                                                                                         \
  SX_API void *prefix##_malloc(size_t size) { return malloc(size); }                                                        \
  SX_API void prefix##_free(void *memory) { free(memory); }                                                                 \
  SX_API void prefix##_print_plan(const Plan *) {}                                                                          \
  SX_API void prefix##_set_timelimit(double) {}                                                                             \
  SX_API double prefix##_cost(const Plan *) { return 0; }                                                                   \
  SX_API void prefix##_flops(const Plan *, double *add, double *mul, double *fma) { *add = *mul = *fma = 0; }               \
  SX_API void prefix##_export_wisdom_to_file(FILE *) {}                                                                     \
  SX_API int prefix##_import_wisdom_from_file(FILE *) { return 0; }

SX_PRECISION(fftw, Element::Double)
SX_PRECISION(fftwf, Element::Float)
