// Transforms by AMD's hipFFT, on a card.  It is loaded when the first plan is made.
#include <dlfcn.h>

#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "device.h"
#include "log.h"
#include "plan.h"

namespace sx::cufft {
namespace {

// hipFFT's numbers of results and data types are cuFFT's and CUDA's.
using Handle = struct hipfftHandle_t *;
using Stream = struct ihipStream_t *;

// clang-format off
#define SX_HIPFFT(F)                                                                                               \
  F(hipfftCreate, (Handle *)) F(hipfftDestroy, (Handle)) F(hipfftSetStream, (Handle, Stream))                      \
  F(hipfftSetAutoAllocation, (Handle, int)) F(hipfftSetWorkArea, (Handle, void *))                                 \
  F(hipfftXtExec, (Handle, void *, void *, int))                                                                   \
  F(hipfftXtMakePlanMany, (Handle, int, long long *, long long *, long long, long long, int, long long *, long long, \
                           long long, int, long long, size_t *, int))                                              \
  F(hipfftXtGetSizeMany, (Handle, int, long long *, long long *, long long, long long, int, long long *, long long, \
                          long long, int, long long, size_t *, int))
// clang-format on

struct HipFft {
#define F(name, parameters) int(*name) parameters = nullptr;
  SX_HIPFFT(F)
#undef F
  bool complete = false;
};

// Beside the HIP library first: a system may have ROCm more than once.
void *open_library(std::string &reason) {
  std::vector<std::string> names;
  const std::string given = env_string("SASSXLATE_HIPFFT");
  if (!given.empty()) {
    names.push_back(given);
  } else {
    const std::string &hip = replace::hip_library();
    const size_t slash = hip.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : hip.substr(0, slash + 1);
    for (const char *name : {"libhipfft.so.0", "libhipfft.so.1", "libhipfft.so"}) {
      if (!folder.empty()) names.push_back(folder + name);
      names.emplace_back(name);
    }
  }
  for (const std::string &name : names) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char *text = dlerror();
    if (reason.empty() && text) reason = text;
  }
  return nullptr;
}

HipFft load() {
  HipFft api;
  std::string reason;
  void *handle = open_library(reason);
  if (!handle) {
    replace::refuse("cufft", "SX0781: hipFFT, which Fourier transforms on an AMD card need, cannot be loaded: " + reason);
    return api;
  }
  api.complete = true;
#define F(name, parameters)                                                                 \
  api.name = reinterpret_cast<int(*) parameters>(dlsym(handle, #name));                     \
  if (!api.name) {                                                                          \
    replace::refuse("cufft", "SX0781: this hipFFT has no " #name ": one of ROCm 6.0 or later is needed"); \
    api.complete = false;                                                                   \
  }
  SX_HIPFFT(F)
#undef F
  return api;
}

const HipFft &api() {
  static const HipFft loaded = load();
  return loaded;
}

cufftResult result_of(int status) { return static_cast<cufftResult>(status); }

// The arguments that making and measuring a plan share.
template <class Function>
cufftResult describe(Function function, Handle handle, const Request &r, size_t &work_size) {
  std::vector<long long> n = r.lengths, in = r.in.lengths, out = r.out.lengths;
  return result_of(function(handle, static_cast<int>(n.size()), n.data(), r.basic ? nullptr : in.data(), r.in.stride,
                            r.in.distance, r.in_type(), r.basic ? nullptr : out.data(), r.out.stride, r.out.distance,
                            r.out_type(), r.batch, &work_size,
                            r.kind == fft::Kind::RealToComplex ? r.out_type() : r.in_type()));
}

class Card : public Backend {
 public:
  Card(Handle handle, fft::Kind kind) : handle_(handle), kind_(kind) {}
  ~Card() override { api().hipfftDestroy(handle_); }
  Card(const Card &) = delete;
  Card &operator=(const Card &) = delete;

  cufftResult execute(CUstream stream, const void *in, void *out, int direction) override {
    bool captured = false;
    if (replace::capturing(stream, captured)) return CUFFT_EXEC_FAILED;
    if (captured) {
      // Graphs are the driver library's own here; what hipFFT launches would run at once.
      replace::refuse("cufftExec", "SX0780: a Fourier transform on an AMD card cannot be captured in a graph");
      return CUFFT_NOT_SUPPORTED;
    }
    // The legacy default stream is HIP's null stream; the thread's own has the same number in both.
    const bool legacy = reinterpret_cast<uintptr_t>(stream) == 1;
    if (int error = api().hipfftSetStream(handle_, legacy ? nullptr : reinterpret_cast<Stream>(stream)))
      return result_of(error);
    if (kind_ != fft::Kind::Complex) direction = kind_ == fft::Kind::RealToComplex ? CUFFT_FORWARD : CUFFT_INVERSE;
    return result_of(api().hipfftXtExec(handle_, const_cast<void *>(in), out, direction));
  }

  cufftResult set_work_area(void *area) override { return result_of(api().hipfftSetWorkArea(handle_, area)); }

 private:
  Handle handle_;
  fft::Kind kind_;
};

}  // namespace

cufftResult make_hipfft(const Request &request, bool allocate, std::unique_ptr<Backend> &out, size_t &work_size) {
  if (!api().complete) return CUFFT_SETUP_FAILED;
  Handle handle = nullptr;
  if (int error = api().hipfftCreate(&handle)) return result_of(error);
  auto card = std::make_unique<Card>(handle, request.kind);
  if (int error = api().hipfftSetAutoAllocation(handle, allocate)) return result_of(error);
  const cufftResult result = describe(api().hipfftXtMakePlanMany, handle, request, work_size);
  if (result == CUFFT_SUCCESS) out = std::move(card);
  return result;
}

cufftResult hipfft_size(const Request &request, size_t &work_size) {
  if (!api().complete) return CUFFT_SETUP_FAILED;
  Handle handle = nullptr;
  if (int error = api().hipfftCreate(&handle)) return result_of(error);
  const cufftResult result = describe(api().hipfftXtGetSizeMany, handle, request, work_size);
  api().hipfftDestroy(handle);
  return result;
}

}  // namespace sx::cufft
