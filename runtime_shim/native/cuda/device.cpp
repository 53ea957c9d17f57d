// Devices: what they are and what they can do.  The profile is an H200's where the emulated device can keep
// the promise, and its own where it cannot.
#include "capability.h"
#include "driver.h"
#include "profile.h"
#include "shared_memory.h"
#include "texture.h"
#include "unsupported.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace sx;

namespace {

constexpr int kAttributeCount = 150;  // greater numbers are of later drivers

struct AttributeValue {
  int id, value;
};

// CU_DEVICE_ATTRIBUTE_*; those not listed are 0.
constexpr AttributeValue kAttributes[] = {
    {1, 1024},         // MAX_THREADS_PER_BLOCK
    {2, 1024},         // MAX_BLOCK_DIM_X
    {3, 1024},         // MAX_BLOCK_DIM_Y
    {4, 64},           // MAX_BLOCK_DIM_Z
    {5, 2147483647},   // MAX_GRID_DIM_X
    {6, 65535},        // MAX_GRID_DIM_Y
    {7, 65535},        // MAX_GRID_DIM_Z
    {8, 49152},        // MAX_SHARED_MEMORY_PER_BLOCK
    {9, 65536},        // TOTAL_CONSTANT_MEMORY
    {10, 32},          // WARP_SIZE
    {11, 2147483647},  // MAX_PITCH
    {12, 65536},       // MAX_REGISTERS_PER_BLOCK
    {13, kClock},      // CLOCK_RATE, kHz
    {14, 512},         // TEXTURE_ALIGNMENT
    {15, 1},           // GPU_OVERLAP
    {19, 1},           // CAN_MAP_HOST_MEMORY
    {21, 131072},      // MAXIMUM_TEXTURE1D_WIDTH
    {22, 131072},      // MAXIMUM_TEXTURE2D_WIDTH
    {23, 65536},       // MAXIMUM_TEXTURE2D_HEIGHT
    {24, 16384},       // MAXIMUM_TEXTURE3D_WIDTH
    {25, 16384},       // MAXIMUM_TEXTURE3D_HEIGHT
    {26, 16384},       // MAXIMUM_TEXTURE3D_DEPTH
    {27, 32768},       // MAXIMUM_TEXTURE2D_LAYERED_WIDTH
    {28, 32768},       // MAXIMUM_TEXTURE2D_LAYERED_HEIGHT
    {29, 2048},        // MAXIMUM_TEXTURE2D_LAYERED_LAYERS
    {30, 512},         // SURFACE_ALIGNMENT
    {31, 1},           // CONCURRENT_KERNELS
    {36, kMemoryClock},  // MEMORY_CLOCK_RATE, kHz
    {37, kBusWidth},   // GLOBAL_MEMORY_BUS_WIDTH (of a Radeon RX 7900)
    {38, kSecondLevelCache},  // L2_CACHE_SIZE (of a Radeon RX 7900)
    {39, 2048},        // MAX_THREADS_PER_MULTIPROCESSOR
    {40, 1},           // ASYNC_ENGINE_COUNT
    {41, 1},           // UNIFIED_ADDRESSING
    {42, 32768},       // MAXIMUM_TEXTURE1D_LAYERED_WIDTH
    {47, 8192},        // MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE
    {48, 8192},        // MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE
    {49, 32768},       // MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE
    {51, 32},          // TEXTURE_PITCH_ALIGNMENT
    {69, 268435456},   // MAXIMUM_TEXTURE1D_LINEAR_WIDTH
    {70, kPitchedTextureWidth},   // MAXIMUM_TEXTURE2D_LINEAR_WIDTH
    {71, kPitchedTextureHeight},  // MAXIMUM_TEXTURE2D_LINEAR_HEIGHT
    {72, kPitchedTexturePitch},   // MAXIMUM_TEXTURE2D_LINEAR_PITCH
    {73, 32768},       // MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH
    {74, 32768},       // MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT
    {77, 32768},       // MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH
    {78, 1},           // STREAM_PRIORITIES_SUPPORTED
    {79, 1},           // GLOBAL_L1_CACHE_SUPPORTED
    {80, 1},           // LOCAL_L1_CACHE_SUPPORTED
    {82, 65536},       // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 1},           // MANAGED_MEMORY
    {87, 2},           // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    {89, 1},           // CONCURRENT_MANAGED_ACCESS
    {90, 1},           // COMPUTE_PREEMPTION_SUPPORTED
    {91, 1},           // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    {95, 1},           // COOPERATIVE_LAUNCH
    {99, 1},           // HOST_REGISTER_SUPPORTED
    {106, 32},         // MAX_BLOCKS_PER_MULTIPROCESSOR
    {108, kMostPersisting},  // MAX_PERSISTING_L2_CACHE_SIZE: a hint
    {109, 134217728},  // MAX_ACCESS_POLICY_WINDOW_SIZE
    {111, kReservedShared},  // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},          // MEMORY_POOLS_SUPPORTED
    {122, 1},          // CAN_USE_64_BIT_STREAM_MEM_OPS
    {123, 0},          // CAN_USE_STREAM_WAIT_VALUE_NOR
    {126, 1},          // MEM_SYNC_DOMAIN_COUNT
    {131, -1},         // NUMA_ID
};

CUresult attribute(int id, Device &device, int &value) {
  if (id <= 0 || id >= kAttributeCount) return CUDA_ERROR_INVALID_VALUE;
  value = 0;
  switch (id) {
    case 16: value = device.multiprocessors; return CUDA_SUCCESS;
    case 75: value = capability() / 10; return CUDA_SUCCESS;
    case 76: value = capability() % 10; return CUDA_SUCCESS;
    case 18: value = 0; return CUDA_SUCCESS;
    case 81: value = shared_per_multiprocessor(); return CUDA_SUCCESS;
    case 97: value = shared_per_block(); return CUDA_SUCCESS;  // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    case 102: value = device.virtual_memory; return CUDA_SUCCESS;
    case 103: value = shares_memory(); return CUDA_SUCCESS;  // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    case 33: case 34: case 50: {  // PCI bus, device, domain
      unsigned domain = 0, bus = 0, slot = 0;
      sscanf(device.bus_id.c_str(), "%x:%x:%x", &domain, &bus, &slot);
      value = static_cast<int>(id == 33 ? bus : id == 34 ? slot : domain);
      return CUDA_SUCCESS;
    }
    default: break;
  }
  for (const AttributeValue &known : kAttributes)
    if (known.id == id) value = known.value;
  return CUDA_SUCCESS;
}

