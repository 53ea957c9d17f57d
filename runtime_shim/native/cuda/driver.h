// The driver's state, and the prologue and epilogue of every entry point.
#pragma once
#include "cuda_abi.h"
#include "hip_api.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#define SX_API extern "C" __attribute__((visibility("default"))) CUresult

namespace sx {

struct Device;

// A context.  All contexts of a device share its memory and streams: HIP has one context per device.
struct Context {
  Device *device = nullptr;
  bool primary = false;
  // A primary context: retained; another: not destroyed.  Every call looks at it, without a lock.
  std::atomic<bool> alive{false};
  int retained = 0;
  unsigned flags = 0;
  int cache_config = 0;
  uint64_t id = 0;
  size_t limits[CU_LIMIT_COUNT];
  size_t hip_stack;  // bytes of a lane's stack that HIP gives kernels that recurse; 0: what their code object says

  Context();
  void set_default_limits();
  CUcontext handle() { return reinterpret_cast<CUcontext>(this); }
};

struct MemoryPool;

struct Device {
  int ordinal = 0;
  int hip = 0;  // HIP's number of it
  std::string name;
  std::string bus_id;
  size_t memory = 0;
  int multiprocessors = 1;
  bool virtual_memory = false;  // reserving addresses and mapping memory there
  Context primary;
  std::atomic<CUresult> sticky{CUDA_SUCCESS};  // an error that only the end of the process clears
  std::atomic<unsigned> generation{0};         // resets so far: each destroys a module's data on the device
  std::unique_ptr<MemoryPool> default_pool;
  MemoryPool *pool = nullptr;  // the current one

  Device();
  ~Device();
};

struct Driver {
  Hip hip;
  std::vector<std::unique_ptr<Device>> devices;
};

// The requirements of an entry point.
enum class Need { Nothing, Init, Context };

// The state; valid once cuInit has succeeded.
Driver &driver();
inline Hip &hip() { return driver().hip; }
// Whether memory can be made that other processes open by a file descriptor; not tried on cards.
inline bool shares_memory() { return hip().emulated && hip().hipMemExportToShareableHandle; }

// Initialises once; later calls give the same answer.
CUresult initialise();

// Whether cuInit has succeeded in this process, which has not forked since and does not end.
bool is_initialised();

// CUDA_SUCCESS if the caller may continue; binds the calling thread to its context's device.
CUresult admit(Need need);

// Records errors that stay, and writes the trace.
CUresult leave(const char *name, CUresult result);
// Whether it is an error of a kernel, which all later calls get.
bool stays(CUresult result);

// Arguments and answers of the call in progress, for its line of the trace.
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The calling thread's contexts; the last one is current.
std::vector<Context *> &context_stack();
Context *current_context();
inline Device &current_device() { return *current_context()->device; }
// The context of a handle, or null.
Context *find_context(CUcontext handle);
Device *find_device(CUdevice device);
void device_uuid(const Device &device, CUuuid &uuid);

// HIP's answer as a CUDA driver error.
CUresult from_hip(hipError_t error);

// One line to the run's report (SASSXLATE_REPORT), fields separated by tabs.
void report(const std::vector<std::string> &fields);

// True if the process has forked since initialisation, or its exit handlers run.
bool is_over(CUresult &why);

// The body of an entry point: `body` returns a CUresult and may throw.
template <Need need, typename Body>
CUresult enter(const char *name, Body body) {
  CUresult result = admit(need);
  if (result == CUDA_SUCCESS) {
    try {
      result = body();
    } catch (const std::bad_alloc &) {
      result = CUDA_ERROR_OUT_OF_MEMORY;
    } catch (...) {
      result = CUDA_ERROR_UNKNOWN;
    }
  }
  return leave(name, result);
}

// HIP's stream of a CUDA one: the legacy stream is HIP's null stream.
inline hipStream_t to_hip(CUstream stream) {
  return stream == CU_STREAM_LEGACY ? nullptr : reinterpret_cast<hipStream_t>(stream);
}
inline hipEvent_t to_hip(CUevent event) { return reinterpret_cast<hipEvent_t>(event); }
inline void *to_pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

// Registered host memory is none any more: a reset.
void forget_registered();

// Calls a HIP function that may be missing.
#define SX_HIP(name, ...) \
  (::sx::hip().name ? ::sx::from_hip(::sx::hip().name(__VA_ARGS__)) : CUDA_ERROR_NOT_SUPPORTED)

}  // namespace sx
