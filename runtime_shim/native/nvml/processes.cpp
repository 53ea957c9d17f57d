// Processes on a device: each has an emulated device of its own, so this one alone is known.
#include "state.h"

#include <unistd.h>

using namespace sx;
using namespace sx::nvml;

namespace {

constexpr unsigned kNoInstance = 0xffffffffu;

void fill(nvmlProcessInfo_v1_t &out, const DeviceFacts &facts) {
  out = {static_cast<unsigned>(getpid()), facts.used};  // unknown is the same number there
}

void fill(nvmlProcessInfo_t &out, const DeviceFacts &facts) {
  out = {static_cast<unsigned>(getpid()), facts.used, kNoInstance, kNoInstance};
}

// `count`: places in `out`, then processes; with too few places it is how many are needed.
template <typename Info>
nvmlReturn_t computing(nvmlDevice_t device, unsigned *count, Info *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!count || (*count && !out)) return NVML_ERROR_INVALID_ARGUMENT;
    const unsigned room = *count;
    *count = facts.in_use ? 1 : 0;
    if (*count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (*count) fill(*out, facts);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t none(nvmlDevice_t device, unsigned *count) {
  return with_device(device, [&](unsigned, const DeviceFacts &) -> nvmlReturn_t {
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
  });
}

}  // namespace

SX_NVML nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *out) {
  return computing(device, count, out);
}
SX_NVML nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *out) {
  return computing(device, count, out);
}
SX_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_t *out) {
  return computing(device, count, out);
}

#define SX_NONE(name) \
  SX_NVML name(nvmlDevice_t device, unsigned *count, void *) { return none(device, count); }
SX_NONE(nvmlDeviceGetGraphicsRunningProcesses)
SX_NONE(nvmlDeviceGetGraphicsRunningProcesses_v2)
SX_NONE(nvmlDeviceGetGraphicsRunningProcesses_v3)
SX_NONE(nvmlDeviceGetMPSComputeRunningProcesses)
SX_NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2)
SX_NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3)
