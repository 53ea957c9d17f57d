// Fourier transforms of one to three dimensions over strided arrays in memory, as cuFFT defines them: not normalised,
// forward with exp(-2 pi i j k / n).
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "lines.h"

namespace sx::fft {

enum class Kind { Complex, RealToComplex, ComplexToReal };
enum class Element { Half, BFloat16, Float, Double };

// Where the elements of one side are: complex numbers, or real ones on the real side of a transform.
struct Side {
  std::vector<std::ptrdiff_t> strides;  // of each dimension, the outermost first, in elements
  std::ptrdiff_t distance = 0;          // from one transform of the batch to the next
};

struct Layout {
  Side in, out;
  size_t batch = 1;
};

// The transforms of one shape and type; they may run at the same time.
class Plan {
 public:
  virtual ~Plan() = default;
  // Bytes that a run needs, more with each thread.
  virtual size_t workspace(const Layout &layout, bool overlap) const = 0;
  // `inverse` matters for complex transforms alone.  The arrays may be the same or overlap, if `overlap`.
  virtual void run(const Layout &layout, bool overlap, bool inverse, const void *in, void *out,
                   char *workspace) const = 0;
};

// `lengths` are at least 1, the outermost first.  Raises std::bad_alloc or std::length_error.
std::unique_ptr<Plan> make_plan(Kind kind, Element element, const std::vector<size_t> &lengths);

}  // namespace sx::fft
