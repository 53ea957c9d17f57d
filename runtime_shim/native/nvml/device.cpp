// Devices: handles, names, memory, utilisation, clocks.
#include "state.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <mutex>
#include <sched.h>

using namespace sx;
using namespace sx::nvml;

namespace {

struct PciPlace {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
};

bool parse_place(const char *text, PciPlace &out) {
  char rest = 0;
  out = {};
  if (sscanf(text, "%x:%x:%x.%x%c", &out.domain, &out.bus, &out.device, &out.function, &rest) == 4) return true;
  out = {};
  if (sscanf(text, "%x:%x:%x%c", &out.domain, &out.bus, &out.device, &rest) == 3) return true;
  out = {};
  return sscanf(text, "%x:%x.%x%c", &out.bus, &out.device, &out.function, &rest) == 3;
}

PciPlace place_of(const DeviceFacts &facts) {
  PciPlace place;
  parse_place(facts.bus_id, place);
  return place;
}

std::string uuid_text(const DeviceFacts &facts) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    snprintf(hex, sizeof hex, "%02x", facts.uuid[i]);
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

template <typename Fits>
nvmlReturn_t find(nvmlDevice_t *out, Fits fits) {
  DeviceFacts facts;
  for (unsigned index = 0; facts_of(index, facts); ++index) {
    if (!fits(facts)) continue;
    *out = handle_of(index);
    return NVML_SUCCESS;
  }
  return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t count(unsigned *out) {
  return with_library([&]() -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    *out = device_count();
    return NVML_SUCCESS;
  });
}

nvmlReturn_t by_index(unsigned index, nvmlDevice_t *out) {
  return with_library([&]() -> nvmlReturn_t {
    if (!out || index >= device_count()) return NVML_ERROR_INVALID_ARGUMENT;
    *out = handle_of(index);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t by_bus(const char *text, nvmlDevice_t *out) {
  return with_library([&]() -> nvmlReturn_t {
    PciPlace wanted;
    if (!text || !out || !parse_place(text, wanted)) return NVML_ERROR_INVALID_ARGUMENT;
    return find(out, [&](const DeviceFacts &facts) {
      const PciPlace own = place_of(facts);
      return memcmp(&own, &wanted, sizeof own) == 0;
    });
  });
}

template <typename Info>
void fill_place(const DeviceFacts &facts, Info &info, unsigned domain_digits, char *text, size_t size) {
  const PciPlace place = place_of(facts);
  info.domain = place.domain;
  info.bus = place.bus;
  info.device = place.device;
  snprintf(text, size, "%0*X:%02X:%02X.%X", static_cast<int>(domain_digits), place.domain, place.bus, place.device,
           place.function);
}

nvmlReturn_t place_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    *out = {};
    fill_place(facts, *out, 4, out->busId, sizeof out->busId);
    return NVML_SUCCESS;
  });
}

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// The share of the time since the call before, at least a sixth of a second: NVML's shortest sample period.
unsigned utilisation(unsigned index, uint64_t busy) {
  constexpr uint64_t kPeriod = 1000000000u / 6;
  struct Sample {
    uint64_t time, busy;
    unsigned percent;
  };
  static Sample last[kMostDevices];
  static std::mutex mutex;
  std::lock_guard<std::mutex> guard(mutex);
  Sample &sample = last[index];
  const uint64_t now = nanoseconds();
  if (!sample.time || busy < sample.busy) sample = {now - std::max(kPeriod, busy), 0, 0};  // the first, or after a fork
  if (now - sample.time < kPeriod) return sample.percent;
  const uint64_t percent = (busy - sample.busy) * 100 / (now - sample.time);
  sample = {now, busy, static_cast<unsigned>(std::min<uint64_t>(percent, 100))};
  return sample.percent;
}

// As the device's CUDA attributes say; kHz there, MHz here.
nvmlReturn_t clock(nvmlDevice_t device, unsigned type, unsigned *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out || type >= NVML_CLOCK_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
    if (type == NVML_CLOCK_VIDEO) return NVML_ERROR_NOT_SUPPORTED;
    *out = static_cast<unsigned>(type == NVML_CLOCK_MEM ? facts.memory_clock : facts.clock) / 1000;
    return NVML_SUCCESS;
  });
}

template <typename Number>
nvmlReturn_t number(nvmlDevice_t device, Number *out, Number value) {
  return with_device(device, [&](unsigned, const DeviceFacts &) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    *out = value;
    return NVML_SUCCESS;
  });
}

}  // namespace

SX_NVML nvmlDeviceGetCount(unsigned *out) { return count(out); }
SX_NVML nvmlDeviceGetCount_v2(unsigned *out) { return count(out); }
SX_NVML nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *out) { return by_index(index, out); }
SX_NVML nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out) { return by_index(index, out); }
SX_NVML nvmlDeviceGetHandleByPciBusId(const char *text, nvmlDevice_t *out) { return by_bus(text, out); }
SX_NVML nvmlDeviceGetHandleByPciBusId_v2(const char *text, nvmlDevice_t *out) { return by_bus(text, out); }

