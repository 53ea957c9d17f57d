// The part of the driver API's public ABI that is implemented here: handles, constants, structures.
// Names, numbers and layouts are the driver API's (CUDA 13.0); unused members are left as reserved bytes.
#pragma once
#include <cstddef>
#include <cstdint>

extern "C" {
struct CUctx_st;
struct CUmod_st;
struct CUlib_st;
struct CUfunc_st;
struct CUkern_st;
struct CUstream_st;
struct CUevent_st;
struct CUarray_st;
struct CUmemPoolHandle_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
}

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef CUctx_st *CUcontext;
typedef CUmod_st *CUmodule;
typedef CUlib_st *CUlibrary;
typedef CUfunc_st *CUfunction;
typedef CUkern_st *CUkernel;
typedef CUstream_st *CUstream;
typedef CUevent_st *CUevent;
typedef CUarray_st *CUarray;
typedef CUmemPoolHandle_st *CUmemoryPool;
typedef CUgraph_st *CUgraph;
typedef CUgraphExec_st *CUgraphExec;
typedef CUgraphNode_st *CUgraphNode;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);
typedef void (*CUhostFn)(void *user);
typedef size_t (*CUoccupancyB2DSize)(int block_size);

enum : CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_UNSUPPORTED_LIMIT = 215,
  CUDA_ERROR_CONTEXT_ALREADY_IN_USE = 216,
  CUDA_ERROR_FILE_NOT_FOUND = 301,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_ILLEGAL_STATE = 401,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE = 708,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
  CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_UNKNOWN = 999,
};

// Stream handles with a meaning of their own.
inline CUstream const CU_STREAM_LEGACY = reinterpret_cast<CUstream>(0x1);
inline CUstream const CU_STREAM_PER_THREAD = reinterpret_cast<CUstream>(0x2);

// cuLaunchKernel's `extra`.
inline void *const CU_LAUNCH_PARAM_END = nullptr;
inline void *const CU_LAUNCH_PARAM_BUFFER_POINTER = reinterpret_cast<void *>(0x1);
inline void *const CU_LAUNCH_PARAM_BUFFER_SIZE = reinterpret_cast<void *>(0x2);

struct CUuuid {
  char bytes[16];
};

enum : int {
  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
  CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
  CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
  CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
  CU_FUNC_ATTRIBUTE_MAX = 16,
};

enum : int {
  CU_LIMIT_STACK_SIZE = 0,
  CU_LIMIT_PRINTF_FIFO_SIZE = 1,
  CU_LIMIT_MALLOC_HEAP_SIZE = 2,
  CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
  CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
  CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
  CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
  CU_LIMIT_COUNT = 7,
};

enum : unsigned {
  CU_MEMORYTYPE_HOST = 1,
  CU_MEMORYTYPE_DEVICE = 2,
  CU_MEMORYTYPE_ARRAY = 3,
  CU_MEMORYTYPE_UNIFIED = 4,
};

enum : int {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
  CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
  CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
  CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
};

enum : int {
  CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE = 0,
  CU_LIBRARY_BINARY_IS_PRESERVED = 1,
};

struct CUDA_MEMCPY2D {
  size_t srcXInBytes, srcY;
  unsigned srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  unsigned dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
};
static_assert(sizeof(CUDA_MEMCPY2D) == 128, "ABI");

// CUDA_MEMCPY3D_PEER has contexts where this one has reserved pointers; we need neither.
struct CUDA_MEMCPY3D {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  unsigned srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  unsigned dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void *reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
};
static_assert(sizeof(CUDA_MEMCPY3D) == 200, "ABI");

struct CUDA_ARRAY_DESCRIPTOR {
  size_t Width, Height;
  unsigned Format, NumChannels;
};

struct CUDA_ARRAY3D_DESCRIPTOR {
  size_t Width, Height, Depth;
  unsigned Format, NumChannels, Flags;
};
static_assert(sizeof(CUDA_ARRAY3D_DESCRIPTOR) == 40, "ABI");

enum : unsigned {
  CU_AD_FORMAT_UNSIGNED_INT8 = 1,
  CU_AD_FORMAT_UNSIGNED_INT16 = 2,
  CU_AD_FORMAT_UNSIGNED_INT32 = 3,
  CU_AD_FORMAT_SIGNED_INT8 = 8,
  CU_AD_FORMAT_SIGNED_INT16 = 9,
  CU_AD_FORMAT_SIGNED_INT32 = 10,
  CU_AD_FORMAT_HALF = 16,
  CU_AD_FORMAT_FLOAT = 32,
  CUDA_ARRAY3D_LAYERED = 1,
  CUDA_ARRAY3D_SURFACE_LDST = 2,
  CUDA_ARRAY3D_CUBEMAP = 4,
  CU_TRSF_READ_AS_INTEGER = 1,
  CU_TRSF_NORMALIZED_COORDINATES = 2,
  CU_TRSF_SRGB = 16,
  CU_TRSF_SEAMLESS_CUBEMAP = 64,
};

struct CUDA_RESOURCE_DESC {
  int resType;  // 0 an array, 1 a mipmapped one, 2 linear memory, 3 with a pitch
  union {
    CUarray array;
    struct {
      CUdeviceptr devPtr;
      unsigned format, numChannels;
      size_t sizeInBytes;
    } linear;
    struct {
      CUdeviceptr devPtr;
      unsigned format, numChannels;
      size_t width, height, pitchInBytes;
    } pitch2D;
    int reserved[32];
  } res;
  unsigned flags;
};
static_assert(sizeof(CUDA_RESOURCE_DESC) == 144, "ABI");

struct CUDA_TEXTURE_DESC {
  int addressMode[3];  // 0 wrap, 1 clamp, 2 mirror, 3 border
  int filterMode;      // 0 point, 1 linear
  unsigned flags, maxAnisotropy;
  int mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  float borderColor[4];
  int reserved[12];
};
static_assert(sizeof(CUDA_TEXTURE_DESC) == 104, "ABI");

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int cooperative;
    unsigned cluster[3];
    struct {
      CUevent event;
      int flags;
      int trigger;
    } event;
    struct {
      int updatable;
      void *node;
    } updatable;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72, "ABI");

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};
static_assert(sizeof(CUlaunchConfig) == 56, "ABI");

struct CUmemLocation {
  int type;  // 1: a device, 2: the host, 3: a NUMA node of the host
  int id;
};

struct CUmemPoolProps {
  int allocType, handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};
static_assert(sizeof(CUmemPoolProps) == 88, "ABI");

struct CUmemAccessDesc {
  CUmemLocation location;
  int flags;  // 0 none, 1 read, 3 read and write
};

struct CUctxCreateParams {
  void *execAffinityParams;
  int numExecAffinityParams;
  void *cigParams;
};
