#include "driver.h"

#include "log.h"
#include "logs.h"
#include "pool.h"
#include "profile.h"
#include "trace.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <unistd.h>

namespace sx {
namespace {

std::atomic<bool> g_ready{false};
std::atomic<bool> g_forked{false};
std::atomic<bool> g_exiting{false};
std::mutex g_init_mutex;
CUresult g_init_result = CUDA_ERROR_NOT_INITIALIZED;

thread_local int t_bound = -1;  // the HIP device that this thread is set to

// hipDeviceAttributeMultiprocessorCount is 63 in ROCm 6 and 7, and on the emulated device.
constexpr int kHipMultiprocessorCount = 63;
constexpr int kHipVirtualMemory = 89;  // hipDeviceAttributeVirtualMemoryManagementSupported

void describe(Device &device) {
  Hip &api = driver().hip;
  char text[256] = "";
  if (api.hipDeviceGetName && api.hipDeviceGetName(text, sizeof text, device.hip) == hipSuccess) device.name = text;
  if (device.name.empty()) device.name = "AMD GPU";
  text[0] = 0;
  if (api.hipDeviceGetPCIBusId && api.hipDeviceGetPCIBusId(text, sizeof text, device.hip) == hipSuccess)
    device.bus_id = text;
  if (device.bus_id.empty()) device.bus_id = "0000:00:00.0";
  size_t total = 0, available = 0;
  if (api.hipDeviceTotalMem && api.hipDeviceTotalMem(&total, device.hip) == hipSuccess) device.memory = total;
  if (!device.memory && api.hipSetDevice(device.hip) == hipSuccess &&
      api.hipMemGetInfo(&available, &total) == hipSuccess)
    device.memory = total;
  int count = 0;
  if (api.hipDeviceGetAttribute &&
      api.hipDeviceGetAttribute(&count, kHipMultiprocessorCount, device.hip) == hipSuccess && count > 0)
    device.multiprocessors = count;
  int can = 0;
  device.virtual_memory = api.hipMemSetAccess && api.hipDeviceGetAttribute &&
                          api.hipDeviceGetAttribute(&can, kHipVirtualMemory, device.hip) == hipSuccess && can;
}

CUresult initialise_once() {
  Driver &d = driver();
  std::string error;
  if (!load_hip(d.hip, error)) {
    log_line("SX0714: no device: %s", error.c_str());
    return CUDA_ERROR_NO_DEVICE;
  }
  hipError_t status = d.hip.hipInit(0);
  int count = 0;
  if (status == hipSuccess) status = d.hip.hipGetDeviceCount(&count);
  if (status != hipSuccess || count <= 0) {
    log_line("SX0714: no device: %s gives error %d, %d devices", d.hip.path.c_str(), status, count);
    return CUDA_ERROR_NO_DEVICE;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = std::make_unique<Device>();
    device->ordinal = ordinal;
    device->hip = ordinal;
    device->primary.device = device.get();
    device->primary.primary = true;
    describe(*device);
    d.devices.push_back(std::move(device));
  }
  // After a fork none of the device's threads exist; at exit the device library may be gone.
  pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
  atexit([] { g_exiting = true; });
  return CUDA_SUCCESS;
}

}  // namespace

Context::Context() {
  static std::atomic<uint64_t> next{1};
  id = next++;
  set_default_limits();
}

void Context::set_default_limits() {
  // The defaults of an H200 (measured), where the limit has a meaning here.
  limits[CU_LIMIT_STACK_SIZE] = 1024;
  hip_stack = 0;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 8650752;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608;
  limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 0;
  limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = size_t{kSecondLevelCache} / 16 * 3;  // as much of its cache
  limits[CU_LIMIT_SHMEM_SIZE] = 0;  // the device's, which never changes
  limits[CU_LIMIT_CIG_ENABLED] = 0;
  limits[CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED] = 0;
}

Device::Device() : default_pool(new MemoryPool), pool(default_pool.get()) {}
Device::~Device() = default;

Driver &driver() {
  // Never destroyed: applications call the driver from their own static destructors.
  static Driver *const instance = new Driver;
  return *instance;
}

CUresult initialise() {
  CUresult over;
  if (is_over(over)) return over;
  std::lock_guard<std::mutex> guard(g_init_mutex);
  if (g_init_result == CUDA_ERROR_NOT_INITIALIZED) {
    g_init_result = initialise_once();
    g_ready = g_init_result == CUDA_SUCCESS;
  }
  return g_init_result;
}

bool is_over(CUresult &why) {
  if (g_forked) why = CUDA_ERROR_NOT_INITIALIZED;
  else if (g_exiting) why = CUDA_ERROR_DEINITIALIZED;
  else return false;
  return true;
}

bool is_initialised() {
  CUresult over;
  return g_ready && !is_over(over);
}

CUresult admit(Need need) {
  trace_enter();
  if (need == Need::Nothing) return CUDA_SUCCESS;
  CUresult over;
  if (is_over(over)) return over;
  if (!g_ready) return CUDA_ERROR_NOT_INITIALIZED;
  if (need == Need::Init) return CUDA_SUCCESS;
  Context *context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (CUresult sticky = context->device->sticky) return sticky;
  if (t_bound != context->device->hip) {
    CUresult result = from_hip(hip().hipSetDevice(context->device->hip));
    if (result != CUDA_SUCCESS) return result;
    t_bound = context->device->hip;
  }
  return CUDA_SUCCESS;
}

bool stays(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
      return true;
    default:
      return false;
  }
}

