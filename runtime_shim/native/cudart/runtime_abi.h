// The part of the runtime API's public ABI that this library implements, and the few places where
// the majors differ: a structure's length, a parameter more.  SX_CUDART_MAJOR is 11, 12 or 13.
#pragma once
#include "driver_abi.h"

#ifndef SX_CUDART_MAJOR
#error "SX_CUDART_MAJOR must be 11, 12 or 13"
#endif
#if SX_CUDART_MAJOR < 11 || SX_CUDART_MAJOR > 13
#error "this major of the runtime is not supported"
#endif

namespace sx {

constexpr int kMajor = SX_CUDART_MAJOR;
// The result of cudaRuntimeGetVersion; a driver below it is refused with 35, as NVIDIA's runtime does.
constexpr int kRuntimeVersion = kMajor == 13 ? 13000 : kMajor == 12 ? 12090 : 11080;
// The oldest driver that can serve this major (minor version compatibility).
constexpr int kOldestDriver = kMajor * 1000;

enum Code : int {
  kSuccess = 0,
  kInvalidValue = 1,
  kMemoryAllocation = 2,
  kInitialization = 3,
  kInvalidConfiguration = 9,
  kInvalidSymbol = 13,
  kInvalidChannelDescriptor = 20,
  kInvalidMemcpyDirection = 21,
  kInvalidFilterSetting = 26,
  kInvalidNormSetting = 27,
  kInsufficientDriver = 35,
  kDevicesUnavailable = 46,
  kMissingConfiguration = 52,
  kInvalidDeviceFunction = 98,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kDeviceUninitialized = 201,
  kPeerAccessUnsupported = 217,
  kPeerAccessNotEnabled = 705,
  kInvalidResourceHandle = 400,
  kSymbolNotFound = 500,
  kNotReady = 600,
  kNotSupported = 801,
  kUnknown = 999,
};

}  // namespace sx

typedef int cudaError_t;

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};

enum cudaMemcpyKind : int { kHostToHost = 0, kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kCopyDefault = 4 };

struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  CUarray srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  CUarray dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};
static_assert(sizeof(cudaMemcpy3DParms) == 160, "ABI");

struct cudaPointerAttributes {
  int type, device;
  void *devicePointer, *hostPointer;
#if SX_CUDART_MAJOR >= 13
  long reserved[8];
#endif
};
static_assert(sizeof(cudaPointerAttributes) == (SX_CUDART_MAJOR >= 13 ? 88 : 24), "ABI");

struct cudaFuncAttributes {
  size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
  int maxDynamicSharedSizeBytes, preferredShmemCarveout;
#if SX_CUDART_MAJOR >= 12
  int clusterDimMustBeSet, requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
  int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
  int reserved[16];
#endif
};
static_assert(sizeof(cudaFuncAttributes) == (SX_CUDART_MAJOR >= 12 ? 144 : 56), "ABI");

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  CUstream stream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};
static_assert(sizeof(cudaLaunchConfig_t) == 56, "ABI");

struct cudaChannelFormatDesc {
  int x, y, z, w;
  int f;  // 0 signed, 1 unsigned, 2 float, 3 none
};

struct cudaMemLocation {
  int type;  // 1: a device, 2: the host
  int id;
};

struct cudaMemsetParams {
  void *dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};

struct cudaKernelNodeParams {
  void *func;
  dim3 gridDim, blockDim;
  unsigned sharedMemBytes;
  void **kernelParams, **extra;
};
static_assert(sizeof(cudaKernelNodeParams) == 56, "ABI");

// Nodes' parameters by their type; but for kernels' functions and copies they are the driver's.
struct cudaGraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    cudaKernelNodeParams kernel;
    struct {
      int flags, reserved[3];
      cudaMemcpy3DParms copyParams;
    } copy;
  };
  long long reserved2;
};
static_assert(sizeof(cudaGraphNodeParams) == 256, "ABI");

#define SX_API extern "C" __attribute__((visibility("default"))) cudaError_t
#define SX_API_RETURNS(type) extern "C" __attribute__((visibility("default"))) type
