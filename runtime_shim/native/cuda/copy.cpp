// Copies and fills.  Addresses decide, not the name of the function: H2D from a device address is a copy
// between devices, as on NVIDIA's driver.
#include "access.h"
#include "driver.h"
#include "graph.h"
#include "hostcall.h"
#include "launch.h"
#include "pointer.h"
#include "texture.h"
#include "unsupported.h"

#include <cstring>

using namespace sx;

namespace sx {

namespace {

// Whether HIP knows the address: memory of a device, or of the host that was allocated or registered with it.
bool is_known(const void *address) {
  hipPointerAttribute_t facts = {};
  if (hip().hipPointerGetAttributes(&facts, address) == hipSuccess) return facts.type != hipMemoryTypeUnregistered;
  hip().hipGetLastError();  // a question, not an error
  return false;
}

// AMD's library takes the direction from the addresses; NVIDIA's refuses the host's own memory where a device's is due.
bool contradicts(const void *dst, const void *src, hipMemcpyKind kind) {
  if (hip().emulated || !hip().hipPointerGetAttributes) return false;  // the emulated device says so itself
  bool to = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  bool from = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  return (to && !is_known(dst)) || (from && !is_known(src));
}

// Whether a copy or a fill (no `src`) breaks the rights of virtual memory.
bool forbidden(const void *dst, const void *src, size_t size) {
  if (hip().emulated) return false;  // the emulated device says so itself
  return !may_access(dst, size, true) || (src && !may_access(src, size, false));
}

bool forbidden(const char *dst, size_t dst_pitch, const char *src, size_t src_pitch, size_t width, size_t height) {
  for (size_t row = 0; row < height && !hip().emulated; ++row)
    if (forbidden(dst + row * dst_pitch, src ? src + row * src_pitch : nullptr, width)) return true;
  return false;
}

}  // namespace

// Copies; waits for the end if `wait`, in the stream's order.
CUresult copy(void *dst, const void *src, size_t size, hipMemcpyKind kind, CUstream stream, bool wait) {
  if (!size) return CUDA_SUCCESS;
  if (!dst || !src || contradicts(dst, src, kind)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = wait ? refused_in_capture(stream) : CUDA_SUCCESS) return refused;
  if (!wait && is_capturing(stream)) {
    GraphWork work(NodeType::Copy);
    work.copy.srcMemoryType = work.copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    work.copy.srcDevice = reinterpret_cast<CUdeviceptr>(src);
    work.copy.dstDevice = reinterpret_cast<CUdeviceptr>(dst);
    work.copy.WidthInBytes = size;
    work.copy.Height = work.copy.Depth = 1;
    return capture(stream, std::move(work));
  }
  if (forbidden(dst, src, size)) return CUDA_ERROR_INVALID_VALUE;
  hipStream_t s = to_hip(stream);
  if (!wait) return from_hip(hip().hipMemcpyAsync(dst, src, size, kind, s));
  CUresult result;
  if (!s) {
    result = from_hip(hip().hipMemcpy(dst, src, size, kind));
  } else if (hip().hipMemcpyWithStream) {
    result = from_hip(hip().hipMemcpyWithStream(dst, src, size, kind, s));
  } else {
    result = from_hip(hip().hipMemcpyAsync(dst, src, size, kind, s));
    if (result == CUDA_SUCCESS) result = from_hip(hip().hipStreamSynchronize(s));
  }
  // A copy inside the device shows nothing (measured); one whose ends are open may.
  return kind == hipMemcpyDeviceToHost || kind == hipMemcpyDefault ? flush(current_device(), result) : result;
}

CUresult finish(CUresult result, CUstream stream, bool wait) {
  return result == CUDA_SUCCESS && wait ? from_hip(hip().hipStreamSynchronize(to_hip(stream))) : result;
}

namespace {

struct Side {
  char *base = nullptr;
  size_t pitch = 0, height = 0;
  size_t row = 0, planes = SIZE_MAX;  // the bytes of a row and the planes that a box may have
  bool lines = false;                 // an array of layers of one dimension
};

bool side_of(unsigned type, const void *host, CUdeviceptr device, CUarray handle, size_t pitch, size_t width,
             Side &side) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    Array *array = find_array(handle);
    if (!array) return false;
    side.base = array->memory;
    side.pitch = array->pitch;
    side.height = array->rows();
    side.row = array->row;
    side.planes = array->planes();
    side.lines = !array->described.Height && array->described.Flags & CUDA_ARRAY3D_LAYERED;
    return true;
  }
  switch (type) {
    case CU_MEMORYTYPE_HOST: side.base = static_cast<char *>(const_cast<void *>(host)); break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: side.base = static_cast<char *>(to_pointer(device)); break;
    default: return false;
  }
  side.pitch = side.row = pitch ? pitch : width;
  return true;
}

