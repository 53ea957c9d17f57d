// What libnvidia-ml.so.1 asks of libcuda.so.1, whether CUDA is initialised or not.
#pragma once
#include <cstdint>

namespace sx {

struct DeviceFacts {
  char name[96];
  unsigned char uuid[16];
  char bus_id[32];       // "0000:03:00.0"
  uint64_t memory;       // bytes
  uint64_t used;         // of them by this process; kUnknown where that cannot be said
  uint64_t busy;         // nanoseconds in which this process's kernels ran; kUnknown likewise
  int major, minor;      // the compute capability, as far as it is decided
  int clock, memory_clock, bus_width;  // kHz, kHz, bits: the CUDA attributes
  int driver_version;    // 13000
  bool in_use;           // this process has initialised CUDA
};

constexpr uint64_t kUnknown = ~uint64_t{0};

// Fills `out` for a device and returns the number of devices; 0 where there is none, or nothing can be said yet.  It
// initialises nothing, so that a process may ask and fork before it uses CUDA.
using DeviceFactsFunction = int (*)(int ordinal, DeviceFacts *out);
constexpr char kDeviceFactsName[] = "sassxlate_device_facts";

}  // namespace sx
