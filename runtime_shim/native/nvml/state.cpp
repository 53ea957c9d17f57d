#include "state.h"

#include "files.h"

#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

namespace sx::nvml {
namespace {

std::mutex g_mutex;
std::atomic<unsigned> g_started{0};  // calls of nvmlInit without their nvmlShutdown
NvmlDevice g_devices[kMostDevices];

// The driver library beside this one: the same instance that the application has, where it has one.  Loading it
// initialises nothing.
DeviceFactsFunction driver_facts() {
  static const DeviceFactsFunction found = [] {
    void *driver = dlopen((library_dir() + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    return driver ? reinterpret_cast<DeviceFactsFunction>(dlsym(driver, kDeviceFactsName)) : nullptr;
  }();
  return found;
}

}  // namespace

unsigned device_count() {
  DeviceFacts facts;
  int count = driver_facts() ? driver_facts()(0, &facts) : 0;
  return count < 0 ? 0 : count > static_cast<int>(kMostDevices) ? kMostDevices : static_cast<unsigned>(count);
}

bool facts_of(unsigned index, DeviceFacts &out) {
  if (index >= kMostDevices || !driver_facts()) return false;
  return static_cast<int>(index) < driver_facts()(static_cast<int>(index), &out);
}

nvmlReturn_t start() {
  std::lock_guard<std::mutex> guard(g_mutex);
  if (g_started == 0 && device_count() == 0) return NVML_ERROR_DRIVER_NOT_LOADED;
  ++g_started;
  return NVML_SUCCESS;
}

nvmlReturn_t stop() {
  std::lock_guard<std::mutex> guard(g_mutex);
  if (g_started == 0) return NVML_ERROR_UNINITIALIZED;
  --g_started;
  return NVML_SUCCESS;
}

bool is_started() { return g_started != 0; }

nvmlDevice_t handle_of(unsigned index) {
  g_devices[index].index = index;
  return &g_devices[index];
}

bool is_handle(nvmlDevice_t device) {
  auto at = reinterpret_cast<uintptr_t>(device), first = reinterpret_cast<uintptr_t>(g_devices);
  return at >= first && at < first + sizeof g_devices && (at - first) % sizeof(NvmlDevice) == 0;
}

nvmlReturn_t give_text(const std::string &text, char *out, unsigned length) {
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

}  // namespace sx::nvml