bool lies_in(size_t at, size_t size, size_t bound) { return at <= bound && size <= bound - at; }

// The rows of memory from one layer of one dimension to the next.  An H200 takes `given` for ordinary memory of the
// host, but writes layers one row after the other to a device's memory, whatever is given (measured for a whole array
// to the beginning of memory; other copies to and from a device's memory are refused).
CUresult layer_rows(const CUDA_MEMCPY3D &p, const Side &array, const char *memory, bool to_array, size_t &given) {
  size_t at = to_array ? p.srcZ : p.dstZ;
  if (given <= 1 || (p.Depth == 1 && !at)) return CUDA_SUCCESS;
  const PointerFacts facts = facts_of(reinterpret_cast<CUdeviceptr>(memory));
  if (!facts.known) return CUDA_SUCCESS;
  bool whole = !p.srcXInBytes && !p.srcZ && p.WidthInBytes == array.row && p.Depth == array.planes;
  bool start = !p.dstXInBytes && !p.dstY && !p.dstZ;
  if (to_array || !whole || !start || facts.hip.type != hipMemoryTypeDevice || facts.hip.isManaged)
    return refuse("a copy between layers of one dimension and planes of more than one row in a device's memory");
  given = 1;
  return CUDA_SUCCESS;
}

CUresult copy_rows(char *dst, size_t dst_pitch, const char *src, size_t src_pitch, size_t width, size_t height,
                   CUstream stream) {
  if (forbidden(dst, dst_pitch, src, src_pitch, width, height)) return CUDA_ERROR_INVALID_VALUE;
  if (dst_pitch == width && src_pitch == width)
    return from_hip(hip().hipMemcpyAsync(dst, src, width * height, hipMemcpyDefault, to_hip(stream)));
  return SX_HIP(hipMemcpy2DAsync, dst, dst_pitch, src, src_pitch, width, height, hipMemcpyDefault, to_hip(stream));
}

}  // namespace

CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool wait) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = wait ? refused_in_capture(stream) : CUDA_SUCCESS) return refused;
  if (!wait && is_capturing(stream)) {
    GraphWork work(NodeType::Copy);
    work.copy = *p;
    return capture(stream, std::move(work));
  }
  if (!p->WidthInBytes || !p->Height || !p->Depth) return CUDA_SUCCESS;
  Side src, dst;
  if (!side_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcPitch, p->WidthInBytes, src) ||
      !side_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstPitch, p->WidthInBytes, dst) || !src.base ||
      !dst.base)
    return CUDA_ERROR_INVALID_VALUE;
  // A box has to lie inside an array, whose padding is not the application's.  Of memory the pitch bounds a row, and
  // HIP checks the rest.
  if (!lies_in(p->srcXInBytes, p->WidthInBytes, src.row) || !lies_in(p->dstXInBytes, p->WidthInBytes, dst.row) ||
      !lies_in(p->srcY, p->Height, src.height ? src.height : SIZE_MAX) || !lies_in(p->srcZ, p->Depth, src.planes) ||
      !lies_in(p->dstY, p->Height, dst.height ? dst.height : SIZE_MAX) || !lies_in(p->dstZ, p->Depth, dst.planes))
    return CUDA_ERROR_INVALID_VALUE;
  // An array's own height counts; of memory, the one that is given.
  if (!src.height) src.height = p->srcHeight ? p->srcHeight : p->Height;
  if (!dst.height) dst.height = p->dstHeight ? p->dstHeight : p->Height;
  if (src.lines != dst.lines && p->Height == 1) {
    bool memory = src.lines ? dst.planes == SIZE_MAX : src.planes == SIZE_MAX;
    CUresult result = !memory   ? CUDA_SUCCESS
                      : src.lines ? layer_rows(*p, src, dst.base, false, dst.height)
                                  : layer_rows(*p, dst, src.base, true, src.height);
    if (result != CUDA_SUCCESS) return result;
  }
  for (size_t z = 0; z < p->Depth; ++z) {
    const char *from = src.base + ((p->srcZ + z) * src.height + p->srcY) * src.pitch + p->srcXInBytes;
    char *to = dst.base + ((p->dstZ + z) * dst.height + p->dstY) * dst.pitch + p->dstXInBytes;
    CUresult result = copy_rows(to, dst.pitch, from, src.pitch, p->WidthInBytes, p->Height, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  CUresult result = finish(CUDA_SUCCESS, stream, wait);
  return wait ? flush(current_device(), result) : result;
}

CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool wait) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D full = {};
  full.srcXInBytes = p->srcXInBytes;
  full.srcY = p->srcY;
  full.srcMemoryType = p->srcMemoryType;
  full.srcHost = p->srcHost;
  full.srcDevice = p->srcDevice;
  full.srcArray = p->srcArray;
  full.srcPitch = p->srcPitch;
  full.dstXInBytes = p->dstXInBytes;
  full.dstY = p->dstY;
  full.dstMemoryType = p->dstMemoryType;
  full.dstHost = p->dstHost;
  full.dstDevice = p->dstDevice;
  full.dstArray = p->dstArray;
  full.dstPitch = p->dstPitch;
  full.WidthInBytes = p->WidthInBytes;
  full.Height = p->Height;
  full.Depth = 1;
  return copy_3d(&full, stream, wait);
}

