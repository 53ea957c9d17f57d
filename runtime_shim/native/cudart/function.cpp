// Attributes of a kernel, and its occupancy.
#include <cstring>

#include "registry.h"
#include "state.h"

using namespace sx;

namespace {

struct Field {
  int attribute;
  int cudaFuncAttributes::*narrow;
  size_t cudaFuncAttributes::*wide;
};

const Field kFields[] = {
    {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, nullptr, &cudaFuncAttributes::sharedSizeBytes},
    {CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, nullptr, &cudaFuncAttributes::constSizeBytes},
    {CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, nullptr, &cudaFuncAttributes::localSizeBytes},
    {CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &cudaFuncAttributes::maxThreadsPerBlock, nullptr},
    {CU_FUNC_ATTRIBUTE_NUM_REGS, &cudaFuncAttributes::numRegs, nullptr},
    {CU_FUNC_ATTRIBUTE_PTX_VERSION, &cudaFuncAttributes::ptxVersion, nullptr},
    {CU_FUNC_ATTRIBUTE_BINARY_VERSION, &cudaFuncAttributes::binaryVersion, nullptr},
    {CU_FUNC_ATTRIBUTE_CACHE_MODE_CA, &cudaFuncAttributes::cacheModeCA, nullptr},
    {CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, &cudaFuncAttributes::maxDynamicSharedSizeBytes, nullptr},
    {CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, &cudaFuncAttributes::preferredShmemCarveout, nullptr},
#if SX_CUDART_MAJOR >= 12
    {CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, &cudaFuncAttributes::clusterDimMustBeSet, nullptr},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, &cudaFuncAttributes::requiredClusterWidth, nullptr},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, &cudaFuncAttributes::requiredClusterHeight, nullptr},
    {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, &cudaFuncAttributes::requiredClusterDepth, nullptr},
    {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, &cudaFuncAttributes::clusterSchedulingPolicyPreference,
     nullptr},
    {CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, &cudaFuncAttributes::nonPortableClusterSizeAllowed, nullptr},
#endif
};

// Runs `body(kernel, device)` with the kernel that `function` stands for.
template <class F>
int with_kernel(const void *function, F body) {
  return with_context([&] {
    CUkernel kernel = nullptr;
    int device = 0;
    if (int error = kernel_of(function, &kernel)) return error;
    if (int error = current_device(&device)) return error;
    return static_cast<int>(body(kernel, device));
  });
}

// The driver takes a kernel's handle wherever it takes a function's.
CUfunction as_function(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

CUlaunchConfig convert(const cudaLaunchConfig_t &c) {
  return {c.gridDim.x,  c.gridDim.y,  c.gridDim.z,
          c.blockDim.x, c.blockDim.y, c.blockDim.z,
          static_cast<unsigned>(c.dynamicSmemBytes), c.stream, c.attrs, c.numAttrs};
}

int set_attribute(const void *function, int attribute, int value) {
  return with_kernel(function, [&](CUkernel kernel, int device) {
    return driver().cuKernelSetAttribute(attribute, value, kernel, device);
  });
}

}  // namespace

SX_API cudaFuncGetAttributes(cudaFuncAttributes *out, const void *function) {
  return with_kernel(function, [&](CUkernel kernel, int device) {
    if (!out) return static_cast<int>(kInvalidValue);
    memset(out, 0, sizeof *out);
    for (const Field &field : kFields) {
      int value = 0;
      int error = driver().cuKernelGetAttribute(&value, field.attribute, kernel, device);
      // A driver without a cluster attribute has no clusters to report.
      if (error == kInvalidValue && field.attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) continue;
      if (error) return error;
      if (field.narrow)
        out->*field.narrow = value;
      else
        out->*field.wide = static_cast<size_t>(value);
    }
    return static_cast<int>(kSuccess);
  });
}

SX_API cudaFuncSetAttribute(const void *function, int attribute, int value) {
  return set_attribute(function, attribute, value);
}

SX_API cudaKernelSetAttributeForDevice(CUkernel kernel, int attribute, int value, int device) {
  return with_context([&] {
    CUkernel real = nullptr;
    if (int error = kernel_of(kernel, &real)) return error;
    return driver().cuKernelSetAttribute(attribute, value, real, device);
  });
}

SX_API cudaFuncSetCacheConfig(const void *function, int config) {
  return with_kernel(function, [&](CUkernel kernel, int device) {
    return driver().cuKernelSetCacheConfig(kernel, config, device);
  });
}

// Bank sizes have been fixed since Maxwell: the call only checks its function.
SX_API cudaFuncSetSharedMemConfig(const void *function, int) {
  return with_kernel(function, [](CUkernel, int) { return kSuccess; });
}

SX_API cudaFuncGetName(const char **name, const void *function) {
  if (!name) return record(kInvalidValue);
  *name = name_of(function);
  return record(*name ? kSuccess : kInvalidDeviceFunction);
}

SX_API cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size) {
  return with_kernel(function, [&](CUkernel kernel, int) {
    return driver().cuKernelGetParamInfo(kernel, index, offset, size);
  });
}

SX_API cudaGetKernel(CUkernel *out, const void *function) {
  return with_kernel(function, [&](CUkernel kernel, int) {
    *out = kernel;
    return kSuccess;
  });
}

SX_API cudaGetFuncBySymbol(CUfunction *out, const void *function) {
  return with_kernel(function, [&](CUkernel kernel, int) { return driver().cuKernelGetFunction(out, kernel); });
}

SX_API cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_size,
                                                              size_t shared, unsigned flags) {
  return with_kernel(function, [&](CUkernel kernel, int) {
    return driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, as_function(kernel), block_size,
                                                                         shared, flags);
  });
}

SX_API cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                     size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

SX_API cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared, const void *function, int blocks, int block_size) {
  return with_kernel(function, [&](CUkernel kernel, int) {
    return driver().cuOccupancyAvailableDynamicSMemPerBlock(shared, as_function(kernel), blocks, block_size);
  });
}

SX_API cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const cudaLaunchConfig_t *config) {
  return with_kernel(function, [&](CUkernel kernel, int) {
    if (!config) return static_cast<int>(kInvalidValue);
    CUlaunchConfig c = convert(*config);
    return driver().cuOccupancyMaxPotentialClusterSize(size, as_function(kernel), &c);
  });
}

SX_API cudaOccupancyMaxActiveClusters(int *clusters, const void *function, const cudaLaunchConfig_t *config) {
  return with_kernel(function, [&](CUkernel kernel, int) {
    if (!config) return static_cast<int>(kInvalidValue);
    CUlaunchConfig c = convert(*config);
    return driver().cuOccupancyMaxActiveClusters(clusters, as_function(kernel), &c);
  });
}
