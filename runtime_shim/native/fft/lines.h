// Complex Fourier transforms of whole lines, several at once: the innermost part, built once for each set of vector
// instructions.
//
// This header is all that the builds share with the rest, and it includes nothing: an inline function of the C++ library
// that one build compiled with its instructions could otherwise be linked into code for every processor.
#pragma once

namespace sx::fft {

using Size = decltype(sizeof 0);

// One pass of a Stockham transform: `groups` times `stride` butterflies of `radix` points.
template <class T>
struct Pass {
  unsigned radix;
  Size groups;        // length of what is left after this pass
  Size stride;        // product of the radices before
  const T *twiddles;  // [groups][radix - 1] complex: exp(-2 pi i j r / (radix * groups)), r from 1
  const T *roots;     // [radix] complex: exp(-2 pi i r / radix); only for radices without code of their own
};

// How lines of one length are transformed.  Exactly one of `passes` and `inner` is there, unless the length is 1.
template <class T>
struct Line {
  Size length;
  Size scratch_many;  // complex numbers of all lanes that a transform of many needs beside the data
  Size scratch_one;   // complex numbers that a transform of one needs

  const Pass<T> *passes;
  Size pass_count;

  // Bluestein: a transform of any length as a convolution of a longer one.
  const Line *inner;
  const T *chirp;     // [length] complex: exp(-pi i j j / length)
  const T *spectrum;  // [inner->length] complex: transform of the chirp's conjugate, divided by its length

  // A long line alone: rows and columns of a matrix, so that vectors are full and the data stays in the cache.  Null
  // where the length is short or prime.
  const Line *columns;  // their length times that of the rows is this one's
  const Line *rows;
  const T *twist;  // [columns->length][rows->length] complex: exp(-2 pi i k j / length)
};

// Lines that one vector holds.
template <class T>
constexpr Size kLanes = 32 / sizeof(T);

// Forward transforms.  `data` is [length][2][lanes], real parts before imaginary ones; `scratch` has room for
// `line.scratch_many` or `line.scratch_one` numbers of the same kind.  Both are aligned to 64 bytes.  The result is in
// the returned array: `data`, or the start of `scratch`.
template <class T>
struct Engine {
  T *(*many)(const Line<T> &line, T *data, T *scratch);  // kLanes<T> lines
  T *(*one)(const Line<T> &line, T *data, T *scratch);   // one line
};

namespace baseline {
extern const Engine<float> kFloat;
extern const Engine<double> kDouble;
}  // namespace baseline
namespace avx2 {
extern const Engine<float> kFloat;
extern const Engine<double> kDouble;
}  // namespace avx2

}  // namespace sx::fft
