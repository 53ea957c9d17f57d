// Allocation, host memory, pools and what a pointer is.
#include <cstring>

#include "registry.h"
#include "state.h"

using namespace sx;

namespace {

constexpr unsigned kHostAllocMapped = 2;  // with one address space all host memory is, and the runtime says so
constexpr int kInvalidDeviceId = -2;  // device of a pointer that CUDA does not know

CUdeviceptr device_pointer(const void *p) { return reinterpret_cast<CUdeviceptr>(p); }

// `address` by reference: the call that writes it is an argument too, and the order of arguments is open.
int store(void **out, int error, const CUdeviceptr &address) {
  if (!error) *out = reinterpret_cast<void *>(address);
  return error;
}

int allocate(void **out, size_t size) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    *out = nullptr;
    if (size == 0) return static_cast<int>(kSuccess);
    CUdeviceptr address = 0;
    return store(out, driver().cuMemAlloc_v2(&address, size), address);
  });
}

int allocate_pitched(void **out, size_t *pitch, size_t width, size_t height, size_t depth) {
  return with_context([&] {
    if (!out || !pitch) return static_cast<int>(kInvalidValue);
    *out = nullptr;
    *pitch = 0;
    if (width == 0 || height == 0 || depth == 0) return static_cast<int>(kSuccess);
    size_t rows = 0;
    if (__builtin_mul_overflow(height, depth, &rows)) return static_cast<int>(kMemoryAllocation);
    CUdeviceptr address = 0;
    // The driver wants to know what a thread reads at most: 4, 8 or 16 bytes; it does not change the pitch.
    return store(out, driver().cuMemAllocPitch_v2(&address, pitch, width, rows, 4), address);
  });
}

int allocate_async(void **out, size_t size, CUstream stream) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    *out = nullptr;
    if (size == 0) return static_cast<int>(kSuccess);
    CUdeviceptr address = 0;
    return store(out, driver().cuMemAllocAsync(&address, size, stream), address);
  });
}

int allocate_from_pool(void **out, size_t size, CUmemoryPool pool, CUstream stream) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    *out = nullptr;
    if (size == 0) return static_cast<int>(kSuccess);
    CUdeviceptr address = 0;
    return store(out, driver().cuMemAllocFromPoolAsync(&address, size, pool, stream), address);
  });
}

int free_async(void *p, CUstream stream) {
  return with_context([&] { return p ? driver().cuMemFreeAsync(device_pointer(p), stream) : static_cast<int>(kSuccess); });
}

int allocate_host(void **out, size_t size, unsigned flags) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    *out = nullptr;
    if (size == 0) return static_cast<int>(kSuccess);
    return driver().cuMemHostAlloc(out, size, flags);
  });
}

int describe(cudaPointerAttributes *out, const void *p) {
  const Driver &d = driver();
  memset(out, 0, sizeof *out);
  unsigned kind = 0;
  if (int error = d.cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device_pointer(p))) {
    if (error != kInvalidValue) return error;
    out->type = 0;
    out->device = kInvalidDeviceId;
    out->hostPointer = const_cast<void *>(p);
    return kSuccess;
  }
  int managed = 0, ordinal = 0;
  CUdeviceptr device = 0;
  void *host = nullptr;
  // Each may be unknown for this kind of memory; the field stays zero then.
  d.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, device_pointer(p));
  d.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device_pointer(p));
  if (d.cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, device_pointer(p))) device = 0;
  if (d.cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, device_pointer(p))) host = nullptr;
  out->type = (managed & 0xff) ? 3 : kind == CU_MEMORYTYPE_HOST ? 1 : 2;
  out->device = ordinal;
  out->devicePointer = reinterpret_cast<void *>(device);
  out->hostPointer = out->type == 2 ? nullptr : host;
  return kSuccess;
}

int prefetch(const void *p, size_t size, cudaMemLocation where, unsigned flags, CUstream stream) {
  return with_context([&] {
    return driver().cuMemPrefetchAsync_v2(device_pointer(p), size, CUmemLocation{where.type, where.id}, flags, stream);
  });
}

int advise(const void *p, size_t size, int advice, cudaMemLocation where) {
  return with_context([&] {
    return driver().cuMemAdvise_v2(device_pointer(p), size, advice, CUmemLocation{where.type, where.id});
  });
}

}  // namespace

