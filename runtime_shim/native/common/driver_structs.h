// Handles and structures of the driver API (CUDA 13.0) that the driver library and the runtime have in common; unused
// members are left as reserved bytes.
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
struct CUmipmappedArray_st;
struct CUuserObject_st;
struct CUgreenCtx_st;
struct CUlinkState_st;
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
typedef CUmipmappedArray_st *CUmipmappedArray;
typedef CUuserObject_st *CUuserObject;
typedef CUlinkState_st *CUlinkState;
typedef unsigned long long CUgraphConditionalHandle;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef void (*CUstreamCallback)(CUstream stream, CUresult status, void *user);
typedef void (*CUhostFn)(void *user);
typedef size_t (*CUoccupancyB2DSize)(int block_size);

struct CUuuid {
  char bytes[16];
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

struct CUmemAllocationProp {
  int type, requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
};
static_assert(sizeof(CUmemAllocationProp) == 32, "ABI");

struct CUctxCreateParams {
  void *execAffinityParams;
  int numExecAffinityParams;
  void *cigParams;
};

// The parameters of graph nodes.
struct CUDA_MEMSET_NODE_PARAMS {
  CUdeviceptr dst;
  size_t pitch;
  unsigned value, elementSize;
  size_t width, height;
};
static_assert(sizeof(CUDA_MEMSET_NODE_PARAMS) == 40, "ABI");

// Its first version ends before `kern`.
struct CUDA_KERNEL_NODE_PARAMS {
  CUfunction func;
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void **kernelParams, **extra;
  CUkernel kern;
  CUcontext ctx;
};
static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == 72, "ABI");

struct CUDA_HOST_NODE_PARAMS {
  CUhostFn fn;
  void *userData;
};

struct CUDA_MEM_ALLOC_NODE_PARAMS {
  CUmemPoolProps poolProps;
  const CUmemAccessDesc *accessDescs;
  size_t accessDescCount, bytesize;
  CUdeviceptr dptr;
};
static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == 120, "ABI");

struct CUstreamBatchMemOpParams {
  int operation;  // 1 and 4 wait for a value of 32 and 64 bits, 2 and 5 write one
  CUdeviceptr address;
  cuuint64_t value;
  unsigned flags;
  cuuint64_t reserved[2];
};
static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "ABI");

struct CUDA_BATCH_MEM_OP_NODE_PARAMS {
  CUcontext ctx;
  unsigned count;
  CUstreamBatchMemOpParams *paramArray;
  unsigned flags;
};

struct CUgraphNodeParams {
  int type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    struct {
      int flags, reserved;
      CUcontext copyCtx;
      CUDA_MEMCPY3D copyParams;
    } copy;
    CUDA_MEMSET_NODE_PARAMS fill;
    CUDA_HOST_NODE_PARAMS host;
    struct {
      CUgraph graph;
      int ownership;
    } graph;
    struct {
      CUevent event;
    } event;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    struct {
      CUdeviceptr dptr;
    } free;
    CUDA_BATCH_MEM_OP_NODE_PARAMS operations;
    struct {
      CUgraphConditionalHandle handle;
      int type;  // 0 if, 1 while, 2 switch
      unsigned size;
      CUgraph *graphs;
      CUcontext ctx;
    } conditional;
  };
  long long reserved2;
};
static_assert(sizeof(CUgraphNodeParams) == 256, "ABI");

struct CUgraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};

struct CUgraphExecUpdateResultInfo {
  int result;
  CUgraphNode errorNode, errorFromNode;
};

struct CUDA_GRAPH_INSTANTIATE_PARAMS {
  cuuint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  int result_out;
};
