// Copies and fills.  Addresses decide what is device memory; the kind is only a hint, as with CUDA.
#include "memory.h"
#include "reach.h"
#include "state.h"
#include "stream.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace sx {
namespace {

// Up to this size an asynchronous copy from pageable memory is staged and returns at once.
constexpr size_t kStaging = 1u << 20;

// `height` rows of `width` bytes; a plain copy has one row.
struct Box {
  char *dst;
  const char *src;
  size_t dst_pitch, src_pitch, width, height;
};

// The size from the first byte to the end of the last row; false on overflow.
bool extent(size_t pitch, size_t width, size_t height, size_t &out) {
  return !__builtin_mul_overflow(pitch, height - 1, &out) && !__builtin_add_overflow(out, width, &out);
}

void copy_box(const Box &b) {
  size_t dst_size, src_size;
  if (!extent(b.dst_pitch, b.width, b.height, dst_size) || !extent(b.src_pitch, b.width, b.height, src_size)) return;
  if (!reach(b.dst, dst_size, true) || !reach(b.src, src_size, false)) return;
  if (b.height == 1 || (b.dst_pitch == b.width && b.src_pitch == b.width)) {
    memmove(b.dst, b.src, b.width * b.height);
    return;
  }
  for (size_t row = 0; row < b.height; ++row)
    memmove(b.dst + row * b.dst_pitch, b.src + row * b.src_pitch, b.width);
}

bool on_device(Place place) {
  return place != Place::Pageable && place != Place::Invalid;
}

// Memory of the device, or managed; not the host's own, which the processor copies.
bool of_device(const void *pointer) {
  Allocation found;
  return memory_find(reinterpret_cast<uintptr_t>(pointer), found) && found.kind != MemoryKind::Host;
}

// Whether the sides agree with the kind: host memory unknown to the device is not device memory.
bool kind_fits(int kind, Place dst, Place src) {
  bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  return (!to_device || on_device(dst)) && (!from_device || on_device(src));
}

int copy(const Box &box, int kind, hipStream_t handle, bool async) {
  StreamRef stream;
  if (int error = find_stream(handle, stream)) return error;
  if ((kind < 0 || kind > hipMemcpyDefault) && kind != 1024) return hipErrorInvalidValue;
  if (box.width == 0 || box.height == 0) return 0;
  if (!box.dst || !box.src) return hipErrorInvalidValue;
  if (box.height > 1 && (box.dst_pitch < box.width || box.src_pitch < box.width)) return hipErrorInvalidValue;
  size_t dst_size, src_size;
  if (!extent(box.dst_pitch, box.width, box.height, dst_size) ||
      !extent(box.src_pitch, box.width, box.height, src_size))
    return hipErrorInvalidValue;
  Place dst = memory_place(box.dst, dst_size), src = memory_place(box.src, src_size);
  if (dst == Place::Invalid || src == Place::Invalid || !kind_fits(kind, dst, src)) return hipErrorInvalidValue;
  // Measured on an H200: the device copies nothing into what it was given to read.
  if (dst == Place::Guarded) return hipErrorInvalidValue;
  if (dst == Place::ReadOnly && of_device(box.src)) return hipErrorInvalidValue;

  if (async && on_device(dst) && on_device(src)) {
    enqueue(stream, [box] {
      if (!sticky_error()) copy_box(box);
    });
    return 0;
  }
  if (async && on_device(dst) && box.width * box.height <= kStaging && !stream_idle(stream)) {
    auto staged = std::make_shared<std::vector<char>>(box.width * box.height);
    copy_box({staged->data(), box.src, box.width, box.src_pitch, box.width, box.height});
    enqueue(stream, [box, staged] {
      if (!sticky_error()) copy_box({box.dst, staged->data(), box.dst_pitch, box.width, box.width, box.height});
    });
    return 0;
  }
  // Pageable memory: the caller may change or free it as soon as we return.
  run_in_order(stream, [&box] {
    if (!sticky_error()) copy_box(box);
  });
  return sticky_error();
}

int copy(void *dst, const void *src, size_t size, int kind, hipStream_t stream, bool async) {
  return copy({static_cast<char *>(dst), static_cast<const char *>(src), size, size, size, 1}, kind, stream, async);
}

int copy_2d(const hip_Memcpy2D *c, hipStream_t stream, bool async) {
  if (!c || c->srcArray || c->dstArray) return hipErrorInvalidValue;
  bool src_host = c->srcMemoryType == hipMemoryTypeHost, dst_host = c->dstMemoryType == hipMemoryTypeHost;
  const char *src = static_cast<const char *>(src_host ? c->srcHost : c->srcDevice);
  char *dst = static_cast<char *>(dst_host ? c->dstHost : c->dstDevice);
  size_t src_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes;
  size_t dst_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes;
  Box box = {dst + c->dstY * dst_pitch + c->dstXInBytes, src + c->srcY * src_pitch + c->srcXInBytes,
             dst_pitch, src_pitch, c->WidthInBytes, c->Height};
  return copy(box, hipMemcpyDefault, stream, async);
}

// Fills `height` rows of `width` elements of 1, 2 or 4 bytes.
struct Fill {
  char *dst;
  size_t pitch;
  uint32_t value;
  unsigned element;
  size_t width, height;
};

void fill_rows(const Fill &f) {
  size_t size;
  if (!extent(f.pitch, f.width * f.element, f.height, size) || !reach(f.dst, size, true)) return;
  for (size_t row = 0; row < f.height; ++row) {
    char *at = f.dst + row * f.pitch;
    if (f.element == 1) memset(at, static_cast<int>(f.value), f.width);
    else if (f.element == 2) std::fill_n(reinterpret_cast<uint16_t *>(at), f.width, static_cast<uint16_t>(f.value));
    else std::fill_n(reinterpret_cast<uint32_t *>(at), f.width, f.value);
  }
}

int fill(const Fill &f, hipStream_t handle, bool async) {
  StreamRef stream;
  if (int error = find_stream(handle, stream)) return error;
  if (f.width == 0 || f.height == 0) return 0;
  size_t bytes, size;
  if (__builtin_mul_overflow(f.width, size_t{f.element}, &bytes) || (f.height > 1 && f.pitch < bytes) ||
      !extent(f.pitch, bytes, f.height, size) || reinterpret_cast<uintptr_t>(f.dst) % f.element)
    return hipErrorInvalidValue;
  Place place = memory_place(f.dst, size);
  if (!on_device(place) || place == Place::ReadOnly || place == Place::Guarded) return hipErrorInvalidValue;
  auto run = [f] {
    if (!sticky_error()) fill_rows(f);
  };
  if (async) {
    enqueue(stream, run);
    return 0;
  }
  run_in_order(stream, run);
  return sticky_error();
}

int fill(void *dst, uint32_t value, unsigned element, size_t count, hipStream_t stream, bool async) {
  return fill({static_cast<char *>(dst), 0, value, element, count, 1}, stream, async);
}

int fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height, hipStream_t stream, bool async) {
  return fill({static_cast<char *>(dst), pitch, static_cast<uint32_t>(value), 1, width, height}, stream, async);
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipMemcpy(void *dst, const void *src, size_t size, hipMemcpyKind kind) {
  return call([&] { return copy(dst, src, size, kind, nullptr, false); });
}
SX_API hipError_t hipMemcpyAsync(void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t s) {
  return call([&] { return copy(dst, src, size, kind, s, true); });
}
SX_API hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t s) {
  return call([&] { return copy(dst, src, size, kind, s, false); });
}
SX_API hipError_t hipMemcpyHtoD(hipDeviceptr_t dst, const void *src, size_t size) {
  return call([&] { return copy(dst, src, size, hipMemcpyHostToDevice, nullptr, false); });
}
SX_API hipError_t hipMemcpyDtoH(void *dst, hipDeviceptr_t src, size_t size) {
  return call([&] { return copy(dst, src, size, hipMemcpyDeviceToHost, nullptr, false); });
}
SX_API hipError_t hipMemcpyDtoD(hipDeviceptr_t dst, hipDeviceptr_t src, size_t size) {
  return call([&] { return copy(dst, src, size, hipMemcpyDeviceToDevice, nullptr, false); });
}
SX_API hipError_t hipMemcpyHtoDAsync(hipDeviceptr_t dst, const void *src, size_t size, hipStream_t s) {
  return call([&] { return copy(dst, src, size, hipMemcpyHostToDevice, s, true); });
}
SX_API hipError_t hipMemcpyDtoHAsync(void *dst, hipDeviceptr_t src, size_t size, hipStream_t s) {
  return call([&] { return copy(dst, src, size, hipMemcpyDeviceToHost, s, true); });
}
SX_API hipError_t hipMemcpyDtoDAsync(hipDeviceptr_t dst, hipDeviceptr_t src, size_t size, hipStream_t s) {
  return call([&] { return copy(dst, src, size, hipMemcpyDeviceToDevice, s, true); });
}
SX_API hipError_t hipMemcpy2D(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                              size_t height, hipMemcpyKind kind) {
  return call([&] {
    return copy({static_cast<char *>(dst), static_cast<const char *>(src), dpitch, spitch, width, height}, kind,
                nullptr, false);
  });
}
SX_API hipError_t hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width,
                                   size_t height, hipMemcpyKind kind, hipStream_t s) {
  return call([&] {
    return copy({static_cast<char *>(dst), static_cast<const char *>(src), dpitch, spitch, width, height}, kind,
                s, true);
  });
}
SX_API hipError_t hipMemcpyParam2D(const hip_Memcpy2D *c) {
  return call([&] { return copy_2d(c, nullptr, false); });
}
SX_API hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D *c, hipStream_t s) {
  return call([&] { return copy_2d(c, s, true); });
}

