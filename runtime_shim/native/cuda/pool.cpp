// Memory pools.
#include "pool.h"

#include "driver.h"
#include "handles.h"
#include "unsupported.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

using namespace sx;

namespace {

std::mutex g_mutex;

struct Given {
  MemoryPool *pool;
  size_t size;
};
std::unordered_map<CUdeviceptr, Given> &given() {
  static auto *all = new std::unordered_map<CUdeviceptr, Given>;
  return *all;
}

CUmemoryPool handle_of(MemoryPool *pool) { return reinterpret_cast<CUmemoryPool>(pool); }

// Under the mutex.
void forget(std::unordered_map<CUdeviceptr, Given>::iterator at) {
  MemoryPool *pool = at->second.pool;
  pool->used -= at->second.size;
  given().erase(at);
  if (pool->destroyed && !pool->used) delete pool;
}

// CU_MEMPOOL_ATTR_*: 1 to 3 say how memory is reused, 4 is the threshold, 5 to 8 are amounts.
CUresult pool_attribute(MemoryPool &pool, int id, void *value, bool set) {
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (id >= 1 && id <= 3) {
    if (set) memcpy(&pool.reuse[id], value, sizeof(int));
    else memcpy(value, &pool.reuse[id], sizeof(int));
    return CUDA_SUCCESS;
  }
  if (id == 4) {
    if (set) memcpy(&pool.release_threshold, value, sizeof(uint64_t));
    else memcpy(value, &pool.release_threshold, sizeof(uint64_t));
    return CUDA_SUCCESS;
  }
  if (id < 5 || id > 8) return CUDA_ERROR_INVALID_VALUE;
  // Reserved (5, 6) is what is used (7, 8): nothing is kept for later.
  std::lock_guard<std::mutex> guard(g_mutex);
  bool high = id == 6 || id == 8;
  uint64_t amount = high ? pool.most : pool.used;
  if (!set) return memcpy(value, &amount, sizeof amount), CUDA_SUCCESS;
  memcpy(&amount, value, sizeof amount);
  if (!high || amount) return CUDA_ERROR_INVALID_VALUE;  // a mark can be set to 0, which means: to what is now
  pool.most = pool.used;
  return CUDA_SUCCESS;
}

}  // namespace

namespace sx {

MemoryPool *find_pool(CUmemoryPool handle) {
  auto *pool = reinterpret_cast<MemoryPool *>(handle);
  for (auto &device : driver().devices)
    if (pool == device->default_pool.get()) return pool;
  return Handles<MemoryPool>::all().find(handle);
}

void pool_took(MemoryPool &pool, CUdeviceptr address, size_t size) {
  std::lock_guard<std::mutex> guard(g_mutex);
  // A reset of the device may have taken what had this address.
  auto old = given().find(address);
  if (old != given().end()) forget(old);
  given()[address] = {&pool, size};
  pool.used += size;
  pool.most = std::max(pool.most, pool.used);
}

void pool_gave_back(CUdeviceptr address) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto found = given().find(address);
  if (found != given().end()) forget(found);
}

CUmemoryPool pool_of(CUdeviceptr address) {
  std::lock_guard<std::mutex> guard(g_mutex);
  auto found = given().find(address);
  return found == given().end() ? nullptr : handle_of(found->second.pool);
}

}  // namespace sx

static CUresult get_pool(const char *name, CUmemoryPool *out, CUdevice ordinal, bool current) {
  return enter<Need::Init>(name, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    *out = handle_of(current ? device->pool : device->default_pool.get());
    return CUDA_SUCCESS;
  });
}

SX_API cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) { return get_pool(__func__, pool, device, true); }
SX_API cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
  return get_pool(__func__, pool, device, false);
}

SX_API cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    MemoryPool *pool = find_pool(handle);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!pool) return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
  });
}

