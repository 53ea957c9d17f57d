#include "transform.h"

#include <algorithm>

#include "halves.h"
#include "host_cpu.h"
#include "parallel.h"
#include "pass.h"
#include "tables.h"

namespace sx::fft {
namespace {

constexpr size_t kAlign = 64;

size_t aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Compiled with or without AVX2: the same sources.
template <class T>
const Engine<T> &engine();
template <>
const Engine<float> &engine() {
  static const Engine<float> &chosen = host_runs(0) ? avx2::kFloat : baseline::kFloat;
  return chosen;
}
template <>
const Engine<double> &engine() {
  static const Engine<double> &chosen = host_runs(0) ? avx2::kDouble : baseline::kDouble;
  return chosen;
}

size_t product(const std::vector<size_t> &numbers) {
  size_t all = 1;
  for (size_t n : numbers) all *= n;
  return all;
}

// Dense rows.
Side packed(const std::vector<size_t> &lengths) {
  Side side;
  side.strides.resize(lengths.size());
  std::ptrdiff_t step = 1;
  for (size_t d = lengths.size(); d-- > 0;) {
    side.strides[d] = step;
    step *= static_cast<std::ptrdiff_t>(lengths[d]);
  }
  side.distance = step;
  return side;
}

// Copies a batch of arrays; numbers of `width` parts (1 real, 2 complex).
template <class From, class To, class Convert>
void copy(const std::vector<size_t> &lengths, size_t batch, int width, const Side &from, const Side &to, const From *x, To *y,
          Convert convert) {
  const size_t rank = lengths.size(), each = product(lengths);
  for (size_t b = 0; b < batch; ++b)
    for (size_t i = 0; i < each; ++i) {
      std::ptrdiff_t source = static_cast<std::ptrdiff_t>(b) * from.distance, target = static_cast<std::ptrdiff_t>(b) * to.distance;
      size_t rest = i;
      for (size_t d = rank; d-- > 0; rest /= lengths[d]) {
        source += static_cast<std::ptrdiff_t>(rest % lengths[d]) * from.strides[d];
        target += static_cast<std::ptrdiff_t>(rest % lengths[d]) * to.strides[d];
      }
      for (int part = 0; part < width; ++part) y[target * width + part] = convert(x[source * width + part]);
    }
}

template <class T>
class PlanOf : public Plan {
 public:
  PlanOf(Kind kind, const std::vector<size_t> &lengths) : kind_(kind), lengths_(lengths), halved_(lengths) {
    for (size_t d = 0; d + 1 < lengths.size(); ++d) lines_.push_back(tables<T>(lengths[d]));
    const size_t n = lengths.back();
    if (kind == Kind::Complex) {
      lines_.push_back(tables<T>(n));
      return;
    }
    halved_.back() = n / 2 + 1;
    lines_.push_back(tables<T>(n % 2 ? n : n / 2));
    if (n % 2) return;
    const Roots roots(n);
    twist_.resize(2 * halved_.back());
    for (size_t k = 0; k < halved_.back(); ++k) roots.put(k, &twist_[2 * k]);
  }

  const std::vector<size_t> &in_lengths() const { return kind_ == Kind::ComplexToReal ? halved_ : lengths_; }
  const std::vector<size_t> &out_lengths() const { return kind_ == Kind::RealToComplex ? halved_ : lengths_; }
  int in_width() const { return kind_ == Kind::RealToComplex ? 1 : 2; }
  int out_width() const { return kind_ == Kind::ComplexToReal ? 1 : 2; }

  size_t workspace(const Layout &layout, bool overlap) const override {
    size_t bytes = threads(layout) * lines_bytes() + kAlign;
    if (through_copy()) bytes += aligned(2 * sizeof(T) * product(halved_));
    if (overlap && !in_place(layout))
      bytes += aligned(static_cast<size_t>(in_width()) * sizeof(T) * product(in_lengths()) * layout.batch);
    return bytes;
  }

  void run(const Layout &layout, bool overlap, bool inverse, const void *in, void *out, char *workspace) const override {
    workspace += (kAlign - reinterpret_cast<uintptr_t>(workspace) % kAlign) % kAlign;
    Layout mine = layout;
    const T *x = static_cast<const T *>(in);
    if (overlap && !in_place(layout)) {
      T *saved = reinterpret_cast<T *>(workspace);
      workspace += aligned(static_cast<size_t>(in_width()) * sizeof(T) * product(in_lengths()) * layout.batch);
      mine.in = packed(in_lengths());
      copy(in_lengths(), layout.batch, in_width(), layout.in, mine.in, x, saved, [](T v) { return v; });
      x = saved;
    }
    if (through_copy()) return run_through_copy(mine, x, static_cast<T *>(out), workspace);
    run_forward(mine, inverse, x, static_cast<T *>(out), workspace);
  }

 private:
  // Of real output all dimensions but the last are transformed elsewhere: the input is not changed, and the output has no
  // room.
  bool through_copy() const { return kind_ == Kind::ComplexToReal && lengths_.size() > 1; }

  // Whether a run may read and write the same memory: each line is stored where it was read.
  bool in_place(const Layout &layout) const {
    const std::ptrdiff_t in = in_width(), out = out_width();
    const size_t last = lengths_.size() - 1;
    if (layout.batch > 1 && layout.in.distance * in != layout.out.distance * out) return false;
    for (size_t d = 0; d < last; ++d)
      if (layout.in.strides[d] * in != layout.out.strides[d] * out) return false;
    if (kind_ == Kind::Complex) return layout.in.strides[last] == layout.out.strides[last];
    return layout.in.strides[last] == 1 && layout.out.strides[last] == 1;
  }

