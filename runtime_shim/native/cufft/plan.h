// Plans by their handles, and what carries them out: the host on the emulated device, hipFFT on a card.
#pragma once
#include <memory>

#include "layout.h"

namespace sx::cufft {

// Transforms of one request.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual cufftResult execute(CUstream stream, const void *in, void *out, int direction) = 0;
  virtual cufftResult set_work_area(void *) { return CUFFT_SUCCESS; }
};

// Makes a backend for a request; `work_size` gets the bytes of its work area.  With `allocate` it has its own.
cufftResult make_backend(const Request &request, bool allocate, std::unique_ptr<Backend> &out, size_t &work_size);

// The work area of a request that is not made.
cufftResult size_of(const Request &request, size_t &work_size);

// A handle's state; one thread at a time.
struct Plan {
  Request request;
  std::unique_ptr<Backend> backend;  // null until it is made
  CUstream stream = nullptr;
  bool allocate = true;
  size_t work_size = 0;
  long long properties[4] = {0, 1, 0, 0};  // of cufftSetPlanPropertyInt64, from the first
};

cufftResult add_plan(std::shared_ptr<Plan> plan, cufftHandle &handle);
std::shared_ptr<Plan> find_plan(cufftHandle handle);
bool remove_plan(cufftHandle handle);

// The backends.
cufftResult make_host(const Request &request, std::unique_ptr<Backend> &out);
cufftResult make_hipfft(const Request &request, bool allocate, std::unique_ptr<Backend> &out, size_t &work_size);
cufftResult hipfft_size(const Request &request, size_t &work_size);

}  // namespace sx::cufft
