// Copies and fills.  A `_ptds` entry is the blocking form for a program compiled with a default stream per
// thread: the asynchronous form on that stream, waited for.
#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "copy.h"
#include "registry.h"
#include "state.h"

using namespace sx;

namespace {

CUdeviceptr device_pointer(const void *p) { return reinterpret_cast<CUdeviceptr>(p); }

bool valid(int kind) { return kind >= kHostToHost && kind <= kCopyDefault; }

int wait_own(int error) { return error ? error : driver().cuStreamSynchronize(kStreamPerThread); }

// Addresses are unified, so the kind only chooses the copy's synchronisation with the host, never the memory space.
int copy_now(void *to, const void *from, size_t size, int kind) {
  if (size == 0) return kSuccess;
  if (!valid(kind)) return kInvalidMemcpyDirection;
  const Driver &d = driver();
  switch (kind) {
    case kHostToDevice: return d.cuMemcpyHtoD_v2(device_pointer(to), from, size);
    case kDeviceToHost: return d.cuMemcpyDtoH_v2(to, device_pointer(from), size);
    case kDeviceToDevice: return d.cuMemcpyDtoD_v2(device_pointer(to), device_pointer(from), size);
    default: return d.cuMemcpy(device_pointer(to), device_pointer(from), size);
  }
}

int copy_later(void *to, const void *from, size_t size, int kind, CUstream stream) {
  if (size == 0) return kSuccess;
  if (!valid(kind)) return kInvalidMemcpyDirection;
  const Driver &d = driver();
  switch (kind) {
    case kHostToDevice: return d.cuMemcpyHtoDAsync_v2(device_pointer(to), from, size, stream);
    case kDeviceToHost: return d.cuMemcpyDtoHAsync_v2(to, device_pointer(from), size, stream);
    case kDeviceToDevice: return d.cuMemcpyDtoDAsync_v2(device_pointer(to), device_pointer(from), size, stream);
    default: return d.cuMemcpyAsync(device_pointer(to), device_pointer(from), size, stream);
  }
}

// The memory type of a copy's end: with `default`, the driver finds it out.
CUmemorytype side(int kind, bool source) {
  if (kind == kCopyDefault) return CU_MEMORYTYPE_UNIFIED;
  bool host = source ? kind == kHostToHost || kind == kHostToDevice : kind == kHostToHost || kind == kDeviceToHost;
  // Unified where the runtime allows either: the direction is a hint and is not enforced.
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
}

int rectangle(CUDA_MEMCPY2D *c, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
              size_t height, int kind) {
  if (!valid(kind)) return kInvalidMemcpyDirection;
  if (width > to_pitch || width > from_pitch) return 12;  // cudaErrorInvalidPitchValue
  memset(c, 0, sizeof *c);
  c->srcMemoryType = side(kind, true);
  c->srcHost = from;
  c->srcDevice = device_pointer(from);
  c->srcPitch = from_pitch;
  c->dstMemoryType = side(kind, false);
  c->dstHost = to;
  c->dstDevice = device_pointer(to);
  c->dstPitch = to_pitch;
  c->WidthInBytes = width;
  c->Height = height;
  return kSuccess;
}

int copy_2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind,
            CUstream stream, bool later) {
  CUDA_MEMCPY2D c;
  if (int error = rectangle(&c, to, to_pitch, from, from_pitch, width, height, kind)) return error;
  if (width == 0 || height == 0) return kSuccess;
  return later ? driver().cuMemcpy2DAsync_v2(&c, stream) : driver().cuMemcpy2DUnaligned_v2(&c);
}

}  // namespace

// Boxes of memory and arrays.
int sx::element_size(CUarray array, size_t *size) {
  CUDA_ARRAY3D_DESCRIPTOR d;
  if (int error = driver().cuArray3DGetDescriptor_v2(&d, array)) return error;
  unsigned format = d.Format;
  *size = size_t{d.NumChannels} * (format == 32 || format == 3 || format == 10 ? 4 : format == 1 || format == 8 ? 1 : 2);
  return kSuccess;
}

// Whether the planes of memory that are copied from or to an array hold the box, as an H200 answers: 12
// (cudaErrorInvalidPitchValue) for planes or rows too short for the next one, 1 for a box outside its plane.
static int memory_holds(const cudaPitchedPtr &memory, const cudaPos &at, const cudaExtent &extent) {
  if (!extent.width || !extent.height || !extent.depth) return kSuccess;
  if (extent.height > 1 && memory.pitch < extent.width) return 12;
  if (!memory.ysize) return kSuccess;
  if (extent.depth > 1 && memory.ysize < extent.height) return 12;
  return at.y <= memory.ysize && extent.height <= memory.ysize - at.y ? kSuccess : kInvalidValue;
}