// The device of a location and a type of allocation; other ones that CUDA has are refused by name.
static CUresult device_at(const CUmemLocation *location, int type, Device *&device) {
  constexpr int kPinned = 1, kManaged = 2;
  if (!location || (type != kPinned && type != kManaged)) return CUDA_ERROR_INVALID_VALUE;
  if (location->type < (type == kManaged ? 0 : 1) || location->type > 3) return CUDA_ERROR_INVALID_VALUE;
  if (type == kManaged) return refuse("a memory pool of managed memory");
  if (location->type != 1) return refuse("a memory pool in host memory");
  device = find_device(location->id);
  return device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult pool_at(const char *name, CUmemoryPool *out, const CUmemLocation *location, int type, bool current) {
  return enter<Need::Init>(name, [&]() -> CUresult {
    Device *device = nullptr;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = device_at(location, type, device)) return error;
    *out = handle_of(current ? device->pool : device->default_pool.get());
    return CUDA_SUCCESS;
  });
}

SX_API cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
  return pool_at(__func__, pool, location, type, true);
}
SX_API cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location, int type) {
  return pool_at(__func__, pool, location, type, false);
}

SX_API cuMemSetMemPool(CUmemLocation *location, int type, CUmemoryPool handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Device *device = nullptr;
    if (CUresult error = device_at(location, type, device)) return error;
    MemoryPool *pool = find_pool(handle);
    if (!pool || find_device(pool->device) != device) return CUDA_ERROR_INVALID_VALUE;
    device->pool = pool;
    return CUDA_SUCCESS;
  });
}

SX_API cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out || !props || props->allocType != 1) return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes) return refuse("a memory pool shared between processes");
    if (props->location.type != 1) return refuse("a memory pool in host memory");
    if (!find_device(props->location.id)) return CUDA_ERROR_INVALID_VALUE;
    auto *pool = new MemoryPool;
    pool->device = props->location.id;
    pool->owned = true;
    Handles<MemoryPool>::all().add(pool);
    *out = handle_of(pool);
    return CUDA_SUCCESS;
  });
}

SX_API cuMemPoolDestroy(CUmemoryPool handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    auto *pool = Handles<MemoryPool>::all().find(handle);
    if (!pool || !Handles<MemoryPool>::all().remove(pool)) return CUDA_ERROR_INVALID_VALUE;
    for (auto &device : driver().devices)
      if (device->pool == pool) device->pool = device->default_pool.get();
    std::lock_guard<std::mutex> guard(g_mutex);
    pool->destroyed = true;  // its allocations stay until they are freed
    if (!pool->used) delete pool;
    return CUDA_SUCCESS;
  });
}

SX_API cuMemPoolGetAttribute(CUmemoryPool handle, int id, void *value) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    MemoryPool *pool = find_pool(handle);
    return pool ? pool_attribute(*pool, id, value, false) : CUDA_ERROR_INVALID_VALUE;
  });
}

SX_API cuMemPoolSetAttribute(CUmemoryPool handle, int id, void *value) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    MemoryPool *pool = find_pool(handle);
    return pool ? pool_attribute(*pool, id, value, true) : CUDA_ERROR_INVALID_VALUE;
  });
}

SX_API cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    return find_pool(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

SX_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *access, size_t count) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    MemoryPool *pool = find_pool(handle);
    if (!pool || (count && !access)) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i) {
      // Its own device always has access and cannot lose it; others never have it here.
      bool own = access[i].location.type == 1 && access[i].location.id == pool->device;
      if (access[i].location.type == 1 && !find_device(access[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
      if (own ? access[i].flags == 0 : access[i].flags != 0) return CUDA_ERROR_INVALID_DEVICE;
    }
    return CUDA_SUCCESS;
  });
}

SX_API cuMemPoolGetAccess(int *flags, CUmemoryPool handle, CUmemLocation *location) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    MemoryPool *pool = find_pool(handle);
    if (!pool || !flags || !location) return CUDA_ERROR_INVALID_VALUE;
    *flags = location->type == 1 && location->id == pool->device ? 3 : 0;
    return CUDA_SUCCESS;
  });
}
