#include "state.h"

#include <mutex>
#include <vector>

namespace sx {
namespace {

struct Thread {
  int last = kSuccess;
  int device = 0;
};

thread_local Thread t_thread;

std::mutex g_mutex;
std::vector<CUcontext> g_primary;  // by device; null: not retained by this runtime

int initialise() {
  const Driver *d = load_driver();
  if (!d) return kInsufficientDriver;
  int version = 0;
  if (int error = d->cuDriverGetVersion(&version)) return error;
  if (version < kOldestDriver) return kInsufficientDriver;
  return d->cuInit(0);
}

// The primary context of a device, retained once per process; or the driver's error.
int primary_context(int device, CUcontext *context) {
  std::lock_guard<std::mutex> lock(g_mutex);
  if (static_cast<size_t>(device) >= g_primary.size()) g_primary.resize(static_cast<size_t>(device) + 1);
  CUcontext &slot = g_primary[static_cast<size_t>(device)];
  if (!slot) {
    if (int error = driver().cuDevicePrimaryCtxRetain(&slot, device)) {
      slot = nullptr;
      // A context that failed permanently cannot be retained again: the runtime reports the device as unavailable.
      return error >= 700 && error < 800 ? static_cast<int>(kDevicesUnavailable) : error;
    }
  }
  *context = slot;
  return kSuccess;
}

}  // namespace

int enter() {
  static const int result = initialise();
  return result;
}

int bind() {
  if (int error = enter()) return error;
  CUcontext context = nullptr;
  if (int error = driver().cuCtxGetCurrent(&context)) return error;
  if (context) return kSuccess;
  if (int error = primary_context(t_thread.device, &context)) return error;
  return driver().cuCtxSetCurrent(context);
}

int current_device(int *device) {
  if (int error = enter()) return error;
  CUcontext context = nullptr;
  if (int error = driver().cuCtxGetCurrent(&context)) return error;
  if (context) return driver().cuCtxGetDevice(device);
  *device = t_thread.device;
  return kSuccess;
}

int choose_device(int device) {
  if (int error = enter()) return error;
  int count = 0;
  if (int error = driver().cuDeviceGetCount(&count)) return error;
  if (count == 0) return kNoDevice;
  if (device < 0 || device >= count) return kInvalidDevice;
  CUcontext context = nullptr;
  if (int error = primary_context(device, &context)) return error;
  t_thread.device = device;
  return driver().cuCtxSetCurrent(context);
}

int reset_device() {
  int device = 0;
  if (int error = current_device(&device)) return error;
  if (int error = driver().cuDevicePrimaryCtxReset_v2(device)) return error;
  {
    std::lock_guard<std::mutex> lock(g_mutex);
    if (static_cast<size_t>(device) < g_primary.size()) g_primary[static_cast<size_t>(device)] = nullptr;
  }
  t_thread.device = device;
  return driver().cuCtxSetCurrent(nullptr);
}

int record(int error) {
  // What a query answers is no error ("CUDA C++ Programming Guide", Error Checking).
  if (error && error != kNotReady) t_thread.last = error;
  return error;
}

int last_error(bool clear) {
  int error = t_thread.last;
  if (clear) t_thread.last = kSuccess;
  return error;
}

}  // namespace sx