CUresult leave(const char *name, CUresult result) {
  if (stays(result))
    if (Context *context = current_context()) context->device->sticky = result;
  trace_leave(name, result);
  log_result(name, result);
  return result;
}

std::vector<Context *> &context_stack() {
  // A pointer, so that a thread's exit runs no destructor before the application's own.
  thread_local std::vector<Context *> *stack = new std::vector<Context *>;
  return *stack;
}

Context *current_context() {
  std::vector<Context *> &stack = context_stack();
  return stack.empty() ? nullptr : stack.back();
}

Device *find_device(CUdevice device) {
  auto &devices = driver().devices;
  return device >= 0 && static_cast<size_t>(device) < devices.size() ? devices[static_cast<size_t>(device)].get()
                                                                     : nullptr;
}

CUresult from_hip(hipError_t error) {
  switch (error) {
    case 0: return CUDA_SUCCESS;
    case 17: return CUDA_ERROR_INVALID_VALUE;  // hipErrorInvalidDevicePointer
    case 21: return CUDA_ERROR_INVALID_VALUE;  // hipErrorInvalidMemcpyDirection
    case 52: return CUDA_ERROR_INVALID_VALUE;  // hipErrorMissingConfiguration
    case 9: return CUDA_ERROR_INVALID_VALUE;   // hipErrorInvalidConfiguration
    case 12: return CUDA_ERROR_INVALID_VALUE;  // hipErrorInvalidPitchValue
    case 13: return CUDA_ERROR_NOT_FOUND;      // hipErrorInvalidSymbol
    case 53: return CUDA_ERROR_LAUNCH_FAILED;  // hipErrorPriorLaunchFailure
    case 98: return CUDA_ERROR_NOT_FOUND;      // hipErrorInvalidDeviceFunction
    default: return error >= 1000 ? CUDA_ERROR_UNKNOWN : error;  // the others' numbers are CUDA's
  }
}

void report(const std::vector<std::string> &fields) {
  static const std::string path = env_string("SASSXLATE_REPORT");
  std::string line;
  for (const std::string &field : fields) {
    if (!line.empty()) line += '\t';
    for (char c : field) line += c == '\t' || c == '\n' || c == '\r' ? ' ' : c;
  }
  line += '\n';
  append_row(path, line);
}

}  // namespace sx