// Fills `height` rows of `width` elements of 1, 2 or 4 bytes.
CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
              CUstream stream, bool wait) {
  if (!width || !height) return CUDA_SUCCESS;
  if (!dst || dst % element) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = wait ? refused_in_capture(stream) : CUDA_SUCCESS) return refused;
  if (!wait && is_capturing(stream)) {
    GraphWork work(NodeType::Fill);
    work.fill = {dst, pitch, value, element, width, height};
    return capture(stream, std::move(work));
  }
  const char *to = static_cast<const char *>(to_pointer(dst));
  if (forbidden(to, pitch, nullptr, 0, width * element, height)) return CUDA_ERROR_INVALID_VALUE;
  hipStream_t s = to_hip(stream);
  CUresult result = CUDA_SUCCESS;
  if (element == 1 && height > 1 && hip().hipMemset2DAsync) {
    result = from_hip(hip().hipMemset2DAsync(to_pointer(dst), pitch, static_cast<int>(value), width, height, s));
    return finish(result, stream, wait);
  }
  for (size_t row = 0; row < height && result == CUDA_SUCCESS; ++row) {
    void *at = to_pointer(dst + row * pitch);
    if (element == 1) result = SX_HIP(hipMemsetAsync, at, static_cast<int>(value), width, s);
    else if (element == 2) result = SX_HIP(hipMemsetD16Async, at, static_cast<unsigned short>(value), width, s);
    else result = SX_HIP(hipMemsetD32Async, at, static_cast<int>(value), width, s);
  }
  return finish(result, stream, wait);
}

}  // namespace sx

// Each copy in four forms: on the legacy or the per-thread default stream (`_ptds`), or on a stream given
// (`_ptsz`: where 0 means the thread's own).
#define SX_COPY(base, suffix, dst_type, src_type, dst, src, kind)                                              \
  SX_API base##suffix(dst_type d, src_type s, size_t n) {                                                      \
    return enter<Need::Context>(__func__, [&] { return copy(dst, src, n, kind, nullptr, true); });             \
  }                                                                                                            \
  SX_API base##suffix##_ptds(dst_type d, src_type s, size_t n) {                                               \
    return enter<Need::Context>(__func__, [&] { return copy(dst, src, n, kind, CU_STREAM_PER_THREAD, true); }); \
  }                                                                                                            \
  SX_API base##Async##suffix(dst_type d, src_type s, size_t n, CUstream stream) {                              \
    return enter<Need::Context>(__func__, [&] { return copy(dst, src, n, kind, stream, false); });             \
  }                                                                                                            \
  SX_API base##Async##suffix##_ptsz(dst_type d, src_type s, size_t n, CUstream stream) {                       \
    return base##Async##suffix(d, s, n, stream ? stream : CU_STREAM_PER_THREAD);                               \
  }

SX_COPY(cuMemcpy, , CUdeviceptr, CUdeviceptr, to_pointer(d), to_pointer(s), hipMemcpyDefault)
SX_COPY(cuMemcpyHtoD, _v2, CUdeviceptr, const void *, to_pointer(d), s, hipMemcpyHostToDevice)
SX_COPY(cuMemcpyDtoH, _v2, void *, CUdeviceptr, d, to_pointer(s), hipMemcpyDeviceToHost)
SX_COPY(cuMemcpyDtoD, _v2, CUdeviceptr, CUdeviceptr, to_pointer(d), to_pointer(s), hipMemcpyDeviceToDevice)

#define SX_COPY_PARAMS(name, type, function)                                                                  \
  SX_API name##_v2(const type *p) {                                                                            \
    return enter<Need::Context>(__func__, [&] { return function(p, nullptr, true); });                         \
  }                                                                                                            \
  SX_API name##_v2_ptds(const type *p) {                                                                       \
    return enter<Need::Context>(__func__, [&] { return function(p, CU_STREAM_PER_THREAD, true); });            \
  }

