#include "plan.h"

#include <map>
#include <mutex>
#include <new>

#include "device.h"

namespace sx::cufft {
namespace {

struct Plans {
  std::mutex mutex;
  std::map<cufftHandle, std::shared_ptr<Plan>> all;
  cufftHandle next = 1;
};

// Never destroyed: applications destroy plans in exit handlers.
Plans &plans() {
  static auto *const instance = new Plans;
  return *instance;
}

// More than the device holds could not be transformed, and its tables would take the machine's memory.
bool too_large(const Request &request) {
  const fft::Layout layout = layout_of(request, false);
  const size_t memory = replace::total_memory();
  return memory && (extent_of(request, layout, false) > memory / request.in_size() ||
                    extent_of(request, layout, true) > memory / request.out_size());
}

}  // namespace

cufftResult make_backend(const Request &request, bool allocate, std::unique_ptr<Backend> &out, size_t &work_size) {
  if (replace::enter()) return CUFFT_SETUP_FAILED;
  if (too_large(request)) return CUFFT_ALLOC_FAILED;
  work_size = 0;
  const bool host = replace::emulated();
  const cufftResult result = host ? make_host(request, out) : make_hipfft(request, allocate, out, work_size);
  if (result == CUFFT_SUCCESS) replace::note_replaced("cufft", host ? "the host" : "hipFFT");
  return result;
}

cufftResult size_of(const Request &request, size_t &work_size) {
  work_size = 0;
  if (replace::emulated()) return CUFFT_SUCCESS;
  return replace::enter() ? CUFFT_SETUP_FAILED : hipfft_size(request, work_size);
}

cufftResult add_plan(std::shared_ptr<Plan> plan, cufftHandle &handle) {
  Plans &p = plans();
  std::lock_guard<std::mutex> guard(p.mutex);
  handle = p.next++;
  p.all[handle] = std::move(plan);
  return CUFFT_SUCCESS;
}

std::shared_ptr<Plan> find_plan(cufftHandle handle) {
  Plans &p = plans();
  std::lock_guard<std::mutex> guard(p.mutex);
  auto found = p.all.find(handle);
  return found == p.all.end() ? nullptr : found->second;
}

bool remove_plan(cufftHandle handle) {
  Plans &p = plans();
  std::shared_ptr<Plan> removed;  // destroyed without the lock
  std::lock_guard<std::mutex> guard(p.mutex);
  auto found = p.all.find(handle);
  if (found == p.all.end()) return false;
  removed = std::move(found->second);
  p.all.erase(found);
  return true;
}

}  // namespace sx::cufft
