// Stockham's transform with radices 2 to 5 and any other, Bluestein's, and long lines as matrices.
//
// Compiled once for each set of vector instructions (SX_FFT_BUILD names it), with nothing of the C++ library: see lines.h.
#include "lines.h"

namespace sx::fft::SX_FFT_BUILD {
namespace {

// A complex number of each lane.  V is a vector, or a number where there is one line.
template <class V>
struct Complex {
  V re, im;
};

template <class V>
inline Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
inline Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V, class T>
inline Complex<V> scaled(Complex<V> a, T factor) {
  return {a.re * factor, a.im * factor};
}
// By a number that all lanes share, at `w`.
template <class V, class T>
inline Complex<V> times(Complex<V> a, const T *w) {
  return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}
// By -i.
template <class V>
inline Complex<V> turned(Complex<V> a) {
  return {a.im, -a.re};
}

// Butterflies: the transform of `radix` points that lie `step` apart, stored to `out`.
template <class V, class T, unsigned radix>
struct Butterfly;

template <class V, class T>
struct Butterfly<V, T, 2> {
  static inline void run(const Complex<V> *in, Size step, Complex<V> *out) {
    Complex<V> a = in[0], b = in[step];
    out[0] = a + b;
    out[1] = a - b;
  }
};

template <class V, class T>
struct Butterfly<V, T, 3> {
  static inline void run(const Complex<V> *in, Size step, Complex<V> *out) {
    constexpr T kSin = T(0.866025403784438646763723170752936183L);
    Complex<V> a = in[0], sum = in[step] + in[2 * step], difference = in[step] - in[2 * step];
    Complex<V> middle = a - scaled(sum, T(0.5)), side = turned(scaled(difference, kSin));
    out[0] = a + sum;
    out[1] = middle + side;
    out[2] = middle - side;
  }
};

template <class V, class T>
struct Butterfly<V, T, 4> {
  static inline void run(const Complex<V> *in, Size step, Complex<V> *out) {
    Complex<V> a = in[0], b = in[step], c = in[2 * step], d = in[3 * step];
    Complex<V> p = a + c, m = a - c, q = b + d, n = turned(b - d);
    out[0] = p + q;
    out[1] = m + n;
    out[2] = p - q;
    out[3] = m - n;
  }
};

template <class V, class T>
struct Butterfly<V, T, 5> {
  static inline void run(const Complex<V> *in, Size step, Complex<V> *out) {
    constexpr T kCos1 = T(0.309016994374947424102293417182819059L), kCos2 = T(-0.809016994374947424102293417182819059L);
    constexpr T kSin1 = T(0.951056516295153572116439333379382143L), kSin2 = T(0.587785252292473129168705954639072769L);
    Complex<V> a = in[0], b = in[step], c = in[2 * step], d = in[3 * step], e = in[4 * step];
    Complex<V> s1 = b + e, d1 = b - e, s2 = c + d, d2 = c - d;
    Complex<V> m1 = a + scaled(s1, kCos1) + scaled(s2, kCos2), m2 = a + scaled(s1, kCos2) + scaled(s2, kCos1);
    Complex<V> t1 = turned(scaled(d1, kSin1) + scaled(d2, kSin2)), t2 = turned(scaled(d1, kSin2) - scaled(d2, kSin1));
    out[0] = a + s1 + s2;
    out[1] = m1 + t1;
    out[2] = m2 + t2;
    out[3] = m2 - t2;
    out[4] = m1 - t1;
  }
};

// y[q + stride (radix j + r)] = sum over k of x[q + stride (j + groups k)] exp(-2 pi i k r / radix) times twiddle(j, r)
template <class V, class T, unsigned radix>
void pass(const Pass<T> &p, const Complex<V> *x, Complex<V> *y) {
  const Size s = p.stride, step = p.stride * p.groups;
  Complex<V> b[radix];
  for (Size q = 0; q < s; ++q) {
    Butterfly<V, T, radix>::run(x + q, step, b);
    for (unsigned r = 0; r < radix; ++r) y[q + s * r] = b[r];
  }
  for (Size j = 1; j < p.groups; ++j) {
    const T *w = p.twiddles + j * (radix - 1) * 2;
    for (Size q = 0; q < s; ++q) {
      Butterfly<V, T, radix>::run(x + q + s * j, step, b);
      Complex<V> *to = y + q + s * radix * j;
      to[0] = b[0];
      for (unsigned r = 1; r < radix; ++r) to[s * r] = times(b[r], w + (r - 1) * 2);
    }
  }
}

// Any odd radix.  `b` has room for `radix` numbers.
template <class V, class T>
void pass_of_any(const Pass<T> &p, const Complex<V> *x, Complex<V> *y, Complex<V> *b) {
  const Size s = p.stride, step = p.stride * p.groups, radix = p.radix, half = (radix - 1) / 2;
  for (Size j = 0; j < p.groups; ++j) {
    const T *w = p.twiddles + j * (radix - 1) * 2;
    for (Size q = 0; q < s; ++q) {
      const Complex<V> *in = x + q + s * j;
      Complex<V> *to = y + q + s * radix * j;
      // Pairs k and radix - k: their sum in b[k], their difference in b[radix - k].
      Complex<V> a = in[0], total = a;
      for (Size k = 1; k <= half; ++k) {
        Complex<V> one = in[step * k], other = in[step * (radix - k)];
        b[k] = one + other;
        b[radix - k] = one - other;
        total = total + b[k];
      }
      to[0] = total;
      for (Size r = 1; r <= half; ++r) {
        Complex<V> middle = a, side = Complex<V>{};
        Size at = 0;  // k r mod radix
        for (Size k = 1; k <= half; ++k) {
          at += r;
          if (at >= radix) at -= radix;
          middle = middle + scaled(b[k], p.roots[2 * at]);
          side = side - scaled(b[radix - k], p.roots[2 * at + 1]);
        }
        side = turned(side);
        Complex<V> first = middle + side, last = middle - side;
        to[s * r] = j ? times(first, w + (r - 1) * 2) : first;
        to[s * (radix - r)] = j ? times(last, w + (radix - r - 1) * 2) : last;
      }
    }
  }
}

template <class V, class T>
Complex<V> *transform(const Line<T> &line, Complex<V> *data, Complex<V> *scratch);

template <class T>
T *matrix(const Line<T> &line, T *data, T *scratch);

template <class V, class T>
Complex<V> *stockham(const Line<T> &line, Complex<V> *data, Complex<V> *scratch) {
  Complex<V> *from = data, *to = scratch;
  for (Size i = 0; i < line.pass_count; ++i) {
    const Pass<T> &p = line.passes[i];
    switch (p.radix) {
      case 2: pass<V, T, 2>(p, from, to); break;
      case 3: pass<V, T, 3>(p, from, to); break;
      case 4: pass<V, T, 4>(p, from, to); break;
      case 5: pass<V, T, 5>(p, from, to); break;
      default: pass_of_any<V, T>(p, from, to, scratch + line.length); break;
    }
    Complex<V> *next = from;
    from = to;
    to = next;
  }
  return from;
}

// sum over j of x[j] exp(-2 pi i j k / n), with 2 j k = j j + k k - (k - j)(k - j): a convolution with a chirp.
template <class V, class T>
Complex<V> *bluestein(const Line<T> &line, Complex<V> *data, Complex<V> *scratch) {
  const Size n = line.length, m = line.inner->length;
  Complex<V> *padded = scratch, *rest = scratch + m;
  for (Size j = 0; j < n; ++j) padded[j] = times(data[j], line.chirp + 2 * j);
  for (Size j = n; j < m; ++j) padded[j] = Complex<V>{};
  Complex<V> *spectrum = transform<V, T>(*line.inner, padded, rest);
  // With real and imaginary parts exchanged a forward transform is a backward one.
  for (Size k = 0; k < m; ++k) {
    Complex<V> product = times(spectrum[k], line.spectrum + 2 * k);
    padded[k] = {product.im, product.re};
  }
  Complex<V> *back = transform<V, T>(*line.inner, padded, rest);
  for (Size k = 0; k < n; ++k) data[k] = times(Complex<V>{back[k].im, back[k].re}, line.chirp + 2 * k);
  return data;
}

// Whether there is one line.
template <class V, class T>
constexpr bool kAlone = false;
template <class T>
constexpr bool kAlone<T, T> = true;

template <class V, class T>
Complex<V> *transform(const Line<T> &line, Complex<V> *data, Complex<V> *scratch) {
  if constexpr (kAlone<V, T>)
    if (line.columns)
      return reinterpret_cast<Complex<V> *>(
          matrix<T>(line, reinterpret_cast<T *>(data), reinterpret_cast<T *>(scratch)));
  return line.inner ? bluestein<V, T>(line, data, scratch) : stockham<V, T>(line, data, scratch);
}

template <class T>
struct Vector;
template <>
struct Vector<float> {
  typedef float Type __attribute__((vector_size(32)));
};
template <>
struct Vector<double> {
  typedef double Type __attribute__((vector_size(32)));
};

template <class T>
T *many(const Line<T> &line, T *data, T *scratch) {
  using V = typename Vector<T>::Type;
  return reinterpret_cast<T *>(
      transform<V, T>(line, reinterpret_cast<Complex<V> *>(data), reinterpret_cast<Complex<V> *>(scratch)));
}

// x[j1 b + j2] is an a by b matrix: columns are transformed, element (k1, j2) is turned by exp(-2 pi i k1 j2 / n), and row k1
// then gives X[k1 + a k2].  `scratch`: n numbers, then the vectors of one group of columns or rows.
template <class T>
T *matrix(const Line<T> &line, T *data, T *scratch) {
  constexpr Size kWidth = kLanes<T>;
  const Size a = line.columns->length, b = line.rows->length;
  // Aligned for vectors: the scratch begins so, and a group's data do.
  T *group = scratch + (2 * line.length + 2 * kWidth - 1) / (2 * kWidth) * (2 * kWidth);
  const Size longest = a > b ? a : b;
  T *rest = group + longest * 2 * kWidth;
  for (Size j = 0; j < b; j += kWidth) {
    const Size lanes = b - j < kWidth ? b - j : kWidth;
    for (Size i = 0; i < a; ++i)
      for (Size l = 0; l < kWidth; ++l) {
        const T *from = data + 2 * (i * b + j + (l < lanes ? l : 0));
        group[2 * i * kWidth + l] = from[0];
        group[(2 * i + 1) * kWidth + l] = from[1];
      }
    const T *done = many<T>(*line.columns, group, rest);
    for (Size k = 0; k < a; ++k)
      for (Size l = 0; l < lanes; ++l) {
        const Size at = 2 * (k * b + j + l);
        const T re = done[2 * k * kWidth + l], im = done[(2 * k + 1) * kWidth + l];
        const T *w = line.twist + at;
        scratch[at] = re * w[0] - im * w[1];
        scratch[at + 1] = re * w[1] + im * w[0];
      }
  }
  for (Size k = 0; k < a; k += kWidth) {
    const Size lanes = a - k < kWidth ? a - k : kWidth;
    for (Size l = 0; l < kWidth; ++l) {
      const T *from = scratch + 2 * b * (k + (l < lanes ? l : 0));
      for (Size j = 0; j < b; ++j) {
        group[2 * j * kWidth + l] = from[2 * j];
        group[(2 * j + 1) * kWidth + l] = from[2 * j + 1];
      }
    }
    const T *done = many<T>(*line.rows, group, rest);
    for (Size i = 0; i < b; ++i)
      for (Size l = 0; l < lanes; ++l) {
        T *to = data + 2 * (k + l + a * i);
        to[0] = done[2 * i * kWidth + l];
        to[1] = done[(2 * i + 1) * kWidth + l];
      }
  }
  return data;
}

template <class T>
T *one(const Line<T> &line, T *data, T *scratch) {
  return reinterpret_cast<T *>(
      transform<T, T>(line, reinterpret_cast<Complex<T> *>(data), reinterpret_cast<Complex<T> *>(scratch)));
}

}  // namespace

const Engine<float> kFloat = {many<float>, one<float>};
const Engine<double> kDouble = {many<double>, one<double>};

}  // namespace sx::fft::SX_FFT_BUILD