#define SX_COPY_PARAMS_ASYNC(name, type, function)                                                            \
  SX_API name##_v2(const type *p, CUstream stream) {                                                           \
    return enter<Need::Context>(__func__, [&] { return function(p, stream, false); });                         \
  }                                                                                                            \
  SX_API name##_v2_ptsz(const type *p, CUstream stream) {                                                      \
    return name##_v2(p, stream ? stream : CU_STREAM_PER_THREAD);                                               \
  }

SX_COPY_PARAMS(cuMemcpy2D, CUDA_MEMCPY2D, copy_2d)
SX_COPY_PARAMS(cuMemcpy2DUnaligned, CUDA_MEMCPY2D, copy_2d)
SX_COPY_PARAMS(cuMemcpy3D, CUDA_MEMCPY3D, copy_3d)
SX_COPY_PARAMS_ASYNC(cuMemcpy2DAsync, CUDA_MEMCPY2D, copy_2d)
SX_COPY_PARAMS_ASYNC(cuMemcpy3DAsync, CUDA_MEMCPY3D, copy_3d)

SX_API cuMemcpyPeer(CUdeviceptr d, CUcontext, CUdeviceptr s, CUcontext, size_t n) {
  return enter<Need::Context>(__func__, [&] {
    return copy(to_pointer(d), to_pointer(s), n, hipMemcpyDefault, nullptr, true);
  });
}

SX_API cuMemcpyPeerAsync(CUdeviceptr d, CUcontext, CUdeviceptr s, CUcontext, size_t n, CUstream stream) {
  return enter<Need::Context>(__func__, [&] {
    return copy(to_pointer(d), to_pointer(s), n, hipMemcpyDefault, stream, false);
  });
}

#define SX_FILL(bits, type)                                                                                   \
  SX_API cuMemsetD##bits##_v2(CUdeviceptr d, type value, size_t n) {                                           \
    return enter<Need::Context>(__func__, [&] { return fill(d, 0, value, bits / 8, n, 1, nullptr, true); });   \
  }                                                                                                            \
  SX_API cuMemsetD##bits##_v2_ptds(CUdeviceptr d, type value, size_t n) {                                      \
    return enter<Need::Context>(__func__,                                                                      \
                                [&] { return fill(d, 0, value, bits / 8, n, 1, CU_STREAM_PER_THREAD, true); }); \
  }                                                                                                            \
  SX_API cuMemsetD##bits##Async(CUdeviceptr d, type value, size_t n, CUstream stream) {                        \
    return enter<Need::Context>(__func__, [&] { return fill(d, 0, value, bits / 8, n, 1, stream, false); });   \
  }                                                                                                            \
  SX_API cuMemsetD##bits##Async_ptsz(CUdeviceptr d, type value, size_t n, CUstream stream) {                   \
    return cuMemsetD##bits##Async(d, value, n, stream ? stream : CU_STREAM_PER_THREAD);                        \
  }                                                                                                            \
  SX_API cuMemsetD2D##bits##_v2(CUdeviceptr d, size_t pitch, type value, size_t width, size_t height) {        \
    return enter<Need::Context>(__func__,                                                                      \
                                [&] { return fill(d, pitch, value, bits / 8, width, height, nullptr, true); }); \
  }                                                                                                            \
  SX_API cuMemsetD2D##bits##_v2_ptds(CUdeviceptr d, size_t pitch, type value, size_t width, size_t height) {   \
    return enter<Need::Context>(__func__, [&] {                                                                \
      return fill(d, pitch, value, bits / 8, width, height, CU_STREAM_PER_THREAD, true);                       \
    });                                                                                                        \
  }                                                                                                            \
  SX_API cuMemsetD2D##bits##Async(CUdeviceptr d, size_t pitch, type value, size_t width, size_t height,        \
                                  CUstream stream) {                                                           \
    return enter<Need::Context>(__func__,                                                                      \
                                [&] { return fill(d, pitch, value, bits / 8, width, height, stream, false); }); \
  }                                                                                                            \
  SX_API cuMemsetD2D##bits##Async_ptsz(CUdeviceptr d, size_t pitch, type value, size_t width, size_t height,   \
                                       CUstream stream) {                                                      \
    return cuMemsetD2D##bits##Async(d, pitch, value, width, height, stream ? stream : CU_STREAM_PER_THREAD);   \
  }

SX_FILL(8, unsigned char)
SX_FILL(16, unsigned short)
SX_FILL(32, unsigned)

SX_API cuMemcpyPeer_ptds(CUdeviceptr d, CUcontext, CUdeviceptr s, CUcontext, size_t n) {
  return cuMemcpy_ptds(d, s, n);
}
SX_API cuMemcpyPeerAsync_ptsz(CUdeviceptr d, CUcontext, CUdeviceptr s, CUcontext, size_t n, CUstream stream) {
  return cuMemcpyAsync_ptsz(d, s, n, stream);
}
