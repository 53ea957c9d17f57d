// HIP as function pointers, resolved from whichever libamdhip64.so this process is to use.
#pragma once
#include "../hip/hip.h"

#include <cstdint>
#include <string>

namespace sx {

// The functions that this library requires.
#define SX_HIP_REQUIRED(F)                                                                             \
  F(hipInit) F(hipGetDeviceCount) F(hipSetDevice) F(hipGetLastError) F(hipDeviceSynchronize)           \
  F(hipMalloc) F(hipFree) F(hipMemcpy) F(hipMemcpyAsync) F(hipMemGetInfo) F(hipModuleLoadData)         \
  F(hipModuleUnload) F(hipModuleGetFunction) F(hipModuleLaunchKernel) F(hipStreamCreateWithFlags)      \
  F(hipStreamDestroy) F(hipStreamSynchronize) F(hipEventCreateWithFlags) F(hipEventDestroy)            \
  F(hipEventRecord) F(hipEventSynchronize)

// Optional functions: calls that need them return "not supported".
#define SX_HIP_OPTIONAL(F)                                                                             \
  F(hipDriverGetVersion) F(hipDeviceGetAttribute) F(hipDeviceGetName) F(hipDeviceGetUuid) F(hipDeviceGetPCIBusId)               \
  F(hipDeviceTotalMem) F(hipDeviceReset) F(hipDeviceGetStreamPriorityRange) F(hipDeviceSetLimit)       \
  F(hipMallocManaged) F(hipMallocAsync) F(hipFreeAsync) F(hipHostMalloc) F(hipHostFree)                \
  F(hipHostRegister) F(hipHostUnregister) F(hipHostGetDevicePointer) F(hipHostGetFlags)                \
  F(hipMemGetAddressRange) F(hipPointerGetAttributes) F(hipMemcpyWithStream) F(hipMemcpy2DAsync)       \
  F(hipMemsetAsync) F(hipMemsetD16Async) F(hipMemsetD32Async) F(hipMemset2DAsync)                      \
  F(hipModuleLaunchCooperativeKernel) F(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor)            \
  F(hipStreamCreateWithPriority) F(hipStreamQuery) F(hipStreamWaitEvent) F(hipStreamGetFlags)          \
  F(hipStreamGetPriority) F(hipStreamAddCallback) F(hipLaunchHostFunc) F(hipStreamWaitValue32)         \
  F(hipStreamWaitValue64) F(hipStreamWriteValue32) F(hipStreamWriteValue64) F(hipEventQuery)           \
  F(hipEventElapsedTime) F(hipMemGetAllocationGranularity) F(hipMemAddressReserve) F(hipMemAddressFree)  \
  F(hipMemCreate) F(hipMemRelease) F(hipMemMap) F(hipMemUnmap) F(hipMemSetAccess) F(hipMemGetAccess)     \
  F(hipMemRetainAllocationHandle) F(hipMemGetAllocationPropertiesFromHandle)                             \
  F(hipMemExportToShareableHandle) F(hipMemImportFromShareableHandle)

struct Hip {
#define F(name) decltype(&::name) name = nullptr;
  SX_HIP_REQUIRED(F)
  SX_HIP_OPTIONAL(F)
#undef F
  bool emulated = false;  // our own library, not AMD's
  uint32_t emulated_lds = 0;  // of it: bytes that a workgroup can have
  uint64_t (*emulated_busy)() = nullptr;  // of it: nanoseconds in which kernels ran
  std::string path;
};

// Loads SASSXLATE_HIP, otherwise the libamdhip64.so beside this library.  False with a reason in `error`.
bool load_hip(Hip &hip, std::string &error);

}  // namespace sx
