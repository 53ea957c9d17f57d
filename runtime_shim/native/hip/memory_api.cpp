// Exported functions of allocation and registration.
#include "memory.h"
#include "state.h"
#include "stream.h"

namespace sx {
namespace {

constexpr unsigned bit(MemoryKind kind) { return 1u << static_cast<unsigned>(kind); }
constexpr unsigned kFreeable = bit(MemoryKind::Device) | bit(MemoryKind::Managed);
constexpr size_t kPitch = 512;

uint64_t number(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

int allocate(void **pointer, size_t size, MemoryKind kind, unsigned flags) {
  if (!pointer) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (size == 0) return 0;
  uint64_t address;
  if (int error = memory_allocate(size, kind, flags, address)) return error;
  *pointer = reinterpret_cast<void *>(address);
  return 0;
}

int release(void *pointer, unsigned kinds) {
  if (!pointer) return 0;
  Allocation found;
  if (!memory_find(number(pointer), found) || found.base != number(pointer) ||
      !(kinds >> static_cast<unsigned>(found.kind) & 1))
    return hipErrorInvalidValue;
  wait_all_streams();  // work in flight may still use it
  return memory_release(number(pointer), kinds) ? 0 : hipErrorInvalidValue;
}

int free_in_order(void *pointer, hipStream_t handle) {
  StreamRef stream;
  if (int error = find_stream(handle, stream)) return error;
  if (!memory_end_later(number(pointer), kFreeable)) return hipErrorInvalidValue;
  enqueue(stream, [pointer] { memory_release(number(pointer), kFreeable); });
  return 0;
}

// Host memory that the device can access: pinned, managed or registered.
bool find_host(const void *pointer, Allocation &found) {
  if (memory_find(number(pointer), found))
    return found.kind == MemoryKind::Host || found.kind == MemoryKind::Managed;
  return memory_find_registered(number(pointer), found);
}

int attributes_of(hipPointerAttribute_t *out, const void *pointer) {
  if (!out || !pointer) return hipErrorInvalidValue;
  *out = {};
  Allocation found;
  void *address = const_cast<void *>(pointer);
  if (memory_find(number(pointer), found) && found.kind != MemoryKind::Internal) {
    bool host = found.kind == MemoryKind::Host, managed = found.kind == MemoryKind::Managed;
    out->type = host ? hipMemoryTypeHost : managed ? hipMemoryTypeManaged : hipMemoryTypeDevice;
    out->devicePointer = address;
    out->hostPointer = host || managed ? address : nullptr;
    out->isManaged = managed;
    out->allocationFlags = found.flags;
  } else if (memory_find_registered(number(pointer), found)) {
    out->type = hipMemoryTypeHost;
    out->devicePointer = out->hostPointer = address;
    out->allocationFlags = found.flags;
  } else {
    out->type = hipMemoryTypeUnregistered;
    out->device = -1;
  }
  return 0;
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipMalloc(void **pointer, size_t size) {
  return call([&] { return allocate(pointer, size, MemoryKind::Device, 0); });
}

SX_API hipError_t hipMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  return call([&]() -> int {
    if (!pitch || width > SIZE_MAX - kPitch) return hipErrorInvalidValue;
    size_t row = (width + kPitch - 1) / kPitch * kPitch;
    if (row && height > SIZE_MAX / row) return hipErrorOutOfMemory;
    *pitch = row;
    return allocate(pointer, row * height, MemoryKind::Device, 0);
  });
}

SX_API hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags) {
  return call([&]() -> int {
    if (size == 0) return hipErrorInvalidValue;  // unlike the others, as cudaMallocManaged
    return allocate(pointer, size, MemoryKind::Managed, flags);
  });
}

SX_API hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t handle) {
  return call([&] {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    return allocate(pointer, size, MemoryKind::Device, 0);
  });
}

SX_API hipError_t hipFree(void *pointer) {
  return call([&] { return release(pointer, kFreeable); });
}

SX_API hipError_t hipFreeAsync(void *pointer, hipStream_t stream) {
  return call([&] { return free_in_order(pointer, stream); });
}

SX_API hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  return call([&] { return allocate(pointer, size, MemoryKind::Host, flags); });
}

SX_API hipError_t hipHostFree(void *pointer) {
  return call([&] { return release(pointer, bit(MemoryKind::Host)); });
}

SX_API hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags) {
  return call([&] { return memory_register(number(pointer), size, flags); });
}

SX_API hipError_t hipHostUnregister(void *pointer) {
  return call([&]() -> int {
    Allocation found;
    if (!pointer) return hipErrorInvalidValue;
    if (memory_find(number(pointer), found)) return hipErrorInvalidValue;  // as on an H200: pinned by its allocation
    if (!memory_find_registered(number(pointer), found)) return hipErrorHostMemoryNotRegistered;
    if (found.base != number(pointer)) return hipErrorInvalidValue;  // the same: inside of what is registered
    wait_all_streams();
    return memory_unregister(number(pointer));
  });
}

SX_API hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
  return call([&]() -> int {
    Allocation found;
    if (!device || flags || !find_host(host, found)) return hipErrorInvalidValue;
    *device = host;  // one address space
    return 0;
  });
}

SX_API hipError_t hipHostGetFlags(unsigned *flags, void *host) {
  return call([&]() -> int {
    Allocation found;
    if (!flags || !find_host(host, found)) return hipErrorInvalidValue;
    *flags = found.flags;
    return 0;
  });
}

SX_API hipError_t hipMemGetInfo(size_t *free, size_t *total) {
  return call([&]() -> int {
    if (!free && !total) return hipErrorInvalidValue;
    if (free) *free = memory_free_bytes();
    if (total) *total = config().device_memory;
    return 0;
  });
}

SX_API hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t pointer) {
  return call([&]() -> int {
    Allocation found;
    bool known = memory_find(number(pointer), found) && found.kind != MemoryKind::Internal;
    if (!known && !memory_find_registered(number(pointer), found)) return hipErrorNotFound;
    if (base) *base = reinterpret_cast<void *>(found.base);
    if (size) *size = found.size;
    return 0;
  });
}

// For work of ours in a stream's order (runtime_shim/native/replace), which calls nothing of HIP: whether an allocation
// holds all of [address, address + size), and a fault that every later call answers, as after a kernel's.
extern "C" __attribute__((visibility("default"))) int sassxlate_emulated_reaches(const void *address, size_t size, int write) {
  const Place place = memory_place(address, size);
  if (write && place != Place::Arena && place != Place::Registered) return 0;
  Allocation found;
  const bool known = memory_find(number(address), found) && found.kind != MemoryKind::Internal;
  if (!known && !memory_find_registered(number(address), found)) return 0;
  const uint64_t at = number(address) - found.base;
  return at <= found.size && size <= found.size - at;
}
extern "C" __attribute__((visibility("default"))) void sassxlate_emulated_fault(void) { set_sticky_error(hipErrorIllegalAddress); }

SX_API hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
  return call([&] { return attributes_of(attributes, pointer); });
}
