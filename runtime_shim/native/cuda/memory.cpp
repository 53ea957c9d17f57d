// Memory: allocations, pinned and registered host memory, and what a pointer is.
#include "graph.h"
#include "pool.h"

#include <cstring>
#include <map>
#include <mutex>

using namespace sx;

namespace {

CUresult allocate(CUdeviceptr *out, size_t size) {
  if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
  void *pointer = nullptr;
  CUresult result = from_hip(hip().hipMalloc(&pointer, size));
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUdeviceptr>(pointer);
  return result;
}

CUresult allocate_async(CUdeviceptr *out, size_t size, MemoryPool *pool, CUstream stream) {
  CUresult captured;
  if (!out || !pool) return CUDA_ERROR_INVALID_VALUE;
  if (captured_allocate(out, size, stream, captured)) return captured;
  void *pointer = nullptr;
  CUresult result = hip().hipMallocAsync ? from_hip(hip().hipMallocAsync(&pointer, size, to_hip(stream)))
                                         : from_hip(hip().hipMalloc(&pointer, size));
  if (result != CUDA_SUCCESS) return result;
  *out = reinterpret_cast<CUdeviceptr>(pointer);
  pool_took(*pool, *out, size);
  return CUDA_SUCCESS;
}

CUresult allocate_host(void **out, size_t size, unsigned flags) {
  if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
  // Portable 1, mapped 2, write-combined 4: HIP's numbers are the same.
  return SX_HIP(hipHostMalloc, out, size, flags & 7);
}

struct PointerFacts {
  hipPointerAttribute_t hip = {};
  bool known = false;
  CUdeviceptr base = 0;
  size_t size = 0;
};

PointerFacts facts_of(CUdeviceptr pointer) {
  PointerFacts facts;
  if (hip().hipPointerGetAttributes &&
      hip().hipPointerGetAttributes(&facts.hip, to_pointer(pointer)) == hipSuccess)
    facts.known = facts.hip.type != hipMemoryTypeUnregistered;
  else
    hip().hipGetLastError();  // a question, not an error
  void *base = nullptr;
  if (facts.known && hip().hipMemGetAddressRange &&
      hip().hipMemGetAddressRange(&base, &facts.size, to_pointer(pointer)) == hipSuccess)
    facts.base = reinterpret_cast<CUdeviceptr>(base);
  return facts;
}

// CU_POINTER_ATTRIBUTE_*.
enum : int {
  kContext = 1, kMemoryType = 2, kDevicePointer = 3, kHostPointer = 4, kSyncMemops = 6, kBufferId = 7,
  kIsManaged = 8, kDeviceOrdinal = 9, kIsLegacyIpc = 10, kRangeStart = 11, kRangeSize = 12, kMapped = 13,
  kHandleTypes = 14, kGpuDirectRdma = 15, kAccessFlags = 16, kPool = 17, kMappingSize = 18, kMappingBase = 19,
  kBlockId = 20,
};

template <typename T>
CUresult put(void *out, T value) {
  memcpy(out, &value, sizeof value);  // NOLINT(bugprone-sizeof-expression): a pointer is what some attributes are
  return CUDA_SUCCESS;
}

CUresult pointer_attribute(void *out, int id, CUdeviceptr pointer, const PointerFacts &facts) {
  bool host = facts.hip.type == hipMemoryTypeHost;
  Device *device = find_device(facts.hip.device);
  if (!device) device = driver().devices[0].get();
  switch (id) {
    case kMapped: return put<int>(out, facts.known);
    case kPool: return put<CUmemoryPool>(out, pool_of(pointer));
    case kHandleTypes: return put<uint64_t>(out, 0);
    default: break;
  }
  if (!facts.known) return CUDA_ERROR_INVALID_VALUE;
  switch (id) {
    case kContext: return put(out, device->primary.handle());
    case kMemoryType: return put<unsigned>(out, host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case kDevicePointer:
      return put<CUdeviceptr>(out, facts.hip.devicePointer ? reinterpret_cast<CUdeviceptr>(facts.hip.devicePointer) : pointer);
    case kHostPointer:
      if (!host && !facts.hip.isManaged) return CUDA_ERROR_INVALID_VALUE;
      return put<void *>(out, facts.hip.hostPointer ? facts.hip.hostPointer : to_pointer(pointer));
    case kSyncMemops: return put<int>(out, 0);
    case kBufferId: case kBlockId: return put<uint64_t>(out, facts.base ? facts.base : pointer);
    case kIsManaged: return put<int>(out, facts.hip.isManaged != 0);
    case kDeviceOrdinal: return put<int>(out, device->ordinal);
    case kIsLegacyIpc: case kGpuDirectRdma: return put<int>(out, 0);
    case kRangeStart: case kMappingBase: return put<CUdeviceptr>(out, facts.base ? facts.base : pointer);
    case kRangeSize: case kMappingSize: return put<size_t>(out, facts.size);
    case kAccessFlags: return put<int>(out, 3);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

// What cuPointerGetAttributes stores for an attribute that does not apply: zeros, as wide as it is.
void put_nothing(void *out, int id) {
  switch (id) {
    case kMemoryType: case kSyncMemops: case kIsManaged: case kIsLegacyIpc: case kGpuDirectRdma: case kMapped:
    case kAccessFlags: put<int>(out, 0); break;
    case kDeviceOrdinal: put<int>(out, -2); break;  // as the driver says of pageable memory
    default: put<uint64_t>(out, 0); break;
  }
}

}  // namespace

SX_API cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
  return enter<Need::Context>(__func__, [&] { return allocate(out, size); });
}

SX_API cuMemFree_v2(CUdeviceptr pointer) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!pointer || free_graph_memory(pointer)) return CUDA_SUCCESS;
    pool_gave_back(pointer);  // before another thread can get the address
    return from_hip(hip().hipFree(to_pointer(pointer)));
  });
}