SX_API cudaMalloc(void **out, size_t size) { return allocate(out, size); }

SX_API cudaFree(void *p) {
  return with_context([&] {
    if (int error = driver().cuMemFree_v2(device_pointer(p)); p || error) return error;
    // Frees nothing, but reports a failed context; programs call it for initialisation.
    size_t available = 0, total = 0;
    return driver().cuMemGetInfo_v2(&available, &total);
  });
}

SX_API cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height) {
  return allocate_pitched(out, pitch, width, height, 1);
}

SX_API cudaMalloc3D(cudaPitchedPtr *out, cudaExtent extent) {
  if (!out) return record(kInvalidValue);
  out->xsize = extent.width;
  out->ysize = extent.height;
  return allocate_pitched(&out->ptr, &out->pitch, extent.width, extent.height, extent.depth);
}

SX_API cudaMallocManaged(void **out, size_t size, unsigned flags) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    *out = nullptr;
    if (size == 0) return static_cast<int>(kSuccess);
    CUdeviceptr address = 0;
    return store(out, driver().cuMemAllocManaged(&address, size, flags), address);
  });
}

SX_API cudaMallocAsync(void **out, size_t size, CUstream stream) { return allocate_async(out, size, stream); }
SX_API cudaMallocAsync_ptsz(void **out, size_t size, CUstream stream) {
  return allocate_async(out, size, per_thread(stream));
}
SX_API cudaMallocFromPoolAsync(void **out, size_t size, CUmemoryPool pool, CUstream stream) {
  return allocate_from_pool(out, size, pool, stream);
}
SX_API cudaMallocFromPoolAsync_ptsz(void **out, size_t size, CUmemoryPool pool, CUstream stream) {
  return allocate_from_pool(out, size, pool, per_thread(stream));
}
SX_API cudaFreeAsync(void *p, CUstream stream) { return free_async(p, stream); }
SX_API cudaFreeAsync_ptsz(void *p, CUstream stream) { return free_async(p, per_thread(stream)); }

SX_API cudaMallocHost(void **out, size_t size) { return allocate_host(out, size, 0); }
SX_API cudaHostAlloc(void **out, size_t size, unsigned flags) { return allocate_host(out, size, flags); }

SX_API cudaFreeHost(void *p) {
  return with_context([&] { return p ? driver().cuMemFreeHost(p) : static_cast<int>(kSuccess); });
}

SX_API cudaHostRegister(void *p, size_t size, unsigned flags) {
  return with_context([&] { return driver().cuMemHostRegister_v2(p, size, flags); });
}

SX_API cudaHostUnregister(void *p) {
  return with_context([&] { return driver().cuMemHostUnregister(p); });
}

SX_API cudaHostGetDevicePointer(void **out, void *host, unsigned flags) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    CUdeviceptr address = 0;
    return store(out, driver().cuMemHostGetDevicePointer_v2(&address, host, flags), address);
  });
}

SX_API cudaHostGetFlags(unsigned *flags, void *host) {
  return with_context([&] {
    int error = driver().cuMemHostGetFlags(flags, host);
    if (!error) *flags |= kHostAllocMapped;
    return error;
  });
}

SX_API cudaMemGetInfo(size_t *free_bytes, size_t *total) {
  return with_context([&] { return driver().cuMemGetInfo_v2(free_bytes, total); });
}

SX_API cudaPointerGetAttributes(cudaPointerAttributes *out, const void *p) {
  return with_context([&] { return out ? describe(out, p) : static_cast<int>(kInvalidValue); });
}

#if SX_CUDART_MAJOR >= 13
SX_API cudaMemPrefetchAsync(const void *p, size_t size, cudaMemLocation where, unsigned flags, CUstream stream) {
  return prefetch(p, size, where, flags, stream);
}
SX_API cudaMemPrefetchAsync_ptsz(const void *p, size_t size, cudaMemLocation where, unsigned flags, CUstream stream) {
  return prefetch(p, size, where, flags, per_thread(stream));
}
SX_API cudaMemAdvise(const void *p, size_t size, int advice, cudaMemLocation where) {
  return advise(p, size, advice, where);
}
#else
// Before 13 the place is a device's number, or -1 for the host.
static cudaMemLocation place(int device) { return device < 0 ? cudaMemLocation{2, 0} : cudaMemLocation{1, device}; }

