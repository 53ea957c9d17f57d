// Memory: allocations, pinned and registered host memory.
#include "graph.h"
#include "pointer.h"
#include "pool.h"

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
  if (!out || !size || flags & ~7u) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult unsafe = unsafe_in_capture()) return unsafe;
  // Portable 1, mapped 2, write-combined 4: HIP's numbers are the same.
  return SX_HIP(hipHostMalloc, out, size, flags);
}

}  // namespace

SX_API cuMemAlloc_v2(CUdeviceptr *out, size_t size) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
    return allocate(out, size);
  });
}

SX_API cuMemFree_v2(CUdeviceptr pointer) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
    if (!pointer || free_graph_memory(pointer)) return CUDA_SUCCESS;
    if (is_module_memory(pointer)) return CUDA_ERROR_INVALID_VALUE;
    pool_gave_back(pointer);  // before another thread can get the address
    return from_hip(hip().hipFree(to_pointer(pointer)));
  });
}

SX_API cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
    if (width > (SIZE_MAX >> 20) / height) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t row = (width + 511) / 512 * 512;  // an H200's (measured)
    CUresult result = allocate(out, row * height);
    if (result == CUDA_SUCCESS) *pitch = row;
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
  auto begin = reinterpret_cast<uintptr_t>(pointer);
  if (!ranges.sizes.erase(begin)) return ranges.overlap(begin, 1) ? CUDA_ERROR_INVALID_VALUE : kNotRegistered;
  return SX_HIP(hipHostUnregister, pointer);
}

static CUresult host_register(const char *name, void *pointer, size_t size, unsigned flags) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    if (!pointer || !size || flags & ~(CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED | CU_REGISTER_READ_ONLY))
      return CUDA_ERROR_INVALID_VALUE;  // ordinary memory that is registered as a device's (flag 4) is that, too
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
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
    if (is_module_memory(pointer)) return CUDA_ERROR_INVALID_VALUE;
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
