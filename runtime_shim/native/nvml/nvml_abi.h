// The part of NVML's interface that is implemented: numbers and structures as its public documentation gives them.
#pragma once
#include <cstdint>

using nvmlReturn_t = int;
enum : nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
};

using nvmlDevice_t = struct NvmlDevice *;

enum : unsigned { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5 };
enum : unsigned { NVML_P2P_CAPS_INDEX_UNKNOWN = 5 };  // after read, write, NVLink, atomics, PCI
enum : unsigned { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_CLOCK_VIDEO = 3, NVML_CLOCK_COUNT = 4 };

struct nvmlMemory_t {
  unsigned long long total, free, used;
};

// `version` is the structure's size, and its number in the highest byte.
struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
constexpr unsigned kMemoryVersion2 = sizeof(nvmlMemory_v2_t) | 2u << 24;

struct nvmlUtilization_t {
  unsigned gpu, memory;  // percent
};

struct nvmlPciInfo_v2_t {
  char busId[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId, reserved[4];
};

struct nvmlPciInfo_t {
  char busIdLegacy[16];
  unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
  char busId[32];
};

struct nvmlPciInfoExt_t {
  unsigned version, domain, bus, device, pciDeviceId, pciSubSystemId, baseClass, subClass;
  char busId[32];
};
constexpr unsigned kPciInfoExtVersion1 = sizeof(nvmlPciInfoExt_t) | 1u << 24;

struct nvmlProcessInfo_v1_t {
  unsigned pid;
  unsigned long long usedGpuMemory;
};

struct nvmlProcessInfo_t {  // the second and third version
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};

static_assert(sizeof(nvmlMemory_v2_t) == 0x28 && sizeof(nvmlPciInfo_t) == 68 && sizeof(nvmlPciInfo_v2_t) == 52);
static_assert(sizeof(nvmlPciInfoExt_t) == 0x40 && sizeof(nvmlProcessInfo_t) == 24 && sizeof(nvmlProcessInfo_v1_t) == 16);