SX_API cudaMemPrefetchAsync(const void *p, size_t size, int device, CUstream stream) {
  return prefetch(p, size, place(device), 0, stream);
}
SX_API cudaMemPrefetchAsync_ptsz(const void *p, size_t size, int device, CUstream stream) {
  return prefetch(p, size, place(device), 0, per_thread(stream));
}
SX_API cudaMemPrefetchAsync_v2(const void *p, size_t size, cudaMemLocation where, unsigned flags, CUstream stream) {
  return prefetch(p, size, where, flags, stream);
}
SX_API cudaMemPrefetchAsync_v2_ptsz(const void *p, size_t size, cudaMemLocation where, unsigned flags,
                                    CUstream stream) {
  return prefetch(p, size, where, flags, per_thread(stream));
}
SX_API cudaMemAdvise(const void *p, size_t size, int advice, int device) {
  return advise(p, size, advice, place(device));
}
SX_API cudaMemAdvise_v2(const void *p, size_t size, int advice, cudaMemLocation where) {
  return advise(p, size, advice, where);
}
#endif

SX_API cudaMemRangeGetAttribute(void *data, size_t data_size, int attribute, const void *p, size_t size) {
  return with_context(
      [&] { return driver().cuMemRangeGetAttribute(data, data_size, attribute, device_pointer(p), size); });
}

SX_API cudaMemRangeGetAttributes(void **data, size_t *sizes, int *attributes, size_t count, const void *p, size_t size) {
  return with_context(
      [&] { return driver().cuMemRangeGetAttributes(data, sizes, attributes, count, device_pointer(p), size); });
}

SX_API cudaDeviceGetDefaultMemPool(CUmemoryPool *pool, int device) {
  return with_driver([&] { return driver().cuDeviceGetDefaultMemPool(pool, device); });
}
SX_API cudaDeviceGetMemPool(CUmemoryPool *pool, int device) {
  return with_driver([&] { return driver().cuDeviceGetMemPool(pool, device); });
}
SX_API cudaDeviceSetMemPool(int device, CUmemoryPool pool) {
  return with_driver([&] { return driver().cuDeviceSetMemPool(device, pool); });
}
#if SX_CUDART_MAJOR >= 13
SX_API cudaMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
  return with_driver([&] { return driver().cuMemGetMemPool(pool, location, type); });
}
SX_API cudaMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
  return with_driver([&] { return driver().cuMemGetDefaultMemPool(pool, location, type); });
}
SX_API cudaMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool pool) {
  return with_driver([&] { return driver().cuMemSetMemPool(location, type, pool); });
}
#endif
SX_API cudaMemPoolCreate(CUmemoryPool *pool, const void *properties) {
  return with_context([&] { return driver().cuMemPoolCreate(pool, properties); });
}
SX_API cudaMemPoolDestroy(CUmemoryPool pool) {
  return with_context([&] { return driver().cuMemPoolDestroy(pool); });
}
SX_API cudaMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
  return with_context([&] { return driver().cuMemPoolGetAttribute(pool, attribute, value); });
}
SX_API cudaMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  return with_context([&] { return driver().cuMemPoolSetAttribute(pool, attribute, value); });
}
SX_API cudaMemPoolSetAccess(CUmemoryPool pool, const void *list, size_t count) {
  return with_context([&] { return driver().cuMemPoolSetAccess(pool, list, count); });
}
SX_API cudaMemPoolGetAccess(int *flags, CUmemoryPool pool, void *location) {
  return with_context([&] { return driver().cuMemPoolGetAccess(flags, pool, location); });
}
SX_API cudaMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return with_context([&] { return driver().cuMemPoolTrimTo(pool, keep); });
}

SX_API cudaGetSymbolAddress(void **out, const void *symbol) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    CUdeviceptr address = 0;
    size_t size = 0;
    return store(out, address_of(symbol, &address, &size), address);
  });
}

SX_API cudaGetSymbolSize(size_t *out, const void *symbol) {
  return with_context([&] {
    if (!out) return static_cast<int>(kInvalidValue);
    CUdeviceptr address = 0;
    size_t size = 0;
    int error = address_of(symbol, &address, &size);
    if (!error) *out = size;
    return error;
  });
}