template <typename Body>
CUresult with_device(const char *name, CUdevice ordinal, Body body) {
  return enter<Need::Init>(name, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    return device ? body(*device) : CUDA_ERROR_INVALID_DEVICE;
  });
}

void copy_text(char *out, int size, const std::string &text) {
  if (size <= 0) return;
  size_t n = std::min(text.size(), static_cast<size_t>(size) - 1);
  memcpy(out, text.data(), n);
  out[n] = 0;
}

}  // namespace

void sx::device_uuid(const Device &device, CUuuid &uuid) {
  memset(uuid.bytes, 0, sizeof uuid.bytes);
  if (hip().hipDeviceGetUuid && hip().hipDeviceGetUuid(uuid.bytes, device.hip) == hipSuccess) return;
  memcpy(uuid.bytes, "sassxlate-gfx11", 15);
  uuid.bytes[15] = static_cast<char>(device.ordinal);
}

SX_API cuInit(unsigned flags) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    return flags ? CUDA_ERROR_INVALID_VALUE : initialise();
  });
}

SX_API cuDriverGetVersion(int *version) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = kDriverVersion;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetCount(int *count) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(driver().devices.size());
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGet(CUdevice *device, int ordinal) {
  return with_device(__func__, ordinal, [&](Device &) -> CUresult {
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetName(char *name, int length, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &device) -> CUresult {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    copy_text(name, length, device.name);
    return CUDA_SUCCESS;
  });
}

static CUresult get_uuid(const char *name, CUuuid *uuid, CUdevice ordinal) {
  return with_device(name, ordinal, [&](Device &device) -> CUresult {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    device_uuid(device, *uuid);
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetUuid(CUuuid *uuid, CUdevice device) { return get_uuid(__func__, uuid, device); }
SX_API cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) { return get_uuid(__func__, uuid, device); }

SX_API cuDeviceTotalMem_v2(size_t *bytes, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &device) -> CUresult {
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device.memory;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetAttribute(int *value, int id, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &device) -> CUresult {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    CUresult result = attribute(id, device, *value);
    note("%d = %d", id, result == CUDA_SUCCESS ? *value : 0);
    return result;
  });
}

SX_API cuDeviceComputeCapability(int *major, int *minor, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &) -> CUresult {
    if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
    *major = capability() / 10;
    *minor = capability() % 10;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetPCIBusId(char *text, int length, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &device) -> CUresult {
    if (!text || length <= static_cast<int>(device.bus_id.size())) return CUDA_ERROR_INVALID_VALUE;
    copy_text(text, length, device.bus_id);
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetByPCIBusId(CUdevice *out, const char *text) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out || !text) return CUDA_ERROR_INVALID_VALUE;
    unsigned wanted[4] = {0, 0, 0, 0}, own[4] = {0, 0, 0, 0};
    if (sscanf(text, "%x:%x:%x.%x", &wanted[0], &wanted[1], &wanted[2], &wanted[3]) < 3) {
      wanted[0] = 0;
      if (sscanf(text, "%x:%x.%x", &wanted[1], &wanted[2], &wanted[3]) < 2) return CUDA_ERROR_INVALID_VALUE;
    }
    for (auto &device : driver().devices) {
      sscanf(device->bus_id.c_str(), "%x:%x:%x.%x", &own[0], &own[1], &own[2], &own[3]);
      if (memcmp(wanted, own, sizeof own) != 0) continue;
      *out = device->ordinal;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

SX_API cuDeviceCanAccessPeer(int *can, CUdevice first, CUdevice second) {
  return with_device(__func__, first, [&](Device &) -> CUresult {
    if (!find_device(second)) return CUDA_ERROR_INVALID_DEVICE;
    if (!can) return CUDA_ERROR_INVALID_VALUE;
    *can = 0;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetP2PAttribute(int *value, int, CUdevice first, CUdevice second) {
  return with_device(__func__, first, [&](Device &) -> CUresult {
    if (!find_device(second) || first == second) return CUDA_ERROR_INVALID_DEVICE;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    *value = 0;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetExecAffinitySupport(int *supported, int, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &) -> CUresult {
    if (!supported) return CUDA_ERROR_INVALID_VALUE;
    *supported = 0;
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetTexture1DLinearMaxWidth(size_t *width, int number, unsigned channels, CUdevice ordinal) {
  return with_device(__func__, ordinal, [&](Device &) -> CUresult {
    const ArrayFormat *format = array_format(static_cast<unsigned>(number));
    if (!width || !format || (channels != 1 && channels != 2 && channels != 4)) return CUDA_ERROR_INVALID_VALUE;
    *width = most_linear_texels(size_t{channels} << format->shift);
    return CUDA_SUCCESS;
  });
}
