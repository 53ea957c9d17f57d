// Contexts: a stack for each thread, the device's primary context, limits.
#include <algorithm>

#include "driver.h"
#include "graph.h"
#include "hostcall.h"
#include "handles.h"
#include "profile.h"
#include "shared_memory.h"
#include "unsupported.h"

using namespace sx;

namespace sx {

Context *find_context(CUcontext handle) {
  for (auto &device : driver().devices)
    if (handle == device->primary.handle()) return &device->primary;
  return Handles<Context>::all().find(handle);
}

}  // namespace sx

namespace {

std::mutex g_mutex;  // of retain counts and flags

CUresult set_current(Context *context) {
  std::vector<Context *> &stack = context_stack();
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return CUDA_SUCCESS;
}

CUresult create_context(CUcontext *out, unsigned flags, CUdevice ordinal) {
  Device *device = find_device(ordinal);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult sticky = device->sticky) return sticky;
  auto *context = new Context;
  context->device = device;
  context->alive = true;
  context->flags = flags;
  Handles<Context>::all().add(context);
  context_stack().push_back(context);
  *out = context->handle();
  return CUDA_SUCCESS;
}

CUresult destroy_context(CUcontext handle) {
  Context *context = Handles<Context>::all().find(handle);
  if (!context || !Handles<Context>::all().remove(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->device->sticky) hip().hipDeviceSynchronize();
  context->alive = false;
  std::vector<Context *> &stack = context_stack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  // Not freed: other threads may still have it on their stacks, and must see that it is destroyed.
  return CUDA_SUCCESS;
}

CUresult release_primary(Device &device, bool all) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Context &context = device.primary;
  if (!all && context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  context.retained = all ? 0 : context.retained - 1;
  if (context.retained > 0) return CUDA_SUCCESS;
  bool was = context.alive;
  context.alive = false;
  // Memory and streams go with a reset; a mere release may be followed by a retain that finds them.
  if (all && was && !device.sticky && hip().hipDeviceReset) {
    hip().hipSetDevice(device.hip);
    ++device.generation;
    forget_registered();
    context.set_default_limits();
    return from_hip(hip().hipDeviceReset());
  }
  return CUDA_SUCCESS;
}

CUresult get_device(CUdevice *out, Context *context) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = context->device->ordinal;
  return CUDA_SUCCESS;
}

}  // namespace

SX_API cuCtxGetCurrent(CUcontext *out) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    Context *context = current_context();
    *out = context ? context->handle() : nullptr;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxSetCurrent(CUcontext handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Context *context = handle ? find_context(handle) : nullptr;
    return handle && !context ? CUDA_ERROR_INVALID_CONTEXT : set_current(context);
  });
}

SX_API cuCtxPushCurrent_v2(CUcontext handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!handle) return CUDA_ERROR_INVALID_VALUE;
    Context *context = find_context(handle);
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    context_stack().push_back(context);
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxPopCurrent_v2(CUcontext *out) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    std::vector<Context *> &stack = context_stack();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (out) *out = stack.back()->handle();
    stack.pop_back();
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device) {
  return enter<Need::Init>(__func__, [&] { return create_context(out, flags, device); });
}

SX_API cuCtxCreate_v3(CUcontext *out, void *, int affinities, unsigned flags, CUdevice device) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    return affinities ? refuse("a context with execution affinity") : create_context(out, flags, device);
  });
}

SX_API cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (params && params->numExecAffinityParams) return refuse("a context with execution affinity");
    if (params && params->cigParams) return refuse("a context shared with a graphics interface");
    return create_context(out, flags, device);
  });
}

SX_API cuCtxDestroy_v2(CUcontext handle) {
  return enter<Need::Init>(__func__, [&] { return handle ? destroy_context(handle) : CUDA_ERROR_INVALID_VALUE; });
}

SX_API cuCtxGetDevice(CUdevice *device) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Context *context = current_context();
    return context ? get_device(device, context) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

SX_API cuCtxGetDevice_v2(CUdevice *device, CUcontext handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Context *context = handle ? find_context(handle) : current_context();
    return context ? get_device(device, context) : CUDA_ERROR_INVALID_CONTEXT;
  });
}

SX_API cuCtxSynchronize() {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (CUresult refused = device_in_capture()) return refused;
    return flush(current_device(), from_hip(hip().hipDeviceSynchronize()));
  });
}

SX_API cuCtxSynchronize_v2(CUcontext handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (handle && !find_context(handle)) return CUDA_ERROR_INVALID_CONTEXT;
    if (CUresult refused = device_in_capture()) return refused;
    return flush(current_device(), from_hip(hip().hipDeviceSynchronize()));
  });
}

SX_API cuCtxGetApiVersion(CUcontext handle, unsigned *version) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Context *context = handle ? find_context(handle) : current_context();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 3020;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxGetId(CUcontext handle, unsigned long long *id) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Context *context = handle ? find_context(handle) : current_context();
    if (!context) return CUDA_ERROR_INVALID_CONTEXT;
    if (!id) return CUDA_ERROR_INVALID_VALUE;
    *id = context->id;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxGetFlags(unsigned *flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    *flags = current_context()->flags;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxSetFlags(unsigned flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    current_context()->flags = flags;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxGetLimit(size_t *value, int limit) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    note("%d", limit);
    if (limit < 0 || limit >= CU_LIMIT_COUNT) return CUDA_ERROR_INVALID_VALUE;
    // Contexts shared with graphics do not exist here; an H200 without them does not know the last limit either.
    if (limit == CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED || limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH)
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = current_context()->limits[limit];
    if (limit == CU_LIMIT_SHMEM_SIZE) *value = static_cast<size_t>(shared_per_block());  // as an H200 says it
    note("%d = %zu", limit, *value);
    return CUDA_SUCCESS;
  });
}

