// The one device: its properties, attributes of kernels, occupancy.
#include "limits.h"
#include "log.h"
#include "memory.h"
#include "module.h"
#include "state.h"
#include "stream.h"
#include "target.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

namespace sx {
namespace {

constexpr int kVersion = 60000000;  // HIP_VERSION of the ABI that we follow: major * 10^7 + minor * 10^5

std::atomic<uint64_t> g_stack_limit{1024};
std::atomic<uint64_t> g_printf_limit{1u << 20};
std::atomic<uint64_t> g_heap_limit{8u << 20};
std::atomic<unsigned> g_max_lds{kMaxLds};

struct AttributeRow {
  int id;  // hipDeviceAttribute_t of ROCm 6 and 7
  int value;
};

constexpr AttributeRow kAttributes[] = {
    {2, 2},          // AsyncEngineCount
    {3, 1},          // CanMapHostMemory
    {4, 1},          // CanUseHostPointerForRegisteredMem
    {5, 2000000},    // ClockRate, kHz
    {7, 1},          // ComputePreemptionSupported
    {8, 1},          // ConcurrentKernels
    {9, 1},          // ConcurrentManagedAccess
    {10, 1},         // CooperativeLaunch
    {12, 1},         // DeviceOverlap
    {13, 1},         // DirectManagedMemAccessFromHost
    {14, 1},         // GlobalL1CacheSupported
    {15, 1},         // HostNativeAtomicSupported
    {19, 6 << 20},   // L2CacheSize
    {20, 1},         // LocalL1CacheSupported
    {23, 11},        // ComputeCapabilityMajor
    {24, 1},         // ManagedMemory
    {25, kMaxGroups},
    {26, kMaxThreads}, {27, kMaxThreads}, {28, kMaxThreads},  // MaxBlockDim
    {29, 0x7fffffff}, {30, 65535}, {31, 65535},               // MaxGridDim
    {55, kMaxThreads},       // MaxThreadsDim
    {56, kMaxThreads},       // MaxThreadsPerBlock
    {57, kSimds * kWavesPerSimd * 32},  // MaxThreadsPerMultiProcessor
    {58, 0x7fffffff},        // MaxPitch
    {59, 384},               // MemoryBusWidth
    {60, 1249000},           // MemoryClockRate, kHz
    {61, 0},                 // ComputeCapabilityMinor
    {67, 0}, {68, 0}, {69, 0},  // PCI bus, device, domain
    {74, kMaxLds}, {75, kMaxLds}, {76, kLdsPerMultiprocessor},        // shared memory
    {77, 32},                // SingleToDoublePrecisionPerfRatio
    {78, 1},                 // StreamPrioritiesSupported
    {79, 256}, {81, 256}, {82, 256},  // alignments
    {83, 0x7fffffff},        // TotalConstantMemory
    {85, 1},                 // UnifiedAddressing
    {87, 32},                // WarpSize
    {88, 0},                 // MemoryPoolsSupported
    {89, 1},                 // VirtualMemoryManagementSupported
    {90, 1},                 // HostRegisterSupported
    {10000, 100000},         // ClockInstructionRate, kHz: the 100 MHz of REALTIME
    {10002, kLdsPerMultiprocessor},
    {10011, 1},              // IsLargeBar
    {10013, 1},              // CanUseStreamWaitValue
    {10016, 1},              // FineGrainSupport
    {10017, 100000},         // WallClockRate, kHz
    {10018, 1},              // NumberOfXccs
    {10019, 256},            // MaxAvailableVgprsPerThread
};

int attribute(int *value, int id, int device) {
  if (!value) return hipErrorInvalidValue;
  if (device != 0) return hipErrorInvalidDevice;
  if (id == 63 || id == 10015) {
    *value = static_cast<int>(config().multiprocessors);
    return 0;
  }
  if (id == 84) {  // TotalGlobalMem does not fit an int; the real library cuts it, too
    *value = static_cast<int>(std::min<uint64_t>(config().device_memory, 0x7fffffff));
    return 0;
  }
  if (id == 71 || id == 72) {  // MaxRegistersPerBlock, PerMultiprocessor
    *value = static_cast<int>(target().vgprs_per_simd * 32 * (id == 71 ? 2 : kSimds));
    return 0;
  }
  for (const AttributeRow &row : kAttributes) {
    if (row.id != id) continue;
    *value = row.value;
    return 0;
  }
  if (id < 0 || (id > 91 && id < 10000) || id > 10020) return hipErrorInvalidValue;
  *value = 0;  // known, and not supported by the device
  return 0;
}

int copy_text(char *out, int length, const std::string &text) {
  if (!out || length <= 0) return hipErrorInvalidValue;
  size_t count = std::min(text.size(), static_cast<size_t>(length) - 1);
  memcpy(out, text.data(), count);
  out[count] = 0;
  return 0;
}

std::atomic<uint64_t> *limit_of(int limit) {
  switch (limit) {
    case hipLimitStackSize: return &g_stack_limit;
    case hipLimitPrintfFifoSize: return &g_printf_limit;
    case hipLimitMallocHeapSize: return &g_heap_limit;
    default: return nullptr;
  }
}

int function_attribute(int *value, int id, const Function &function) {
  const KernelInfo &info = *function.info;
  if (!value) return hipErrorInvalidValue;
  switch (id) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = static_cast<int>(info.max_flat_workgroup_size); break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(info.group_size); break;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = 0; break;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(info.private_size); break;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS: *value = static_cast<int>(info.vgprs); break;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 110; break;
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = 0; break;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(kMaxLds - std::min(kMaxLds, info.group_size));
      break;
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function.carveout; break;
    default: return hipErrorInvalidValue;
  }
  return 0;
}

int set_function_attribute(int id, int value, Function &function) {
  if (id == HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    function.carveout = value;
    return value >= -1 && value <= 100 ? 0 : hipErrorInvalidValue;
  }
  if (id != HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return hipErrorInvalidValue;
  // All LDS can be had without asking; only what is too much is an error.
  return value >= 0 && static_cast<unsigned>(value) <= kMaxLds && function.info->group_size <= kMaxLds - static_cast<unsigned>(value)
             ? 0
             : hipErrorInvalidValue;
}

int occupancy(int *blocks, hipFunction_t handle, int threads, size_t shared) {
  Function *function = nullptr;
  std::shared_ptr<Module> module = find_function(handle, function);
  if (!module) return hipErrorInvalidHandle;
  if (!blocks || threads <= 0) return hipErrorInvalidValue;
  *blocks = static_cast<int>(max_active_groups(*function->info, static_cast<unsigned>(threads), shared));
  return 0;
}

int potential_block_size(int *grid, int *block, hipFunction_t handle, size_t shared, int limit) {
  Function *function = nullptr;
  std::shared_ptr<Module> module = find_function(handle, function);
  if (!module) return hipErrorInvalidHandle;
  if (!grid || !block || limit < 0) return hipErrorInvalidValue;
  unsigned most = std::min<unsigned>(kMaxThreads, function->info->max_flat_workgroup_size);
  if (limit > 0) most = std::min(most, static_cast<unsigned>(limit));
  unsigned best = 0, best_threads = 0, best_groups = 0;
  for (unsigned threads = (most + 31) / 32 * 32; threads >= 32; threads -= 32) {
    unsigned size = std::min(threads, most), groups = max_active_groups(*function->info, size, shared);
    if (groups * size > best_threads) {
      best = size;
      best_threads = groups * size;
      best_groups = groups;
    }
  }
  if (best == 0) return hipErrorInvalidValue;
  *block = static_cast<int>(best);
  *grid = static_cast<int>(best_groups * config().multiprocessors);
  return 0;
}

int with_device(int device) { return device == 0 ? 0 : hipErrorInvalidDevice; }

}  // namespace

unsigned max_lds() { return g_max_lds.load(std::memory_order_relaxed); }

uint64_t stack_limit() { return g_stack_limit.load(); }

unsigned max_active_groups(const KernelInfo &info, unsigned threads, uint64_t shared) {
  const uint64_t most = max_lds();
  if (threads == 0 || threads > info.max_flat_workgroup_size || shared > most || info.group_size > most - shared)
    return 0;
  unsigned vgprs = std::max(1u, info.vgprs);
  unsigned step = target().vgpr_step;
  vgprs = (vgprs + step - 1) / step * step;
  unsigned waves = kSimds * std::min(kWavesPerSimd, target().vgprs_per_simd / vgprs);
  unsigned groups = std::min(kMaxGroups, waves / ((threads + 31) / 32));
  uint64_t lds = (info.group_size + shared + 511) / 512 * 512;
  return lds ? static_cast<unsigned>(std::min<uint64_t>(groups, kLdsPerMultiprocessor / kMaxLds * most / lds)) : groups;
}

}  // namespace sx

