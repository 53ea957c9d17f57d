// Attributes and occupancy of kernels, in terms of the device profile.
#include "module.h"
#include "shared_memory.h"

#include <algorithm>

using namespace sx;

namespace {

constexpr int kRegisters = 65536;
constexpr int kParts = 4;  // of a multiprocessor, with a quarter of its registers each
constexpr int kThreadsPerBlock = 1024;
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kBlocksPerMultiprocessor = 32;

CUresult kernel_of(const void *handle, Kernel *&kernel) {
  kernel = find_kernel(handle);
  return kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// Registers that a warp is given: 8 at a time to each lane.
int registers_of_warp(const KernelInfo &info) { return (std::clamp(info.registers, 1, 256) + 7) / 8 * 8 * 32; }

// The warps that the registers of a multiprocessor suffice for: each of its parts has its own.
int warps_by_registers(const KernelInfo &info) { return kRegisters / kParts / registers_of_warp(info) * kParts; }

// All is in the cubin, and nothing is translated for it: libraries ask of each of their kernels, and launch few.
CUresult read_attribute(int *value, int id, const Kernel &kernel) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  const KernelInfo &info = *kernel.info;
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = std::min(threads_on_nvidia(info), info.fits); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = info.shared; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(kernel.owner->constants()); break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = info.local; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = info.registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = kernel.owner->arch(); break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = kernel.max_dynamic_shared; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = kernel.carveout; break;
    default:
      if (id < 0 || id >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *value = 0;  // cache modes and clusters: none
  }
  return CUDA_SUCCESS;
}

CUresult get_attribute(int *value, int id, const Kernel &kernel) {
  CUresult result = read_attribute(value, id, kernel);
  note("%d = %d %s", id, result == CUDA_SUCCESS ? *value : 0, kernel.info->name.c_str());
  return result;
}

CUresult set_attribute(int id, int value, Kernel &kernel) {
  note("%d = %d %s", id, value, kernel.info->name.c_str());
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value > shared_per_block() - kernel.info->shared) return CUDA_ERROR_INVALID_VALUE;
      kernel.max_dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      kernel.carveout = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

int active_blocks(const Kernel &kernel, int threads, size_t dynamic) {
  const KernelInfo &info = *kernel.info;
  // Not the kernel's own bound: an H200 tells 8 for 256 threads where no more than 128 can be launched.
  if (threads > kThreadsPerBlock || dynamic > static_cast<size_t>(kernel.max_dynamic_shared)) return 0;
  int warps = (threads + 31) / 32;
  int shared = (info.shared + static_cast<int>(dynamic) + kReservedShared + 127) / 128 * 128;
  return std::min({kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / 32 / warps, warps_by_registers(info) / warps,
                   shared_per_multiprocessor() / shared});
}

CUresult occupancy(const char *name, int *blocks, const void *handle, int threads, size_t dynamic) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    if (!blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = active_blocks(*kernel, threads, dynamic);
    return CUDA_SUCCESS;
  });
}

CUresult potential(const char *name, int *grid, int *block, const void *handle, CUoccupancyB2DSize shared_of,
                   size_t dynamic, int limit) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
    // What is asked for here is launched: no more than the translation has registers for.
    const int most = std::min(threads_on_nvidia(*kernel->info), kernel->info->fits);
    int top = limit > 0 ? std::min(limit, most) : most;
    int best = 0, best_blocks = 0;
    for (int size = (top + 31) / 32 * 32; size > 0; size -= 32) {
      int threads = std::min(size, top);
      int blocks = active_blocks(*kernel, threads, shared_of ? shared_of(threads) : dynamic);
      // The largest block among those that fill a multiprocessor best.
      if (blocks * threads <= best * best_blocks) continue;
      best = threads;
      best_blocks = blocks;
    }
    *block = best;
    *grid = best_blocks * current_device().multiprocessors;
    return CUDA_SUCCESS;
  });
}

}  // namespace

namespace sx {

int threads_on_nvidia(const KernelInfo &info) { return std::min(info.threads, warps_by_registers(info) * 32); }

}  // namespace sx

SX_API cuFuncGetAttribute(int *value, int id, CUfunction handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    return result == CUDA_SUCCESS ? get_attribute(value, id, *kernel) : result;
  });
}

SX_API cuFuncSetAttribute(CUfunction handle, int id, int value) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    return result == CUDA_SUCCESS ? set_attribute(id, value, *kernel) : result;
  });
}

SX_API cuKernelGetAttribute(int *value, int id, CUkernel handle, CUdevice ordinal) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    return find_device(ordinal) ? get_attribute(value, id, *kernel) : CUDA_ERROR_INVALID_DEVICE;
  });
}

SX_API cuKernelSetAttribute(int id, int value, CUkernel handle, CUdevice ordinal) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    return find_device(ordinal) ? set_attribute(id, value, *kernel) : CUDA_ERROR_INVALID_DEVICE;
  });
}

static CUresult ignore_config(const char *name, const void *handle) {
  return enter<Need::Init>(name, [&]() -> CUresult {
    Kernel *kernel;
    return kernel_of(handle, kernel);
  });
}

SX_API cuFuncSetCacheConfig(CUfunction function, int) { return ignore_config(__func__, function); }
SX_API cuKernelSetCacheConfig(CUkernel kernel, int, CUdevice) { return ignore_config(__func__, kernel); }
SX_API cuFuncSetSharedMemConfig(CUfunction function, int) { return ignore_config(__func__, function); }

SX_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t dynamic) {
  return occupancy(__func__, blocks, function, threads, dynamic);
}
SX_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                            size_t dynamic, unsigned flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;
  return occupancy(__func__, blocks, function, threads, dynamic);
}

SX_API cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of,
                                        size_t dynamic, int limit) {
  return potential(__func__, grid, block, function, shared_of, dynamic, limit);
}
SX_API cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction function,
                                                 CUoccupancyB2DSize shared_of, size_t dynamic, int limit, unsigned) {
  return potential(__func__, grid, block, function, shared_of, dynamic, limit);
}

SX_API cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction handle, int blocks, int threads) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    if (!bytes || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    int each = std::min(shared_per_multiprocessor() / blocks / 128 * 128 - kReservedShared, shared_per_block());
    *bytes = static_cast<size_t>(std::clamp(each - kernel->info->shared, 0, kernel->max_dynamic_shared));
    return CUDA_SUCCESS;
  });
}

// Launches take clusters of one block: a larger one never fits, and the largest that does is one.
SX_API cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    if (!clusters || !config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
    const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
    if (threads == 0) return CUDA_ERROR_INVALID_VALUE;
    *clusters = active_blocks(*kernel, static_cast<int>(threads), config->sharedMemBytes) * current_device().multiprocessors;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      const unsigned *size = config->attrs[i].value.cluster;
      if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && (size[0] > 1 || size[1] > 1 || size[2] > 1))
        *clusters = 0;
    }
    return CUDA_SUCCESS;
  });
}

SX_API cuOccupancyMaxPotentialClusterSize(int *size, CUfunction handle, const CUlaunchConfig *config) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel;
    CUresult result = kernel_of(handle, kernel);
    if (result != CUDA_SUCCESS) return result;
    if (!size || !config) return CUDA_ERROR_INVALID_VALUE;
    *size = 1;
    return CUDA_SUCCESS;
  });
}
