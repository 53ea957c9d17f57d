#include "tables.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>

namespace sx::fft {
namespace {

constexpr Size kShortest = 128;  // lines from this length on are worth being a matrix when they are alone

std::vector<unsigned long> factors(Size n) {
  std::vector<unsigned long> out;
  while (n % 4 == 0) out.push_back(4), n /= 4;
  for (unsigned long p = 2; p * p <= n; p += p == 2 ? 1 : 2)
    while (n % p == 0) out.push_back(p), n /= p;
  if (n > 1) out.push_back(n);
  return out;
}

// In arbitrary units: a butterfly of a prime with code of its own costs its points, another one the square of them.
double cost(Size n, const std::vector<unsigned long> &radices) {
  double sum = 0;
  for (unsigned long p : radices) sum += p <= 5 ? static_cast<double>(p) : 1.1 * static_cast<double>(p);
  return sum * static_cast<double>(n);
}

// The smallest 2^a 3^b 5^c with a >= 3 that is not less than n.
Size smooth(Size n) {
  Size best = 8;
  while (best < n) best *= 2;
  for (Size five = 8; five < best; five *= 5)
    for (Size three = five; three < best; three *= 3) {
      Size size = three;
      while (size < n) size *= 2;
      best = std::min(best, size);
    }
  return best;
}

// The greatest divisor of n up to its square root.
Size middle_divisor(Size n, const std::vector<unsigned long> &radices) {
  std::vector<Size> divisors = {1};
  for (Size r : radices)
    for (Size p : r == 4 ? std::vector<Size>{2, 2} : std::vector<Size>{r}) {
      const size_t count = divisors.size();
      for (size_t i = 0; i < count; ++i)
        if (divisors[i] <= n / p / divisors[i] / p) divisors.push_back(divisors[i] * p);
      std::sort(divisors.begin(), divisors.end());
      divisors.erase(std::unique(divisors.begin(), divisors.end()), divisors.end());
    }
  return divisors.back();
}

template <class T>
void make_passes(Tables<T> &t, const std::vector<unsigned long> &radices) {
  const Size n = t.line.length;
  const Roots roots(n);
  Size stride = 1;
  Size widest = 0;
  for (unsigned long radix : radices) {
    const Size groups = n / stride / radix;
    std::vector<T> twiddles(groups * (radix - 1) * 2);
    // exp(-2 pi i j r / (radix groups)) = exp(-2 pi i j r stride / n)
    for (Size j = 0; j < groups; ++j)
      for (Size r = 1; r < radix; ++r) roots.put(j * r * stride, &twiddles[(j * (radix - 1) + r - 1) * 2]);
    t.numbers.push_back(std::move(twiddles));
    const T *w = t.numbers.back().data(), *own = nullptr;
    if (radix > 5) {
      std::vector<T> circle(2 * radix);
      for (Size r = 0; r < radix; ++r) roots.put(r * (n / radix), &circle[2 * r]);
      t.numbers.push_back(std::move(circle));
      own = t.numbers.back().data();
      widest = std::max<Size>(widest, radix);
    }
    t.passes.push_back({static_cast<unsigned>(radix), groups, stride, w, own});
    stride *= radix;
  }
  t.line.passes = t.passes.data();
  t.line.pass_count = t.passes.size();
  t.line.scratch_many = t.line.scratch_one = n + widest;
}

template <class T>
struct Aligned {
  explicit Aligned(Size count) : all(count + 64 / sizeof(T)) {
    data = all.data();
    while (reinterpret_cast<uintptr_t>(data) % 64) ++data;
  }
  std::vector<T> all;
  T *data;
};

// The transform of the chirp's conjugate over the inner length m, divided by m.  In double precision for both types.
std::vector<double> chirp_spectrum(const std::vector<double> &chirp, Size n, const Line<double> &inner) {
  const Size m = inner.length;
  Aligned<double> data(2 * m), scratch(2 * inner.scratch_one);
  for (Size j = 0; j < n; ++j)
    for (Size at : {j, (m - j) % m}) {
      data.data[2 * at] = chirp[2 * j] / static_cast<double>(m);
      data.data[2 * at + 1] = -chirp[2 * j + 1] / static_cast<double>(m);
    }
  const double *done = baseline::kDouble.one(inner, data.data, scratch.data);
  return {done, done + 2 * m};
}

template <class T>
void make_chirp(Tables<T> &t) {
  const Size n = t.line.length;
  const Size m = smooth(2 * n - 1);
  t.inner = tables<T>(m);
  t.line.inner = &t.inner->line;
  const Roots roots(2 * n);
  std::vector<double> exact(2 * n);
  std::vector<T> chirp(2 * n);
  Size square = 0;  // j j mod 2 n
  for (Size j = 0; j < n; ++j) {
    roots.put(square, &exact[2 * j]);
    roots.put(square, &chirp[2 * j]);
    square = (square + 2 * j + 1) % (2 * n);
  }
  const std::vector<double> spectrum = chirp_spectrum(exact, n, tables<double>(m)->line);
  t.numbers.push_back(std::move(chirp));
  t.line.chirp = t.numbers.back().data();
  t.numbers.emplace_back(spectrum.begin(), spectrum.end());
  t.line.spectrum = t.numbers.back().data();
  t.line.scratch_many = m + t.inner->line.scratch_many;
  t.line.scratch_one = m + t.inner->line.scratch_one;
}

template <class T>
void make_matrix(Tables<T> &t, Size a) {
  constexpr Size kWidth = kLanes<T>;
  const Size n = t.line.length, b = n / a;
  t.columns = tables<T>(a);
  t.rows = tables<T>(b);
  const Roots roots(n);
  std::vector<T> twist(2 * n);
  for (Size k = 0; k < a; ++k)
    for (Size j = 0; j < b; ++j) roots.put(k * j, &twist[2 * (k * b + j)]);
  t.numbers.push_back(std::move(twist));
  t.line.twist = t.numbers.back().data();
  t.line.columns = &t.columns->line;
  t.line.rows = &t.rows->line;
  const Size group = std::max(a, b) + std::max(t.columns->line.scratch_many, t.rows->line.scratch_many);
  t.line.scratch_one = n + kWidth + group * kWidth;
}

template <class T>
std::shared_ptr<const Tables<T>> make(Size n) {
  auto t = std::make_shared<Tables<T>>();
  t->line.length = n;
  const std::vector<unsigned long> radices = factors(n);
  const Size longer = smooth(2 * n - 1);
  // Bluestein's costs two transforms of its length, and half as much again for what is around them.
  if (cost(n, radices) <= 3 * cost(longer, factors(longer)) && (radices.empty() || radices.back() < (1u << 15)))
    make_passes(*t, radices);
  else
    make_chirp(*t);
  const Size a = n >= kShortest ? middle_divisor(n, radices) : 1;
  if (a >= kLanes<T> / 2) make_matrix(*t, a);
  return t;
}

template <class T>
struct Known {
  std::mutex mutex;
  std::map<Size, std::weak_ptr<const Tables<T>>> tables;
};

// Never destroyed: transforms may be enqueued by exit handlers.
template <class T>
Known<T> &known() {
  static auto *const all = new Known<T>;
  return *all;
}

}  // namespace

template <class T>
std::shared_ptr<const Tables<T>> tables(Size length) {
  Known<T> &all = known<T>();
  {
    std::lock_guard<std::mutex> guard(all.mutex);
    if (auto found = all.tables[length].lock()) return found;
  }
  auto made = make<T>(length);  // asks for tables of other lengths
  std::lock_guard<std::mutex> guard(all.mutex);
  auto &place = all.tables[length];
  if (auto found = place.lock()) return found;
  place = made;
  return made;
}

template std::shared_ptr<const Tables<float>> tables(Size);
template std::shared_ptr<const Tables<double>> tables(Size);

Roots::Roots(Size n) {
  while ((Size{1} << (2 * shift_)) < n) ++shift_;
  const Size low = Size{1} << shift_, high = (n - 1) / low + 1;
  // Angles up to an eighth of the circle are exact to the precision of the type; the rest is by symmetry.
  auto root = [n](Size k) -> Pair {
    const long double circle = 2 * 3.14159265358979323846264338327950288L / static_cast<long double>(n);
    Size eighths = 8 * (k % n);
    const unsigned octant = static_cast<unsigned>(eighths / n);
    Size k8 = eighths - octant * n;  // eight times the rest
    if (octant & 1) k8 = n - k8;
    const long double angle = circle * static_cast<long double>(k8) / 8;
    long double c = std::cos(angle), s = std::sin(angle);
    if (octant == 1 || octant == 2 || octant == 5 || octant == 6) std::swap(c, s);
    if (octant >= 2 && octant <= 5) c = -c;
    if (octant >= 4) s = -s;
    return {c, -s};
  };
  for (Size k = 0; k < low; ++k) low_.push_back(root(k));
  for (Size k = 0; k < high; ++k) high_.push_back(root((k * low) % n));
}

}  // namespace sx::fft