SX_API hipError_t hipMemset(void *dst, int value, size_t size) {
  return call([&] { return fill(dst, static_cast<uint32_t>(value), 1, size, nullptr, false); });
}
SX_API hipError_t hipMemsetAsync(void *dst, int value, size_t size, hipStream_t s) {
  return call([&] { return fill(dst, static_cast<uint32_t>(value), 1, size, s, true); });
}
SX_API hipError_t hipMemsetD8(hipDeviceptr_t dst, unsigned char value, size_t count) {
  return call([&] { return fill(dst, value, 1, count, nullptr, false); });
}
SX_API hipError_t hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count, hipStream_t s) {
  return call([&] { return fill(dst, value, 1, count, s, true); });
}
SX_API hipError_t hipMemsetD16(hipDeviceptr_t dst, unsigned short value, size_t count) {
  return call([&] { return fill(dst, value, 2, count, nullptr, false); });
}
SX_API hipError_t hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count, hipStream_t s) {
  return call([&] { return fill(dst, value, 2, count, s, true); });
}
SX_API hipError_t hipMemsetD32(hipDeviceptr_t dst, int value, size_t count) {
  return call([&] { return fill(dst, static_cast<uint32_t>(value), 4, count, nullptr, false); });
}
SX_API hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t s) {
  return call([&] { return fill(dst, static_cast<uint32_t>(value), 4, count, s, true); });
}
SX_API hipError_t hipMemset2D(void *dst, size_t pitch, int value, size_t width, size_t height) {
  return call([&] { return fill_2d(dst, pitch, value, width, height, nullptr, false); });
}
SX_API hipError_t hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height,
                                   hipStream_t s) {
  return call([&] { return fill_2d(dst, pitch, value, width, height, s, true); });
}

// One address space with one kind of memory: there is nothing to move, only to check.
SX_API hipError_t hipMemPrefetchAsync(const void *pointer, size_t size, int device, hipStream_t handle) {
  return call([&]() -> int {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    if (device != 0 && device != -1) return hipErrorInvalidDevice;
    Allocation found;
    return memory_find(reinterpret_cast<uint64_t>(pointer), found) && found.kind == MemoryKind::Managed &&
                   found.holds(reinterpret_cast<uint64_t>(pointer), size)
               ? 0
               : hipErrorInvalidValue;
  });
}
SX_API hipError_t hipMemAdvise(const void *pointer, size_t size, int, int) {
  return call([&]() -> int {
    Allocation found;
    return memory_find(reinterpret_cast<uint64_t>(pointer), found) && found.kind == MemoryKind::Managed &&
                   found.holds(reinterpret_cast<uint64_t>(pointer), size)
               ? 0
               : hipErrorInvalidValue;
  });
}
