// One dimension of a transform: lines are gathered from one array, transformed, and stored to another.
#pragma once
#include <cstddef>

#include "lines.h"

namespace sx::fft {

// The other dimensions and the batch: `count` lines each, and what lies between them in each array.
struct Outer {
  size_t count = 1;
  std::ptrdiff_t in = 0, out = 0;
};

// How a line is read and written.
enum class Form {
  Forward,
  Backward,
  RealToComplex,
  ComplexToReal,
};

// The lines of one dimension.  Strides are in elements: complex numbers, or real ones on the real side.
struct Lines {
  size_t length;  // of the real side for real transforms
  std::ptrdiff_t in, out;
  Outer outer[3];
};

// Numbers of type T that pass() needs for each thread, a multiple of 64 bytes; the memory is aligned to 64.
template <class T>
size_t pass_workspace(const Line<T> &line);

// `line` has half the length of a real transform of even length.  `twist`: exp(-2 pi i k / length) for k up to half the
// length, only for real transforms of even length.
template <class T>
void pass(const Engine<T> &engine, const Line<T> &line, const T *twist, Form form, const Lines &lines, const T *in, T *out,
          T *workspace, unsigned threads);

}  // namespace sx::fft