using namespace sx;

// Our CUDA driver asks, and takes more for its kernels than a card has; HIP programs get what a card has.
extern "C" __attribute__((visibility("default"))) uint32_t sassxlate_emulated_lds(void) {
  g_max_lds = kMostLds;
  return kMostLds;
}

SX_API hipError_t hipInit(unsigned flags) {
  return call([&]() -> int { return flags ? hipErrorInvalidValue : 0; });
}

SX_API hipError_t hipDriverGetVersion(int *version) {
  return call([&]() -> int { return version ? (*version = kVersion, 0) : hipErrorInvalidValue; }, kNoInit);
}

SX_API hipError_t hipRuntimeGetVersion(int *version) { return hipDriverGetVersion(version); }

SX_API hipError_t hipGetDeviceCount(int *count) {
  return call([&]() -> int { return count ? (*count = 1, 0) : hipErrorInvalidValue; }, kNoInit);
}

SX_API hipError_t hipGetDevice(int *device) {
  return call([&]() -> int { return device ? (*device = 0, 0) : hipErrorInvalidValue; }, kIgnoreSticky);
}

SX_API hipError_t hipSetDevice(int device) {
  return call([&] { return with_device(device); }, kIgnoreSticky);
}

SX_API hipError_t hipDeviceGet(hipDevice_t *device, int ordinal) {
  return call([&]() -> int {
    if (!device) return hipErrorInvalidValue;
    *device = ordinal;
    return with_device(ordinal);
  }, kIgnoreSticky);
}

