#include "pass.h"

#include <algorithm>
#include <array>

#include "parallel.h"

namespace sx::fft {
namespace {

// A single line of more than this is transformed as a matrix: many at once would not stay in the cache.
constexpr size_t kCached = 4096;

// W lines at a time.  `data` is [n][2][W].
template <class T, size_t W>
struct Group {
  std::array<const T *, W> from;
  std::array<T *, W> to;
  size_t lanes;  // that are there
};

template <class T, size_t W>
void load_complex(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, bool swapped, T *data) {
  T *first = data + (swapped ? W : 0), *second = data + (swapped ? 0 : W);
  for (size_t l = 0; l < W; ++l) {
    const T *x = g.from[l];
    for (size_t j = 0; j < n; ++j, x += 2 * stride) {
      first[2 * j * W + l] = x[0];
      second[2 * j * W + l] = x[1];
    }
  }
}

// As above where the lines are neighbours in memory: row by row.
template <class T, size_t W>
void load_neighbours(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, bool swapped, T *data) {
  T *first = data + (swapped ? W : 0), *second = data + (swapped ? 0 : W);
  const T *x = g.from[0];
  for (size_t j = 0; j < n; ++j, x += 2 * stride)
    for (size_t l = 0; l < W; ++l) {
      first[2 * j * W + l] = x[2 * l];
      second[2 * j * W + l] = x[2 * l + 1];
    }
}

template <class T, size_t W>
void store_complex(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, bool swapped, const T *data) {
  const T *first = data + (swapped ? W : 0), *second = data + (swapped ? 0 : W);
  for (size_t l = 0; l < g.lanes; ++l) {
    T *y = g.to[l];
    for (size_t j = 0; j < n; ++j, y += 2 * stride) {
      y[0] = first[2 * j * W + l];
      y[1] = second[2 * j * W + l];
    }
  }
}

template <class T, size_t W>
void store_neighbours(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, bool swapped, const T *data) {
  const T *first = data + (swapped ? W : 0), *second = data + (swapped ? 0 : W);
  T *y = g.to[0];
  for (size_t j = 0; j < n; ++j, y += 2 * stride)
    for (size_t l = 0; l < W; ++l) {
      y[2 * l] = first[2 * j * W + l];
      y[2 * l + 1] = second[2 * j * W + l];
    }
}

// Even lengths: x[2 j] + i x[2 j + 1] is a complex line of half the length.  Odd ones: the imaginary parts are zero.
template <class T, size_t W>
void load_real(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, T *data) {
  const bool even = n % 2 == 0;
  for (size_t l = 0; l < W; ++l) {
    const T *x = g.from[l];
    for (size_t j = 0; j < (even ? n / 2 : n); ++j) {
      data[2 * j * W + l] = *x;
      x += stride;
      data[(2 * j + 1) * W + l] = even ? *x : T(0);
      if (even) x += stride;
    }
  }
}

// The halves of a real transform of even length n from Z, the transform of the packed line (h = n / 2, Z[h] = Z[0]):
// X[k] = (Z[k] + conj Z[h - k]) / 2 - i w^k (Z[k] - conj Z[h - k]) / 2
template <class T, size_t W>
void store_half(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, const T *twist, const T *data) {
  if (n % 2) {
    store_complex(g, n / 2 + 1, stride, false, data);
    for (size_t l = 0; l < g.lanes; ++l) g.to[l][1] = T(0);  // whatever Bluestein's rounding
    return;
  }
  const size_t h = n / 2;
  for (size_t l = 0; l < g.lanes; ++l) {
    T *y = g.to[l];
    for (size_t k = 0; k <= h; ++k, y += 2 * stride) {
      const T *a = data + 2 * (k == h ? 0 : k) * W + l, *b = data + 2 * (k == 0 ? 0 : h - k) * W + l;
      const T sum_re = a[0] + b[0], sum_im = a[W] - b[W], dif_re = a[0] - b[0], dif_im = a[W] + b[W];
      const T *w = twist + 2 * k;
      const T odd_re = w[0] * dif_im + w[1] * dif_re, odd_im = w[1] * dif_im - w[0] * dif_re;
      const bool end = k == 0 || k == h;  // whose imaginary parts are zero whatever the twist's rounding
      y[0] = T(0.5) * (sum_re + odd_re);
      y[1] = end ? T(0) : T(0.5) * (sum_im + odd_im);
    }
  }
}

// Z[k] = (X[k] + conj X[h - k]) + i conj(w)^k (X[k] - conj X[h - k]), for a backward transform: parts exchanged.  The
// imaginary parts of X[0] and X[h] are not looked at.
template <class T, size_t W>
void load_half(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, const T *twist, T *data) {
  const size_t h = n / 2;
  const bool even = n % 2 == 0;
  for (size_t l = 0; l < W; ++l) {
    const T *x = g.from[l];
    if (!even) {
      for (size_t k = 0; k < n; ++k) {
        const bool mirrored = k > h;
        const T *p = x + 2 * stride * static_cast<std::ptrdiff_t>(mirrored ? n - k : k);
        data[(2 * k + 1) * W + l] = p[0];
        data[2 * k * W + l] = k == 0 ? T(0) : mirrored ? -p[1] : p[1];
      }
      continue;
    }
    for (size_t k = 0; k < h; ++k) {
      const T *a = x + 2 * stride * static_cast<std::ptrdiff_t>(k), *b = x + 2 * stride * static_cast<std::ptrdiff_t>(h - k);
      const T a_im = k == 0 ? T(0) : a[1], b_im = k == 0 ? T(0) : b[1];
      const T sum_re = a[0] + b[0], sum_im = a_im - b_im, dif_re = a[0] - b[0], dif_im = a_im + b_im;
      const T *w = twist + 2 * k;
      // i (w_re - i w_im) = w_im + i w_re
      data[(2 * k + 1) * W + l] = sum_re + (w[1] * dif_re - w[0] * dif_im);
      data[2 * k * W + l] = sum_im + (w[1] * dif_im + w[0] * dif_re);
    }
  }
}

template <class T, size_t W>
void store_real(const Group<T, W> &g, size_t n, std::ptrdiff_t stride, const T *data) {
  const bool even = n % 2 == 0;
  for (size_t l = 0; l < g.lanes; ++l) {
    T *y = g.to[l];
    for (size_t j = 0; j < (even ? n / 2 : n); ++j) {
      *y = data[(2 * j + 1) * W + l];
      y += stride;
      if (!even) continue;
      *y = data[2 * j * W + l];
      y += stride;
    }
  }
}

template <class T, size_t W>
bool neighbours(const Group<T, W> &g, bool out) {
  if (W == 1 || g.lanes < W) return false;
  for (size_t l = 1; l < W; ++l)
    if (out ? g.to[l] != g.to[0] + 2 * l : g.from[l] != g.from[0] + 2 * l) return false;
  return true;
}

template <class T, size_t W>
void transform(const Engine<T> &engine, const Line<T> &line, const T *twist, Form form, const Lines &lines,
               const Group<T, W> &g, T *workspace) {
  const size_t n = lines.length;
  T *data = workspace, *scratch = workspace + (2 * line.length * W + 15) / 16 * 16;
  const bool swapped = form == Form::Backward;
  switch (form) {
    case Form::Forward:
    case Form::Backward:
      if (neighbours(g, false)) load_neighbours(g, n, lines.in, swapped, data);
      else load_complex(g, n, lines.in, swapped, data);
      break;
    case Form::RealToComplex: load_real(g, n, lines.in, data); break;
    case Form::ComplexToReal: load_half(g, n, lines.in, twist, data); break;
  }
  const T *done = W == 1 ? engine.one(line, data, scratch) : engine.many(line, data, scratch);
  switch (form) {
    case Form::Forward:
    case Form::Backward:
      if (neighbours(g, true)) store_neighbours(g, n, lines.out, swapped, done);
      else store_complex(g, n, lines.out, swapped, done);
      break;
    case Form::RealToComplex: store_half(g, n, lines.out, twist, done); break;
    case Form::ComplexToReal: store_real(g, n, lines.out, done); break;
  }
}

// Lines `first` and after of all of them; the last of `outer` changes fastest.
template <class T, size_t W>
void group(const Lines &lines, Form form, size_t first, size_t count, const T *in, T *out, Group<T, W> &g) {
  const std::ptrdiff_t in_width = form == Form::RealToComplex ? 1 : 2, out_width = form == Form::ComplexToReal ? 1 : 2;
  g.lanes = count;
  for (size_t l = 0; l < W; ++l) {
    size_t at = first + (l < count ? l : 0);  // a lane without a line repeats the first one, and is not stored
    std::ptrdiff_t from = 0, to = 0;
    for (int d = 2; d >= 0; --d) {
      const auto here = static_cast<std::ptrdiff_t>(at % lines.outer[d].count);
      at /= lines.outer[d].count;
      from += here * lines.outer[d].in;
      to += here * lines.outer[d].out;
    }
    g.from[l] = in + in_width * from;
    g.to[l] = out + out_width * to;
  }
}

template <class T>
bool alone(const Line<T> &line, size_t lines) {
  return lines == 1 || (line.length > kCached && line.columns);
}

}  // namespace

template <class T>
size_t pass_workspace(const Line<T> &line) {
  const size_t many = 2 * (line.length + line.scratch_many) * kLanes<T>, one = 2 * (line.length + line.scratch_one);
  return (std::max(many, one) + 32 + 15) / 16 * 16;
}

template <class T>
void pass(const Engine<T> &engine, const Line<T> &line, const T *twist, Form form, const Lines &lines, const T *in, T *out,
          T *workspace, unsigned threads) {
  constexpr size_t kWidth = kLanes<T>;
  const size_t total = lines.outer[0].count * lines.outer[1].count * lines.outer[2].count;
  const size_t own = pass_workspace(line);
  if (alone(line, total)) {
    parallel(threads, total, [&](unsigned thread, size_t i) {
      Group<T, 1> g;
      group(lines, form, i, 1, in, out, g);
      transform(engine, line, twist, form, lines, g, workspace + thread * own);
    });
    return;
  }
  parallel(threads, (total + kWidth - 1) / kWidth, [&](unsigned thread, size_t i) {
    Group<T, kWidth> g;
    group(lines, form, i * kWidth, std::min(kWidth, total - i * kWidth), in, out, g);
    transform(engine, line, twist, form, lines, g, workspace + thread * own);
  });
}

template size_t pass_workspace(const Line<float> &);
template size_t pass_workspace(const Line<double> &);
template void pass(const Engine<float> &, const Line<float> &, const float *, Form, const Lines &, const float *, float *, float *,
                   unsigned);
template void pass(const Engine<double> &, const Line<double> &, const double *, Form, const Lines &, const double *, double *,
                   double *, unsigned);

}  // namespace sx::fft
