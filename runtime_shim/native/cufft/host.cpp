// Transforms by the host, on the emulated device: its memory is the process's, its streams take functions of the host.
#include <cinttypes>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "device.h"
#include "float_controls.h"
#include "plan.h"

namespace sx::cufft {
namespace {

struct Extent {
  uintptr_t begin, end;
};

class Transform : public replace::Work {
 public:
  Transform(std::shared_ptr<const fft::Plan> plan, fft::Layout layout, bool overlap, bool inverse, const void *in, void *out)
      : plan_(std::move(plan)), layout_(std::move(layout)), overlap_(overlap), inverse_(inverse), in_(in), out_(out),
        workspace_(new char[plan_->workspace(layout_, overlap)]) {}
  void run() noexcept override { plan_->run(layout_, overlap_, inverse_, in_, out_, workspace_.get()); }

 private:
  std::shared_ptr<const fft::Plan> plan_;
  fft::Layout layout_;
  bool overlap_, inverse_;
  const void *in_;
  void *out_;
  std::unique_ptr<char[]> workspace_;  // of its own: calls of one plan may overlap in time
};

class Host : public Backend {
 public:
  explicit Host(const Request &request) : request_(request) {
    std::vector<size_t> lengths(request.lengths.begin(), request.lengths.end());
    plan_ = fft::make_plan(request.kind, request.element, lengths);
  }

  cufftResult execute(CUstream stream, const void *in, void *out, int direction) override {
    fft::Layout layout = layout_of(request_, in == out);
    Extent from{}, to{};
    if (!usable(in, extent_of(request_, layout, false) * request_.in_size(), "input", from, false) ||
        !usable(out, extent_of(request_, layout, true) * request_.out_size(), "output", to, true))
      return CUFFT_EXEC_FAILED;
    const bool overlap = from.begin < to.end && to.begin < from.end;
    try {
      auto work = std::make_unique<Transform>(plan_, std::move(layout), overlap, direction == CUFFT_INVERSE, in, out);
      return replace::enqueue(stream, std::move(work)) ? CUFFT_EXEC_FAILED : CUFFT_SUCCESS;
    } catch (const std::bad_alloc &) {
      return CUFFT_ALLOC_FAILED;
    }
  }

 private:
  // A card would fault later; here the process would, so it is looked at before.
  bool usable(const void *address, size_t bytes, const char *what, Extent &extent, bool write) const {
    const auto begin = reinterpret_cast<uintptr_t>(address);
    extent = {begin, begin + bytes};
    const size_t part = request_.element == fft::Element::Double ? 8 : request_.element == fft::Element::Float ? 4 : 2;
    if (begin % part == 0 && replace::reachable(address, bytes, write)) return true;
    char line[256];
    snprintf(line, sizeof line, "SX0782: the %s of a Fourier transform, %zu bytes at 0x%" PRIxPTR ", is not %s", what, bytes,
             begin, begin % part ? "aligned" : "within one allocation of the device");
    replace::refuse(std::string("cufftExec ") + what, line);
    return false;
  }

  Request request_;
  std::shared_ptr<const fft::Plan> plan_;
};

}  // namespace

cufftResult make_host(const Request &request, std::unique_ptr<Backend> &out) {
  const FloatControls defaults;  // for the factors, which later plans have, too
  try {
    out = std::make_unique<Host>(request);
  } catch (const std::bad_alloc &) {
    return CUFFT_ALLOC_FAILED;
  } catch (const std::length_error &) {
    return CUFFT_ALLOC_FAILED;
  }
  return CUFFT_SUCCESS;
}

}  // namespace sx::cufft
