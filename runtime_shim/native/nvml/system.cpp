// The library and the system: initialisation, versions, texts of errors, names of processes.
#include "state.h"

#include "files.h"
#include "nvidia_driver.h"

#include <string>

using namespace sx;
using namespace sx::nvml;

namespace {

constexpr unsigned kKnownInitFlags = 3;  // NVML_INIT_FLAG_NO_GPUS, NVML_INIT_FLAG_NO_ATTACH

nvmlReturn_t cuda_version(int *version) {
  if (!version) return NVML_ERROR_INVALID_ARGUMENT;
  DeviceFacts facts;
  if (!facts_of(0, facts)) return NVML_ERROR_NOT_FOUND;
  *version = facts.driver_version;
  return NVML_SUCCESS;
}

}  // namespace

SX_NVML nvmlInit_v2() { return start(); }
SX_NVML nvmlInit() { return start(); }
SX_NVML nvmlInitWithFlags(unsigned flags) {
  return flags & ~kKnownInitFlags ? static_cast<nvmlReturn_t>(NVML_ERROR_INVALID_ARGUMENT) : start();
}
SX_NVML nvmlShutdown() { return stop(); }

extern "C" __attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t code) {
  switch (code) {
    case 0: return "Success";
    case 1: return "Uninitialized";
    case 2: return "Invalid Argument";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 5: return "Already Initialized";
    case 6: return "Not Found";
    case 7: return "Insufficient Size";
    case 8: return "Insufficient External Power";
    case 9: return "Driver Not Loaded";
    case 10: return "Timeout";
    case 11: return "Interrupt Request Issue";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 14: return "Corrupted infoROM";
    case 15: return "GPU is lost";
    case 16: return "GPU requires restart";
    case 17: return "The operating system has blocked the request.";
    case 18: return "RM has detected an NVML/RM version mismatch.";
    case 19: return "GPU is currently in use";
    case 20: return "Insufficient Memory";
    case 21: return "No data";
    case 22: return "The requested vgpu operation is not available on target device, because ECC is enabled";
    case 23: return "Insufficient Resources";
    case 24: return "Requested frequency is not supported";
    case 25: return "Argument version mismatch";
    case 26: return "Deprecated";
    case 27: return "Not Ready";
    case 28: return "GPU not found";
    case 29: return "Invalid state";
    case 30: return "Reset type not supported";
    default: return "Unknown Error";
  }
}

SX_NVML nvmlSystemGetDriverVersion(char *version, unsigned length) {
  return with_library([&] { return give_text(kNvidiaDriver, version, length); });
}

SX_NVML nvmlSystemGetNVMLVersion(char *version, unsigned length) {
  return with_library([&] { return give_text(std::string(kNvidiaCuda) + "." + kNvidiaDriver, version, length); });
}

// These two need no initialisation.
SX_NVML nvmlSystemGetCudaDriverVersion(int *version) { return cuda_version(version); }
SX_NVML nvmlSystemGetCudaDriverVersion_v2(int *version) { return cuda_version(version); }

SX_NVML nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
  return with_library([&]() -> nvmlReturn_t {
    if (!name || !length) return NVML_ERROR_INVALID_ARGUMENT;
    std::string text;
    if (!read_file("/proc/" + std::to_string(pid) + "/cmdline", text, 1u << 20)) return NVML_ERROR_NOT_FOUND;
    text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
    if (text.size() >= length) text.resize(length - 1);  // cut, as the documentation says
    return give_text(text, name, length);
  });
}

// S-class systems, which there are none of.
SX_NVML nvmlUnitGetCount(unsigned *count) {
  return with_library([&]() -> nvmlReturn_t {
    if (!count) return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
  });
}