int sx::box(CUDA_MEMCPY3D *c, const cudaMemcpy3DParms *p) {
  if (!p) return kInvalidValue;
  if (!valid(p->kind)) return kInvalidMemcpyDirection;
  if ((!p->srcArray && !p->srcPtr.ptr) || (!p->dstArray && !p->dstPtr.ptr)) return kInvalidValue;
  if ((p->srcArray && p->srcPtr.ptr) || (p->dstArray && p->dstPtr.ptr)) return kInvalidValue;
  // With an array, widths and positions count its elements, those in memory too (measured); otherwise bytes.
  size_t element = 1, other = 0;
  CUarray array = p->srcArray ? p->srcArray : p->dstArray;
  if (array)
    if (int error = element_size(array, &element)) return error;
  if (p->srcArray && p->dstArray) {
    if (int error = element_size(p->dstArray, &other)) return error;
    if (other != element || p->kind == kHostToHost || p->kind == kHostToDevice) return kInvalidValue;
  } else if (array) {
    int error = p->srcArray ? memory_holds(p->dstPtr, p->dstPos, p->extent) : memory_holds(p->srcPtr, p->srcPos, p->extent);
    if (error) return error;
  }
  memset(c, 0, sizeof *c);
  c->srcXInBytes = p->srcPos.x * element;
  c->srcY = p->srcPos.y;
  c->srcZ = p->srcPos.z;
  c->srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : side(p->kind, true);
  c->srcArray = p->srcArray;
  c->srcHost = p->srcPtr.ptr;
  c->srcDevice = device_pointer(p->srcPtr.ptr);
  c->srcPitch = p->srcPtr.pitch;
  c->srcHeight = p->srcPtr.ysize;
  c->dstXInBytes = p->dstPos.x * element;
  c->dstY = p->dstPos.y;
  c->dstZ = p->dstPos.z;
  c->dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : side(p->kind, false);
  c->dstArray = p->dstArray;
  c->dstHost = p->dstPtr.ptr;
  c->dstDevice = device_pointer(p->dstPtr.ptr);
  c->dstPitch = p->dstPtr.pitch;
  c->dstHeight = p->dstPtr.ysize;
  c->WidthInBytes = p->extent.width * element;
  c->Height = p->extent.height;
  c->Depth = p->extent.depth;
  return kSuccess;
}