SX_API cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
    if (width > (SIZE_MAX >> 20) / height) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t row = (width + 511) / 512 * 512;  // an H200's (measured)
    CUresult result = allocate(out, row * height);
    if (result == CUDA_SUCCESS) *pitch = row;
    return result;
  });
}

SX_API cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!out || !size || !flags || flags > 3) return CUDA_ERROR_INVALID_VALUE;
    void *pointer = nullptr;
    CUresult result = SX_HIP(hipMallocManaged, &pointer, size, flags & 3);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUdeviceptr>(pointer);
    return result;
  });
}

SX_API cuMemGetInfo_v2(size_t *available, size_t *total) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    size_t some = 0, all = 0;
    CUresult result = from_hip(hip().hipMemGetInfo(&some, &all));
    if (available) *available = some;
    if (total) *total = all;
    return result;
  });
}

SX_API cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    void *start = nullptr;
    size_t bytes = 0;
    CUresult result = SX_HIP(hipMemGetAddressRange, &start, &bytes, to_pointer(pointer));
    if (result != CUDA_SUCCESS) return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_NOT_FOUND : result;
    if (base) *base = reinterpret_cast<CUdeviceptr>(start);
    if (size) *size = bytes;
    return CUDA_SUCCESS;
  });
}

SX_API cuMemHostAlloc(void **out, size_t size, unsigned flags) {
  return enter<Need::Context>(__func__, [&] { return allocate_host(out, size, flags); });
}

SX_API cuMemAllocHost_v2(void **out, size_t size) {
  return enter<Need::Context>(__func__, [&] { return allocate_host(out, size, 0); });
}

SX_API cuMemFreeHost(void *pointer) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    return pointer ? SX_HIP(hipHostFree, pointer) : CUDA_ERROR_INVALID_VALUE;
  });
}

// CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
constexpr CUresult kAlreadyRegistered = static_cast<CUresult>(712), kNotRegistered = static_cast<CUresult>(713);

// What is registered, where HIP is AMD's: it registers the same memory twice, which CUDA refuses.
struct RegisteredRanges {
  std::mutex mutex;
  std::map<uintptr_t, size_t> sizes;  // by address

  bool overlap(uintptr_t begin, size_t size) const {
    auto next = sizes.lower_bound(begin + size);
    return next != sizes.begin() && std::prev(next)->first + std::prev(next)->second > begin;
  }
};

static RegisteredRanges &registered_ranges() {
  static RegisteredRanges *const one = new RegisteredRanges;
  return *one;
}

void sx::forget_registered() {
  RegisteredRanges &ranges = registered_ranges();
  std::lock_guard<std::mutex> guard(ranges.mutex);
  ranges.sizes.clear();
}

static CUresult register_once(void *pointer, size_t size, unsigned flags) {
  if (hip().emulated) return SX_HIP(hipHostRegister, pointer, size, flags);
  RegisteredRanges &ranges = registered_ranges();
  std::lock_guard<std::mutex> guard(ranges.mutex);
  auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (ranges.overlap(begin, size)) return kAlreadyRegistered;
  CUresult result = SX_HIP(hipHostRegister, pointer, size, flags);
  if (result == CUDA_SUCCESS) ranges.sizes[begin] = size;
  return result;
}

static CUresult unregister(void *pointer) {
  if (hip().emulated) return SX_HIP(hipHostUnregister, pointer);
  RegisteredRanges &ranges = registered_ranges();
  std::lock_guard<std::mutex> guard(ranges.mutex);
  if (!ranges.sizes.erase(reinterpret_cast<uintptr_t>(pointer))) return kNotRegistered;
  return SX_HIP(hipHostUnregister, pointer);
}