  unsigned threads(const Layout &layout) const { return threads_for(product(lengths_) * layout.batch); }

  size_t lines_bytes() const {
    size_t most = 0;
    for (const auto &line : lines_) most = std::max(most, pass_workspace(line->line));
    return most * sizeof(T);
  }

  // The last dimension first, from the input to the output; then the others in the output.
  void run_forward(const Layout &layout, bool inverse, const T *x, T *y, char *workspace) const {
    const size_t rank = lengths_.size();
    for (size_t d = rank; d-- > 0;) {
      const bool last = d == rank - 1;
      const Side &from = last ? layout.in : layout.out;
      Form form = inverse ? Form::Backward : Form::Forward;
      if (last && kind_ == Kind::RealToComplex) form = Form::RealToComplex;
      if (last && kind_ == Kind::ComplexToReal) form = Form::ComplexToReal;
      run_pass(d, form, last ? in_lengths() : out_lengths(), layout.batch, from, layout.out, last ? x : y, y, workspace,
               threads(layout));
    }
  }

  void run_through_copy(const Layout &layout, const T *x, T *y, char *workspace) const {
    T *middle = reinterpret_cast<T *>(workspace);
    workspace += aligned(2 * sizeof(T) * product(halved_));
    const Side dense = packed(halved_);
    const size_t last = lengths_.size() - 1;
    for (size_t b = 0; b < layout.batch; ++b) {
      const T *from = x + 2 * static_cast<std::ptrdiff_t>(b) * layout.in.distance;
      for (size_t d = 0; d < last; ++d)
        run_pass(d, Form::Backward, halved_, 1, d ? dense : layout.in, dense, d ? middle : from, middle, workspace,
                 threads(layout));
      run_pass(last, Form::ComplexToReal, halved_, 1, dense, layout.out, middle,
               y + static_cast<std::ptrdiff_t>(b) * layout.out.distance, workspace, threads(layout));
    }
  }

  // `lengths` are those of the complex side, which all dimensions but the last share.
  void run_pass(size_t d, Form form, const std::vector<size_t> &lengths, size_t batch, const Side &from, const Side &to,
                const T *x, T *y, char *workspace, unsigned threads) const {
    Lines lines{};
    const bool real = form == Form::RealToComplex || form == Form::ComplexToReal;
    lines.length = real ? lengths_[d] : lengths[d];
    lines.in = from.strides[d];
    lines.out = to.strides[d];
    Outer *place = lines.outer;
    *place++ = {batch, from.distance, to.distance};
    for (size_t other = 0; other < lengths.size(); ++other)
      if (other != d) *place++ = {lengths[other], from.strides[other], to.strides[other]};
    pass(engine<T>(), lines_[d]->line, twist_.data(), form, lines, x, y, reinterpret_cast<T *>(workspace), threads);
  }

  Kind kind_;
  std::vector<size_t> lengths_, halved_;  // of the complex side: n / 2 + 1 of the last
  std::vector<std::shared_ptr<const Tables<T>>> lines_;
  std::vector<T> twist_;
};

// 16-bit numbers: computed as float from beginning to end, and rounded once.
template <class E>
class NarrowPlan : public Plan {
 public:
  NarrowPlan(Kind kind, const std::vector<size_t> &lengths) : plan_(kind, lengths) {}

  size_t workspace(const Layout &layout, bool) const override {
    return in_bytes(layout) + out_bytes(layout) + plan_.workspace(dense(layout), false) + kAlign;
  }

  void run(const Layout &layout, bool, bool inverse, const void *in, void *out, char *workspace) const override {
    workspace += (kAlign - reinterpret_cast<uintptr_t>(workspace) % kAlign) % kAlign;
    float *x = reinterpret_cast<float *>(workspace), *y = reinterpret_cast<float *>(workspace + in_bytes(layout));
    const Layout wide = dense(layout);
    copy(plan_.in_lengths(), layout.batch, plan_.in_width(), layout.in, wide.in, static_cast<const E *>(in), x,
         [](E v) { return v.value(); });
    plan_.run(wide, false, inverse, x, y, workspace + in_bytes(layout) + out_bytes(layout));
    copy(plan_.out_lengths(), layout.batch, plan_.out_width(), wide.out, layout.out, y, static_cast<E *>(out),
         [](float v) { return E::of(v); });
  }

 private:
  Layout dense(const Layout &layout) const {
    return {packed(plan_.in_lengths()), packed(plan_.out_lengths()), layout.batch};
  }
  size_t in_bytes(const Layout &layout) const {
    return aligned(static_cast<size_t>(plan_.in_width()) * 4 * product(plan_.in_lengths()) * layout.batch);
  }
  size_t out_bytes(const Layout &layout) const {
    return aligned(static_cast<size_t>(plan_.out_width()) * 4 * product(plan_.out_lengths()) * layout.batch);
  }

  PlanOf<float> plan_;
};

}  // namespace

std::unique_ptr<Plan> make_plan(Kind kind, Element element, const std::vector<size_t> &lengths) {
  switch (element) {
    case Element::Half: return std::make_unique<NarrowPlan<Half>>(kind, lengths);
    case Element::BFloat16: return std::make_unique<NarrowPlan<BFloat16>>(kind, lengths);
    case Element::Float: return std::make_unique<PlanOf<float>>(kind, lengths);
    case Element::Double: break;
  }
  return std::make_unique<PlanOf<double>>(kind, lengths);
}

}  // namespace sx::fft