namespace {

// The share of the second-level cache that is set aside for data that persists, bytes: 0 or whole sixteenths of
// the cache up to the greatest share.  Measured on an H200 (60 MiB of cache) for 0, for shares of up to a
// sixteenth, and from 1 GiB on (an error); that those between are rounded up, too, is inferred from its first
// limit, three sixteenths.  A hint: no cache is divided here.
bool share_of_cache(size_t &value) {
  const size_t part = kSecondLevelCache / 16, most = kMostPersisting;
  if (value > most) return false;
  value = (value + part - 1) / part * part;
  return true;
}

}  // namespace

// The stack limit is HIP's too, for kernels that recurse: only they have a dynamic stack.  The scratch of others is
// sized when they are translated, and suffices.
SX_API cuCtxSetLimit(int limit, size_t value) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    // Results and roundings as measured on an H200.
    if (limit < 0 || limit >= CU_LIMIT_COUNT) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
    if (limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED) return CUDA_ERROR_NOT_PERMITTED;
    if (limit > CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    if (limit == CU_LIMIT_STACK_SIZE) {
      if (value > 262144) return CUDA_ERROR_INVALID_VALUE;
      value = (value + 15) / 16 * 16;
      // HIP's never shrinks: launches that were prepared with the greater one may still come.
      size_t &granted = current_context()->hip_stack;
      if (value > granted && hip().hipDeviceSetLimit && hip().hipDeviceSetLimit(hipLimitStackSize, value) == hipSuccess)
        granted = value;
    }
    if (limit == CU_LIMIT_PRINTF_FIFO_SIZE && value <= (size_t{1} << 40))
      value = std::max<size_t>((value + 255) / 256 * 256, 524288);
    if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) value = std::min<size_t>(std::max<size_t>(value, 32), 599186);
    if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY && value > 128) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE && !share_of_cache(value)) return CUDA_ERROR_INVALID_VALUE;
    if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
      // As measured on an H200: once a kernel that uses the heap has been launched, whatever the value.
      if (heap_in_use(current_device())) return CUDA_ERROR_INVALID_VALUE;
      value = heap_limit(current_device(), value);
    }
    current_context()->limits[limit] = value;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxGetCacheConfig(int *config) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = current_context()->cache_config;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxSetCacheConfig(int config) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (config < 0 || config > 3) return CUDA_ERROR_INVALID_VALUE;  // CU_FUNC_CACHE_*
    current_context()->cache_config = config;
    return CUDA_SUCCESS;
  });
}

// Four-byte banks, on every architecture since Maxwell.
SX_API cuCtxGetSharedMemConfig(int *config) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    *config = 1;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxSetSharedMemConfig(int) {
  return enter<Need::Context>(__func__, []() -> CUresult { return CUDA_SUCCESS; });
}

SX_API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    int low = 0, high = 0;
    if (hip().hipDeviceGetStreamPriorityRange) hip().hipDeviceGetStreamPriorityRange(&low, &high);
    if (least) *least = low;
    if (greatest) *greatest = high;
    return CUDA_SUCCESS;
  });
}

SX_API cuCtxResetPersistingL2Cache() {
  return enter<Need::Context>(__func__, []() -> CUresult { return CUDA_SUCCESS; });
}

SX_API cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (flags) return CUDA_ERROR_INVALID_VALUE;
    Context *peer = find_context(handle);
    if (!peer) return CUDA_ERROR_INVALID_CONTEXT;
    return peer->device == &current_device() ? CUDA_ERROR_INVALID_CONTEXT : 217;  // PEER_ACCESS_UNSUPPORTED
  });
}

SX_API cuCtxDisablePeerAccess(CUcontext handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    return find_context(handle) ? CUDA_ERROR_PEER_ACCESS_NOT_ENABLED : CUDA_ERROR_INVALID_CONTEXT;
  });
}

SX_API cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice ordinal) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult sticky = device->sticky) return sticky;
    std::lock_guard<std::mutex> guard(g_mutex);
    ++device->primary.retained;
    device->primary.alive = true;
    *out = device->primary.handle();
    return CUDA_SUCCESS;
  });
}

static CUresult primary_release(const char *name, CUdevice ordinal, bool all) {
  return enter<Need::Init>(name, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    return device ? release_primary(*device, all) : CUDA_ERROR_INVALID_DEVICE;
  });
}

SX_API cuDevicePrimaryCtxRelease(CUdevice device) { return primary_release(__func__, device, false); }
SX_API cuDevicePrimaryCtxRelease_v2(CUdevice device) { return primary_release(__func__, device, false); }
SX_API cuDevicePrimaryCtxReset(CUdevice device) { return primary_release(__func__, device, true); }
SX_API cuDevicePrimaryCtxReset_v2(CUdevice device) { return primary_release(__func__, device, true); }

static CUresult primary_flags(const char *name, CUdevice ordinal, unsigned flags) {
  return enter<Need::Init>(name, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard<std::mutex> guard(g_mutex);
    device->primary.flags = flags;
    return CUDA_SUCCESS;
  });
}

SX_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { return primary_flags(__func__, device, flags); }
SX_API cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) { return primary_flags(__func__, device, flags); }

SX_API cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned *flags, int *active) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Device *device = find_device(ordinal);
    if (!device) return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard<std::mutex> guard(g_mutex);
    if (flags) *flags = device->primary.flags;
    if (active) *active = device->primary.alive;
    return CUDA_SUCCESS;
  });
}