static CUresult host_register(const char *name, void *pointer, size_t size, unsigned flags) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    if (!pointer || !size || flags & ~(CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED | CU_REGISTER_READ_ONLY))
      return CUDA_ERROR_INVALID_VALUE;  // ordinary memory that is registered as a device's (flag 4) is that, too
    // Memory that cannot be written may be registered for reading.  AMD's library is not called for that: its behaviour
    // is unknown.
    unsigned known = hip().emulated ? CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED | CU_REGISTER_READ_ONLY
                                    : CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED;
    return register_once(pointer, size, flags & known);
  });
}

SX_API cuMemHostRegister(void *pointer, size_t size, unsigned flags) {
  return host_register(__func__, pointer, size, flags);
}
SX_API cuMemHostRegister_v2(void *pointer, size_t size, unsigned flags) {
  return host_register(__func__, pointer, size, flags);
}

SX_API cuMemHostUnregister(void *pointer) {
  return enter<Need::Context>(__func__, [&] { return unregister(pointer); });
}

SX_API cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *host, unsigned flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
    if (facts_of(reinterpret_cast<CUdeviceptr>(host)).hip.isManaged) return CUDA_ERROR_INVALID_VALUE;
    void *pointer = nullptr;
    CUresult result = SX_HIP(hipHostGetDevicePointer, &pointer, host, 0);
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUdeviceptr>(pointer);
    return result;
  });
}

SX_API cuMemHostGetFlags(unsigned *flags, void *pointer) {
  return enter<Need::Context>(__func__, [&] { return SX_HIP(hipHostGetFlags, flags, pointer); });
}

SX_API cuPointerGetAttribute(void *value, int id, CUdeviceptr pointer) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    return value ? pointer_attribute(value, id, pointer, facts_of(pointer)) : CUDA_ERROR_INVALID_VALUE;
  });
}

SX_API cuPointerGetAttributes(unsigned count, int *ids, void **values, CUdeviceptr pointer) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!count || !ids || !values) return CUDA_ERROR_INVALID_VALUE;
    PointerFacts facts = facts_of(pointer);
    for (unsigned i = 0; i < count; ++i)
      if (pointer_attribute(values[i], ids[i], pointer, facts) != CUDA_SUCCESS) put_nothing(values[i], ids[i]);
    return CUDA_SUCCESS;
  });
}

SX_API cuPointerSetAttribute(const void *value, int id, CUdeviceptr) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    return value && id == kSyncMemops ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

// Memory is not moved: prefetching has no effect that a program can observe.
static CUresult prefetch(const char *name, CUdeviceptr pointer, size_t size) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    return pointer && size && facts_of(pointer).known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

SX_API cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice, CUstream) {
  return prefetch(__func__, pointer, size);
}
SX_API cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation, unsigned, CUstream) {
  return prefetch(__func__, pointer, size);
}
SX_API cuMemAdvise(CUdeviceptr pointer, size_t size, int, CUdevice) { return prefetch(__func__, pointer, size); }
SX_API cuMemAdvise_v2(CUdeviceptr pointer, size_t size, int, CUmemLocation) {
  return prefetch(__func__, pointer, size);
}

SX_API cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
  return enter<Need::Context>(__func__, [&] { return allocate_async(out, size, current_device().pool, stream); });
}

SX_API cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream) {
  return enter<Need::Context>(__func__, [&] { return allocate_async(out, size, find_pool(pool), stream); });
}

SX_API cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    CUresult captured;
    if (!pointer) return CUDA_SUCCESS;
    if (captured_free(pointer, stream, captured)) return captured;
    if (free_graph_memory(pointer)) return CUDA_SUCCESS;
    pool_gave_back(pointer);
    if (hip().hipFreeAsync) return from_hip(hip().hipFreeAsync(to_pointer(pointer), to_hip(stream)));
    return from_hip(hip().hipFree(to_pointer(pointer)));
  });
}

SX_API cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t size, CUstream stream) {
  return cuMemAllocAsync(out, size, stream ? stream : CU_STREAM_PER_THREAD);
}
SX_API cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t size, CUmemoryPool pool, CUstream stream) {
  return cuMemAllocFromPoolAsync(out, size, pool, stream ? stream : CU_STREAM_PER_THREAD);
}
SX_API cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return cuMemFreeAsync(pointer, stream ? stream : CU_STREAM_PER_THREAD);
}
SX_API cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync(pointer, size, device, stream);
}
SX_API cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t size, CUmemLocation location, unsigned flags,
                                  CUstream stream) {
  return cuMemPrefetchAsync_v2(pointer, size, location, flags, stream);
}
