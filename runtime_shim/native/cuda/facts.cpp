// The devices that libnvidia-ml.so.1 reports (device_facts.h).
#include "device_facts.h"

#include "capability.h"
#include "driver.h"
#include "log.h"
#include "profile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace sx {
namespace {

// The emulated device's library, which answers these questions without initialising.
const Hip *uninitialised() {
  static const Hip *const found = []() -> const Hip * {
    auto *hip = new Hip;
    std::string error;
    if (load_hip(*hip, error) && hip->emulated) return hip;
    delete hip;
    return nullptr;
  }();
  return found;
}

void copy_text(char *out, size_t size, const std::string &text) {
  size_t n = std::min(size - 1, text.size());
  memcpy(out, text.data(), n);
  out[n] = 0;
}

// SASSXLATE_DEVICES: what `run` found out in a process of its own; a line "BYTES BUS-ID UUID NAME" for each device.
int told(int ordinal, DeviceFacts &out) {
  const std::string text = env_string("SASSXLATE_DEVICES");
  int count = 0;
  for (size_t at = 0; at < text.size(); ++count) {
    size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (count != ordinal) continue;
    unsigned long long bytes = 0;
    char bus[32] = "", uuid[33] = "";
    int name = 0;
    if (sscanf(line.c_str(), "%llu %31s %32[0-9a-f] %n", &bytes, bus, uuid, &name) != 3 || !name) return 0;
    out.memory = bytes;
    copy_text(out.bus_id, sizeof out.bus_id, bus);
    for (size_t i = 0; i < 16 && uuid[2 * i] && uuid[2 * i + 1]; ++i) {
      unsigned byte = 0;
      sscanf(uuid + 2 * i, "%2x", &byte);
      out.uuid[i] = static_cast<unsigned char>(byte);
    }
    copy_text(out.name, sizeof out.name, line.substr(static_cast<size_t>(name)));
  }
  return count;
}

int emulated(const Hip &hip, int ordinal, DeviceFacts &out) {
  int count = 0;
  if (hip.hipGetDeviceCount(&count) != hipSuccess || ordinal < 0 || ordinal >= count) return std::max(count, 0);
  size_t total = 0;
  hip.hipDeviceGetName(out.name, sizeof out.name, ordinal);
  hip.hipDeviceGetPCIBusId(out.bus_id, sizeof out.bus_id, ordinal);
  hip.hipDeviceGetUuid(reinterpret_cast<char *>(out.uuid), ordinal);
  hip.hipDeviceTotalMem(&total, ordinal);
  out.memory = total;
  out.used = 0;  // a device of this process alone, which has not begun
  out.busy = 0;
  return count;
}

}  // namespace

int device_facts(int ordinal, DeviceFacts &out) {
  out = {};
  out.used = out.busy = kUnknown;
  int count = told(ordinal, out);
  // AMD's library initialises for every question, so it is not asked here.
  if (const Hip *library = count ? nullptr : uninitialised()) count = emulated(*library, ordinal, out);
  out.in_use = is_initialised();
  if (out.in_use) {
    count = static_cast<int>(driver().devices.size());
    if (Device *device = find_device(ordinal)) {
      CUuuid uuid;
      size_t available = 0, total = 0;
      copy_text(out.name, sizeof out.name, device->name);
      copy_text(out.bus_id, sizeof out.bus_id, device->bus_id);
      device_uuid(*device, uuid);
      memcpy(out.uuid, uuid.bytes, sizeof out.uuid);
      out.memory = device->memory;
      // One device at a time is current in HIP; another's memory is not asked for.
      if (hip().emulated && hip().hipMemGetInfo(&available, &total) == hipSuccess) out.used = total - available;
      if (hip().emulated_busy) out.busy = hip().emulated_busy();
    }
  }
  const int decided = capability_so_far();
  out.major = decided / 10;
  out.minor = decided % 10;
  out.clock = kClock;
  out.memory_clock = kMemoryClock;
  out.bus_width = kBusWidth;
  out.driver_version = kDriverVersion;
  return count;
}

}  // namespace sx

extern "C" __attribute__((visibility("default"))) int sassxlate_device_facts(int ordinal, sx::DeviceFacts *out) {
  return out ? sx::device_facts(ordinal, *out) : 0;
}
