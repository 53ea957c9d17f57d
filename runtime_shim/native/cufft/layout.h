// What a plan was asked for, checked, and where the numbers of its arrays lie.
#pragma once
#include <vector>

#include "cufft_abi.h"
#include "transform.h"

namespace sx::cufft {

// The advanced layout of one side: storage dimensions, the distance of neighbours in the last dimension, and that of the
// transforms of a batch, in elements.
struct Embedding {
  std::vector<long long> lengths;
  long long stride = 1, distance = 0;
};

struct Request {
  fft::Kind kind = fft::Kind::Complex;
  fft::Element element = fft::Element::Float;
  std::vector<long long> lengths;  // the outermost first
  long long batch = 1;
  bool basic = true;  // no embeddings: dense rows, padded where a real transform is in place
  Embedding in, out;

  cudaDataType in_type() const;
  cudaDataType out_type() const;
  // Bytes of one element of each side.
  size_t in_size() const;
  size_t out_size() const;
};

// The kind and precision of a cufftType, or of a triple of data types; false if there is none.
bool set_type(Request &request, int type);
bool set_types(Request &request, int in, int out, int execution);

// Fills the numbers of a request as cufftMakePlanMany64 gets them; the pointers may be null as there.
cufftResult set_layout(Request &request, int rank, const long long *n, const long long *inembed, long long istride,
                       long long idist, const long long *onembed, long long ostride, long long odist, long long batch);

// The layout of a call: basic ones depend on whether input and output are the same memory.
fft::Layout layout_of(const Request &request, bool in_place);

// Elements from the first to the last of one side, inclusive.
size_t extent_of(const Request &request, const fft::Layout &layout, bool out);

}  // namespace sx::cufft