namespace {

// As an H200 answers: a copy of nothing from nowhere succeeds, and rows must not overlap.
bool nothing(const cudaMemcpy3DParms &p) {
  const bool named = p.srcArray || p.srcPtr.ptr || p.dstArray || p.dstPtr.ptr;
  return !named && !(p.extent.width && p.extent.height && p.extent.depth);
}

bool rows_overlap(const cudaMemcpy3DParms &p) {
  return p.srcPtr.ptr && p.dstPtr.ptr && p.extent.height > 1 && p.extent.depth &&
         p.extent.width > std::min(p.srcPtr.pitch, p.dstPtr.pitch);
}

int copy_3d(const cudaMemcpy3DParms *p, CUstream stream, bool later) {
  CUDA_MEMCPY3D c;
  if (p && valid(p->kind) && nothing(*p)) return kSuccess;
  if (int error = box(&c, p)) return error;
  if (!c.WidthInBytes || !c.Height || !c.Depth) return kSuccess;
  if (rows_overlap(*p)) return 12;  // cudaErrorInvalidPitchValue
  return later ? driver().cuMemcpy3DAsync_v2(&c, stream) : driver().cuMemcpy3D_v2(&c);
}

int fill_2d(void *p, size_t pitch, int value, size_t width, size_t height, CUstream stream, bool later) {
  if (width > pitch && height > 1) return kInvalidValue;  // unlike a copy's, which is an invalid pitch (12)
  if (width == 0 || height == 0) return kSuccess;
  unsigned char byte = static_cast<unsigned char>(value);
  return later ? driver().cuMemsetD2D8Async(device_pointer(p), pitch, byte, width, height, stream)
               : driver().cuMemsetD2D8_v2(device_pointer(p), pitch, byte, width, height);
}

// A box is one tall rectangle if it fills whole planes, otherwise one rectangle per plane.
int fill_3d(cudaPitchedPtr p, int value, cudaExtent e, CUstream stream, bool later) {
  if (e.height == p.ysize) return fill_2d(p.ptr, p.pitch, value, e.width, e.height * e.depth, stream, later);
  for (size_t z = 0; z < e.depth; ++z) {
    char *plane = static_cast<char *>(p.ptr) + z * p.pitch * p.ysize;
    if (int error = fill_2d(plane, p.pitch, value, e.width, e.height, stream, later)) return error;
  }
  return kSuccess;
}

int symbol_address(const void *symbol, size_t size, size_t offset, void **out) {
  CUdeviceptr address = 0;
  size_t whole = 0;
  if (int error = address_of(symbol, &address, &whole)) return error;
  if (offset > whole || size > whole - offset) return kInvalidValue;
  *out = reinterpret_cast<void *>(address + offset);
  return kSuccess;
}

enum class How { Now, Later, Own };  // blocking, on `stream`, blocking on the thread's own stream

int copy(void *to, const void *from, size_t size, int kind, CUstream stream, How how) {
  switch (how) {
    case How::Now: return copy_now(to, from, size, kind);
    case How::Later: return copy_later(to, from, size, kind, stream);
    default: return wait_own(copy_later(to, from, size, kind, kStreamPerThread));
  }
}

int to_symbol(const void *symbol, const void *from, size_t size, size_t offset, int kind, CUstream stream, How how) {
  return with_context([&] {
    if (kind != kHostToDevice && kind != kDeviceToDevice && kind != kCopyDefault)
      return static_cast<int>(kInvalidMemcpyDirection);
    void *to = nullptr;
    if (int error = symbol_address(symbol, size, offset, &to)) return error;
    return copy(to, from, size, kind, stream, how);
  });
}

int from_symbol(void *to, const void *symbol, size_t size, size_t offset, int kind, CUstream stream, How how) {
  return with_context([&] {
    if (kind != kDeviceToHost && kind != kDeviceToDevice && kind != kCopyDefault)
      return static_cast<int>(kInvalidMemcpyDirection);
    void *from = nullptr;
    if (int error = symbol_address(symbol, size, offset, &from)) return error;
    return copy(to, from, size, kind, stream, how);
  });
}

int fill(void *p, int value, size_t size) {
  return size ? driver().cuMemsetD8_v2(device_pointer(p), static_cast<unsigned char>(value), size)
              : static_cast<int>(kSuccess);
}

int fill_later(void *p, int value, size_t size, CUstream stream) {
  return size ? driver().cuMemsetD8Async(device_pointer(p), static_cast<unsigned char>(value), size, stream)
              : static_cast<int>(kSuccess);
}

}  // namespace

SX_API cudaMemcpy(void *to, const void *from, size_t size, int kind) {
  return with_context([&] { return copy(to, from, size, kind, nullptr, How::Now); });
}
SX_API cudaMemcpy_ptds(void *to, const void *from, size_t size, int kind) {
  return with_context([&] { return copy(to, from, size, kind, nullptr, How::Own); });
}
SX_API cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, CUstream stream) {
  return with_context([&] { return copy(to, from, size, kind, stream, How::Later); });
}
SX_API cudaMemcpyAsync_ptsz(void *to, const void *from, size_t size, int kind, CUstream stream) {
  return with_context([&] { return copy(to, from, size, kind, per_thread(stream), How::Later); });
}

// With one address space a copy between devices is a copy.
// Whether there are such devices; which of them has the memory, its address says.
static int devices(int one, int other) {
  for (int device : {one, other}) {
    CUdevice handle = 0;
    if (int error = driver().cuDeviceGet(&handle, device)) return error == kInvalidValue ? static_cast<int>(kInvalidDevice) : error;
  }
  return kSuccess;
}
SX_API cudaMemcpyPeer(void *to, int target, const void *from, int source, size_t size) {
  return with_context([&] {
    int error = devices(target, source);
    return error ? error : copy_now(to, from, size, kDeviceToDevice);
  });
}
SX_API cudaMemcpyPeerAsync(void *to, int target, const void *from, int source, size_t size, CUstream stream) {
  return with_context([&] {
    int error = devices(target, source);
    return error ? error : copy_later(to, from, size, kDeviceToDevice, stream);
  });
}

