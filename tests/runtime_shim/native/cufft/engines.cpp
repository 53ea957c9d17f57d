// Runs the builds of fft/lines.cpp beside a sum in long double: lines alone and lines in vectors.  Prints the largest error
// in units of rounding for each build and type, and ends with 1 if one is beyond the bound of docs/runtime.md.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <vector>

#include "tables.h"

using namespace sx::fft;

namespace {

template <class T>
T *aligned(std::vector<T> &all, Size count) {
  all.assign(count + 64 / sizeof(T), T(0));
  T *data = all.data();
  while (reinterpret_cast<uintptr_t>(data) % 64) ++data;
  return data;
}

double number(uint64_t &state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(static_cast<int64_t>(state) >> 11) * 0x1p-52;
}

template <class T>
bool check(const char *name, const Engine<T> &engine) {
  double worst = 0;
  bool good = true;
  for (Size n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 16, 25, 30, 31, 49, 64, 97, 128, 143, 210, 251, 256, 360, 509, 512, 1000, 1018}) {
    const auto t = tables<T>(n);
    const Roots roots(n);
    for (Size lanes : {Size{1}, kLanes<T>}) {
      uint64_t state = n * 100 + lanes;
      std::vector<T> store, spare;
      T *data = aligned(store, 2 * n * lanes);
      T *scratch = aligned(spare, 2 * lanes * (lanes == 1 ? t->line.scratch_one : t->line.scratch_many));
      for (Size i = 0; i < 2 * n * lanes; ++i) data[i] = static_cast<T>(number(state));
      const std::vector<T> x(data, data + 2 * n * lanes);
      const T *y = lanes == 1 ? engine.one(t->line, data, scratch) : engine.many(t->line, data, scratch);
      for (Size lane = 0; lane < lanes; ++lane) {
        long double error = 0, norm = 0;
        for (Size k = 0; k < n; ++k) {
          long double re = 0, im = 0;
          for (Size j = 0; j < n; ++j) {
            long double w[2];
            roots.put(j * k % n, w);
            const long double a = x[2 * j * lanes + lane], b = x[(2 * j + 1) * lanes + lane];
            re += a * w[0] - b * w[1];
            im += a * w[1] + b * w[0];
          }
          const long double dr = y[2 * k * lanes + lane] - re, di = y[(2 * k + 1) * lanes + lane] - im;
          error += dr * dr + di * di;
          norm += re * re + im * im;
        }
        const double units = static_cast<double>(std::sqrt(error / norm)) / static_cast<double>(std::numeric_limits<T>::epsilon());
        worst = units > worst ? units : worst;
        if (!(units <= 1 + std::log2(static_cast<double>(n)) / 3)) {
          printf("%s: length %zu, %zu lanes: %g\n", name, n, lanes, units);
          good = false;
        }
      }
    }
  }
  printf("%s: %.2f\n", name, worst);
  return good;
}

}  // namespace

int main() {
  bool good = check("baseline float", baseline::kFloat);
  good &= check("baseline double", baseline::kDouble);
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    good &= check("avx2 float", avx2::kFloat);
    good &= check("avx2 double", avx2::kDouble);
  }
  return good ? 0 : 1;
}