SX_NVML nvmlDeviceGetHandleByUUID(const char *text, nvmlDevice_t *out) {
  return with_library([&]() -> nvmlReturn_t {
    if (!text || !out) return NVML_ERROR_INVALID_ARGUMENT;
    return find(out, [&](const DeviceFacts &facts) { return uuid_text(facts) == text; });
  });
}

SX_NVML nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *out) {
  return number(device, out, is_handle(device) ? device->index : 0);
}
SX_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *out) { return nvmlDeviceGetIndex(device, out); }

SX_NVML nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) { return give_text(facts.name, name, length); });
}

SX_NVML nvmlDeviceGetUUID(nvmlDevice_t device, char *text, unsigned length) {
  return with_device(device,
                     [&](unsigned, const DeviceFacts &facts) { return give_text(uuid_text(facts), text, length); });
}

SX_NVML nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v2_t *out) { return place_v2(device, out); }
SX_NVML nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *out) { return place_v2(device, out); }

SX_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    *out = {};
    fill_place(facts, *out, 4, out->busIdLegacy, sizeof out->busIdLegacy);
    fill_place(facts, *out, 8, out->busId, sizeof out->busId);
    return NVML_SUCCESS;
  });
}

SX_NVML nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != kPciInfoExtVersion1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *out = {};
    out->version = kPciInfoExtVersion1;
    fill_place(facts, *out, 8, out->busId, sizeof out->busId);
    return NVML_SUCCESS;
  });
}

SX_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (facts.used == kUnknown) return NVML_ERROR_NOT_SUPPORTED;
    *out = {facts.memory, facts.memory - facts.used, facts.used};
    return NVML_SUCCESS;
  });
}

SX_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (out->version != kMemoryVersion2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (facts.used == kUnknown) return NVML_ERROR_NOT_SUPPORTED;
    *out = {kMemoryVersion2, facts.memory, 0, facts.memory - facts.used, facts.used};
    return NVML_SUCCESS;
  });
}

// `memory`, the share of time in which memory was read or written, is that of kernels: they all do.
SX_NVML nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out) {
  return with_device(device, [&](unsigned index, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    if (facts.busy == kUnknown) return NVML_ERROR_NOT_SUPPORTED;
    const unsigned percent = utilisation(index, facts.busy);
    *out = {percent, percent};
    return NVML_SUCCESS;
  });
}

SX_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!major || !minor) return NVML_ERROR_INVALID_ARGUMENT;
    *major = facts.major;
    *minor = facts.minor;
    return NVML_SUCCESS;
  });
}

SX_NVML nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    const int capability = facts.major * 10 + facts.minor;
    *out = capability >= 100 ? 10u : capability >= 90 ? 9u : capability == 89 ? 8u : capability >= 80 ? 7u : 6u;
    return NVML_SUCCESS;
  });
}

SX_NVML nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *out) { return clock(device, type, out); }
SX_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *out) { return clock(device, type, out); }

SX_NVML nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned *out) {
  return with_device(device, [&](unsigned, const DeviceFacts &facts) -> nvmlReturn_t {
    if (!out) return NVML_ERROR_INVALID_ARGUMENT;
    *out = static_cast<unsigned>(facts.bus_width);
    return NVML_SUCCESS;
  });
}

// The host's processors are equally near.
SX_NVML nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long *set) {
  return with_device(device, [&](unsigned, const DeviceFacts &) -> nvmlReturn_t {
    if (!set || !words) return NVML_ERROR_INVALID_ARGUMENT;
    cpu_set_t own;
    if (sched_getaffinity(0, sizeof own, &own)) return NVML_ERROR_NOT_SUPPORTED;
    memset(set, 0, words * sizeof *set);
    memcpy(set, &own, std::min(sizeof own, words * sizeof *set));
    return NVML_SUCCESS;
  });
}

// A device reaches its own memory; no other's, as cuDeviceCanAccessPeer says.
SX_NVML nvmlDeviceGetP2PStatus(nvmlDevice_t first, nvmlDevice_t second, unsigned capability, unsigned *out) {
  return with_device(first, [&](unsigned from, const DeviceFacts &) {
    return with_device(second, [&](unsigned to, const DeviceFacts &) -> nvmlReturn_t {
      if (!out || capability >= NVML_P2P_CAPS_INDEX_UNKNOWN) return NVML_ERROR_INVALID_ARGUMENT;
      *out = from == to ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
      return NVML_SUCCESS;
    });
  });
}

SX_NVML nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *out) { return number(device, out, 0u); }  // unknown
SX_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *out) { return number(device, out, 0u); }  // default
SX_NVML nvmlDeviceGetDisplayMode(nvmlDevice_t device, unsigned *out) { return number(device, out, 0u); }
SX_NVML nvmlDeviceGetDisplayActive(nvmlDevice_t device, unsigned *out) { return number(device, out, 0u); }
SX_NVML nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned *out) { return number(device, out, 0u); }