SX_API cudaMemcpyToSymbol(const void *symbol, const void *from, size_t size, size_t offset, int kind) {
  return to_symbol(symbol, from, size, offset, kind, nullptr, How::Now);
}
SX_API cudaMemcpyToSymbol_ptds(const void *symbol, const void *from, size_t size, size_t offset, int kind) {
  return to_symbol(symbol, from, size, offset, kind, nullptr, How::Own);
}
SX_API cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t size, size_t offset, int kind,
                               CUstream stream) {
  return to_symbol(symbol, from, size, offset, kind, stream, How::Later);
}
SX_API cudaMemcpyToSymbolAsync_ptsz(const void *symbol, const void *from, size_t size, size_t offset, int kind,
                                    CUstream stream) {
  return to_symbol(symbol, from, size, offset, kind, per_thread(stream), How::Later);
}
SX_API cudaMemcpyFromSymbol(void *to, const void *symbol, size_t size, size_t offset, int kind) {
  return from_symbol(to, symbol, size, offset, kind, nullptr, How::Now);
}
SX_API cudaMemcpyFromSymbol_ptds(void *to, const void *symbol, size_t size, size_t offset, int kind) {
  return from_symbol(to, symbol, size, offset, kind, nullptr, How::Own);
}
SX_API cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t size, size_t offset, int kind,
                                 CUstream stream) {
  return from_symbol(to, symbol, size, offset, kind, stream, How::Later);
}
SX_API cudaMemcpyFromSymbolAsync_ptsz(void *to, const void *symbol, size_t size, size_t offset, int kind,
                                      CUstream stream) {
  return from_symbol(to, symbol, size, offset, kind, per_thread(stream), How::Later);
}

SX_API cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                    int kind) {
  return with_context([&] { return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, nullptr, false); });
}
SX_API cudaMemcpy2D_ptds(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         int kind) {
  return with_context([&] {
    return wait_own(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, kStreamPerThread, true));
  });
}
SX_API cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         int kind, CUstream stream) {
  return with_context([&] { return copy_2d(to, to_pitch, from, from_pitch, width, height, kind, stream, true); });
}
SX_API cudaMemcpy2DAsync_ptsz(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, int kind, CUstream stream) {
  return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, per_thread(stream));
}
SX_API cudaMemcpy3D(const cudaMemcpy3DParms *p) {
  return with_context([&] { return copy_3d(p, nullptr, false); });
}
SX_API cudaMemcpy3D_ptds(const cudaMemcpy3DParms *p) {
  return with_context([&] { return wait_own(copy_3d(p, kStreamPerThread, true)); });
}
SX_API cudaMemcpy3DAsync(const cudaMemcpy3DParms *p, CUstream stream) {
  return with_context([&] { return copy_3d(p, stream, true); });
}
SX_API cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms *p, CUstream stream) {
  return cudaMemcpy3DAsync(p, per_thread(stream));
}

SX_API cudaMemset(void *p, int value, size_t size) {
  return with_context([&] { return fill(p, value, size); });
}
SX_API cudaMemset_ptds(void *p, int value, size_t size) {
  return with_context([&] { return wait_own(fill_later(p, value, size, kStreamPerThread)); });
}
SX_API cudaMemsetAsync(void *p, int value, size_t size, CUstream stream) {
  return with_context([&] { return fill_later(p, value, size, stream); });
}
SX_API cudaMemsetAsync_ptsz(void *p, int value, size_t size, CUstream stream) {
  return cudaMemsetAsync(p, value, size, per_thread(stream));
}
SX_API cudaMemset2D(void *p, size_t pitch, int value, size_t width, size_t height) {
  return with_context([&] { return fill_2d(p, pitch, value, width, height, nullptr, false); });
}
SX_API cudaMemset2D_ptds(void *p, size_t pitch, int value, size_t width, size_t height) {
  return with_context([&] { return wait_own(fill_2d(p, pitch, value, width, height, kStreamPerThread, true)); });
}
SX_API cudaMemset2DAsync(void *p, size_t pitch, int value, size_t width, size_t height, CUstream stream) {
  return with_context([&] { return fill_2d(p, pitch, value, width, height, stream, true); });
}
SX_API cudaMemset2DAsync_ptsz(void *p, size_t pitch, int value, size_t width, size_t height, CUstream stream) {
  return cudaMemset2DAsync(p, pitch, value, width, height, per_thread(stream));
}
SX_API cudaMemset3D(cudaPitchedPtr p, int value, cudaExtent extent) {
  return with_context([&] { return fill_3d(p, value, extent, nullptr, false); });
}
SX_API cudaMemset3D_ptds(cudaPitchedPtr p, int value, cudaExtent extent) {
  return with_context([&] { return wait_own(fill_3d(p, value, extent, kStreamPerThread, true)); });
}
SX_API cudaMemset3DAsync(cudaPitchedPtr p, int value, cudaExtent extent, CUstream stream) {
  return with_context([&] { return fill_3d(p, value, extent, stream, true); });
}
SX_API cudaMemset3DAsync_ptsz(cudaPitchedPtr p, int value, cudaExtent extent, CUstream stream) {
  return cudaMemset3DAsync(p, value, extent, per_thread(stream));
}