SX_API hipError_t hipDeviceGetName(char *name, int length, hipDevice_t device) {
  return call([&] { return device ? with_device(device) : copy_text(name, length, std::string(target().name) + " (emulated by sassxlate)"); }, kNoInit);
}

SX_API hipError_t hipDeviceGetUuid(char uuid[16], hipDevice_t device) {
  return call([&]() -> int {
    if (device || !uuid) return device ? hipErrorInvalidDevice : hipErrorInvalidValue;
    memcpy(uuid, "sassxlate-gfx110", 16);  // NOLINT(bugprone-not-null-terminated-result): sixteen bytes, no text
    return 0;
  }, kNoInit);
}

// A place where the host has no device: libraries read in its sysfs what is there, and must not take that for the GPU.
SX_API hipError_t hipDeviceGetPCIBusId(char *text, int length, int device) {
  return call([&] { return device ? with_device(device) : copy_text(text, length, "0000:fd:1d.0"); }, kNoInit);
}

SX_API hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t device) {
  return call([&]() -> int {
    if (!bytes) return hipErrorInvalidValue;
    *bytes = config().device_memory;
    return with_device(device);
  }, kNoInit);
}

SX_API hipError_t hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device) {
  return call([&]() -> int {
    if (!major || !minor) return hipErrorInvalidValue;
    *major = 11;
    *minor = 0;
    return with_device(device);
  }, kIgnoreSticky);
}

SX_API hipError_t hipDeviceGetAttribute(int *value, int id, int device) {
  return call([&] { return attribute(value, id, device); }, kIgnoreSticky);
}

SX_API hipError_t hipDeviceGetLimit(size_t *value, int limit) {
  return call([&]() -> int {
    std::atomic<uint64_t> *found = limit_of(limit);
    if (!value) return hipErrorInvalidValue;
    if (!found) return hipErrorUnsupportedLimit;
    *value = found->load();
    return 0;
  });
}

SX_API hipError_t hipDeviceSetLimit(int limit, size_t value) {
  return call([&]() -> int {
    std::atomic<uint64_t> *found = limit_of(limit);
    if (!found) return hipErrorUnsupportedLimit;
    if (limit == hipLimitStackSize && value > (512u << 10)) return hipErrorInvalidValue;
    found->store(value);
    return 0;
  });
}

SX_API hipError_t hipDeviceSynchronize(void) {
  return call([] {
    wait_all_streams();
    return sticky_error();
  });
}

SX_API hipError_t hipDeviceReset(void) {
  return call([]() -> int {
    wait_all_streams();
    streams_reset();
    modules_reset();
    memory_reset();
    return 0;
  }, kIgnoreSticky);
}

SX_API hipError_t hipDeviceCanAccessPeer(int *can, int device, int peer) {
  return call([&]() -> int {
    if (!can) return hipErrorInvalidValue;
    *can = 0;
    return device == 0 && peer == 0 ? 0 : hipErrorInvalidDevice;
  });
}

SX_API hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return call([&]() -> int {
    if (least) *least = 0;
    if (greatest) *greatest = kGreatestPriority;
    return 0;
  });
}

SX_API hipError_t hipFuncGetAttribute(int *value, int id, hipFunction_t handle) {
  return call([&]() -> int {
    Function *function = nullptr;
    std::shared_ptr<Module> module = find_function(handle, function);
    return module ? function_attribute(value, id, *function) : hipErrorInvalidHandle;
  });
}

SX_API hipError_t hipFuncSetAttribute(const void *handle, int id, int value) {
  return call([&]() -> int {
    Function *function = nullptr;
    std::shared_ptr<Module> module = find_function(reinterpret_cast<hipFunction_t>(const_cast<void *>(handle)), function);
    return module ? set_function_attribute(id, value, *function) : hipErrorInvalidHandle;
  });
}

SX_API hipError_t hipFuncSetCacheConfig(const void *handle, int config) {
  return call([&]() -> int {
    Function *function = nullptr;
    std::shared_ptr<Module> module = find_function(reinterpret_cast<hipFunction_t>(const_cast<void *>(handle)), function);
    if (!module) return hipErrorInvalidHandle;
    return config >= 0 && config <= 3 ? 0 : hipErrorInvalidValue;  // a hint, without effect here
  });
}

SX_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t f, int threads,
                                                                     size_t shared) {
  return call([&] { return occupancy(blocks, f, threads, shared); });
}

SX_API hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, hipFunction_t f,
                                                                              int threads, size_t shared,
                                                                              unsigned) {
  return call([&] { return occupancy(blocks, f, threads, shared); });
}

SX_API hipError_t hipModuleOccupancyMaxPotentialBlockSize(int *grid, int *block, hipFunction_t f, size_t shared,
                                                          int limit) {
  return call([&] { return potential_block_size(grid, block, f, shared, limit); });
}
