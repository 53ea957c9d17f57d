#include "layout.h"

#include <algorithm>

namespace sx::cufft {
namespace {

// What fits in no address space is refused before numbers can overflow.
constexpr long long kMost = 1LL << 46;

bool fits(long long &product, long long factor) {
  return !__builtin_mul_overflow(product, factor, &product) && product <= kMost;
}

// Lengths of one side, the last one halved on the complex side of a real transform.
std::vector<long long> lengths_of(const Request &r, bool out) {
  std::vector<long long> lengths = r.lengths;
  const bool halved = out ? r.kind == fft::Kind::RealToComplex : r.kind == fft::Kind::ComplexToReal;
  if (halved) lengths.back() = lengths.back() / 2 + 1;
  return lengths;
}

bool is_real(const Request &r, bool out) {
  return out ? r.kind == fft::Kind::ComplexToReal : r.kind == fft::Kind::RealToComplex;
}

fft::Side side_of(const std::vector<long long> &storage, long long stride) {
  fft::Side side;
  side.strides.resize(storage.size());
  for (size_t d = storage.size(); d-- > 0;) {
    side.strides[d] = stride;
    stride *= storage[d];
  }
  side.distance = stride;
  return side;
}

// Dense; in place, a row of real numbers has the room of its complex ones.
fft::Side basic_side(const Request &r, bool out, bool in_place) {
  std::vector<long long> storage = lengths_of(r, out);
  if (in_place && is_real(r, out)) storage.back() = 2 * (storage.back() / 2 + 1);
  return side_of(storage, 1);
}

fft::Side advanced_side(const Embedding &e) {
  std::vector<long long> storage = e.lengths;
  storage[0] = 1;  // any number: no stride is made of it
  fft::Side side = side_of(storage, e.stride);
  side.distance = e.distance;
  return side;
}

// The last element's number must be one that can be computed.
bool representable(const Embedding &e, const std::vector<long long> &lengths, long long batch) {
  long long step = e.stride, end = 0;
  for (size_t d = lengths.size(); d-- > 0;) {
    long long reach = lengths[d];
    if (!fits(reach, step)) return false;
    end += reach;
    if (d > 0 && !fits(step, e.lengths[d])) return false;
  }
  long long reach = batch;
  return fits(reach, std::max(1LL, e.distance)) && end + reach <= kMost;
}

constexpr cudaDataType kReal[] = {CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F};
constexpr cudaDataType kComplex[] = {CUDA_C_16F, CUDA_C_16BF, CUDA_C_32F, CUDA_C_64F};
constexpr size_t kSize[] = {2, 2, 4, 8};

}  // namespace

cudaDataType Request::in_type() const { return (is_real(*this, false) ? kReal : kComplex)[static_cast<int>(element)]; }
cudaDataType Request::out_type() const { return (is_real(*this, true) ? kReal : kComplex)[static_cast<int>(element)]; }
size_t Request::in_size() const { return kSize[static_cast<int>(element)] * (is_real(*this, false) ? 1 : 2); }
size_t Request::out_size() const { return kSize[static_cast<int>(element)] * (is_real(*this, true) ? 1 : 2); }

bool set_type(Request &request, int type) {
  switch (type) {
    case CUFFT_C2C: return set_types(request, CUDA_C_32F, CUDA_C_32F, CUDA_C_32F);
    case CUFFT_R2C: return set_types(request, CUDA_R_32F, CUDA_C_32F, CUDA_C_32F);
    case CUFFT_C2R: return set_types(request, CUDA_C_32F, CUDA_R_32F, CUDA_C_32F);
    case CUFFT_Z2Z: return set_types(request, CUDA_C_64F, CUDA_C_64F, CUDA_C_64F);
    case CUFFT_D2Z: return set_types(request, CUDA_R_64F, CUDA_C_64F, CUDA_C_64F);
    case CUFFT_Z2D: return set_types(request, CUDA_C_64F, CUDA_R_64F, CUDA_C_64F);
    default: return false;
  }
}

bool set_types(Request &request, int in, int out, int execution) {
  for (int i = 0; i < 4; ++i) {
    if (execution != kComplex[i]) continue;
    request.element = static_cast<fft::Element>(i);
    if (in == kComplex[i] && out == kComplex[i]) request.kind = fft::Kind::Complex;
    else if (in == kReal[i] && out == kComplex[i]) request.kind = fft::Kind::RealToComplex;
    else if (in == kComplex[i] && out == kReal[i]) request.kind = fft::Kind::ComplexToReal;
    else return false;
    return true;
  }
  return false;
}

cufftResult set_layout(Request &request, int rank, const long long *n, const long long *inembed, long long istride,
                       long long idist, const long long *onembed, long long ostride, long long odist, long long batch) {
  if (rank < 1 || rank > 3 || !n) return CUFFT_INVALID_VALUE;
  request.lengths.assign(n, n + rank);
  request.batch = batch;
  long long all = 1;
  for (long long length : request.lengths)
    if (length < 1 || !fits(all, length)) return CUFFT_INVALID_SIZE;
  if (batch < 1 || !fits(all, batch)) return CUFFT_INVALID_SIZE;
  const bool narrow = request.element == fft::Element::Half || request.element == fft::Element::BFloat16;
  if (narrow)
    for (long long length : request.lengths)
      if (length & (length - 1)) return CUFFT_NOT_SUPPORTED;  // as documented of 16-bit types: powers of two alone
  if (!inembed != !onembed) return CUFFT_INVALID_VALUE;  // no manual says what one alone means
  request.basic = !inembed;
  if (request.basic) return CUFFT_SUCCESS;
  request.in = {{inembed, inembed + rank}, istride, idist};
  request.out = {{onembed, onembed + rank}, ostride, odist};
  for (int side = 0; side < 2; ++side) {
    const Embedding &e = side ? request.out : request.in;
    if (e.stride < 1 || (e.distance < 0 && batch > 1)) return CUFFT_INVALID_VALUE;
    for (int d = 1; d < rank; ++d)
      if (e.lengths[static_cast<size_t>(d)] < 1) return CUFFT_INVALID_VALUE;
    if (!representable(e, lengths_of(request, side), batch)) return CUFFT_INVALID_SIZE;
  }
  return CUFFT_SUCCESS;
}

fft::Layout layout_of(const Request &request, bool in_place) {
  fft::Layout layout;
  layout.batch = static_cast<size_t>(request.batch);
  layout.in = request.basic ? basic_side(request, false, in_place) : advanced_side(request.in);
  layout.out = request.basic ? basic_side(request, true, in_place) : advanced_side(request.out);
  return layout;
}

size_t extent_of(const Request &request, const fft::Layout &layout, bool out) {
  const fft::Side &side = out ? layout.out : layout.in;
  const std::vector<long long> lengths = lengths_of(request, out);
  long long last = side.distance * (request.batch - 1);
  for (size_t d = 0; d < lengths.size(); ++d) last += side.strides[d] * (lengths[d] - 1);
  return static_cast<size_t>(last) + 1;
}

}  // namespace sx::cufft
