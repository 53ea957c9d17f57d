// Devices: counting, choosing, describing, limits.
#include <cstring>

#include "state.h"

using namespace sx;

namespace {

struct Property {
  size_t element, offset_12, offset_13;
  int attributes[3];
};

constexpr size_t kAbsent = static_cast<size_t>(-1);

const Property kProperties[] = {
#define SX_PROPERTY(name, element, offset_12, offset_13, ...) \
  {element, static_cast<size_t>(offset_12), static_cast<size_t>(offset_13), {__VA_ARGS__}},
#include "properties.inc"
#undef SX_PROPERTY
};

// Lengths of cudaDeviceProp: 11's (which 12 still fills under the name without a suffix), 12's and 13's.
constexpr size_t kLength11 = 728, kLength12 = 1032, kLength13 = 1008;

constexpr unsigned kDeviceMapHost = 8;   // always on, and the driver's contexts have no such flag any more
constexpr unsigned kDeviceFlags = 0x9f;  // scheduling (7), mapping, local memory (0x10), blocking copies (0x80)
constexpr int kLimits = 10;              // cudaLimit ends before this

// Places that the three structures share.
constexpr size_t kNameOffset = 0, kNameLength = 256, kUuidOffset = 256, kTotalMemoryOffset = 288;

int fill_properties(void *out, size_t length, int device) {
  if (!out) return kInvalidValue;
  const Driver &d = driver();
  CUdevice handle = 0;
  if (int error = d.cuDeviceGet(&handle, device)) return error;
  char *base = static_cast<char *>(out);
  memset(base, 0, length);
  if (int error = d.cuDeviceGetName(base + kNameOffset, kNameLength, handle)) return error;
  CUuuid uuid{};
  if (d.cuDeviceGetUuid(&uuid, handle) == kSuccess) memcpy(base + kUuidOffset, &uuid, sizeof uuid);
  size_t total = 0;
  if (int error = d.cuDeviceTotalMem_v2(&total, handle)) return error;
  memcpy(base + kTotalMemoryOffset, &total, sizeof total);
  for (const Property &p : kProperties) {
    size_t offset = length == kLength13 ? p.offset_13 : p.offset_12;
    if (offset == kAbsent || offset >= length) continue;
    for (int attribute : p.attributes) {
      if (!attribute) break;
      int value = 0;
      // An attribute that the driver does not know leaves its field zero, as an older driver's does.
      if (d.cuDeviceGetAttribute(&value, attribute, handle)) value = 0;
      if (p.element == 8) {
        // memPitch and the sizes are unsigned; 2 GiB - 1 is the largest the attribute can say.
        size_t wide = static_cast<size_t>(static_cast<unsigned>(value));
        memcpy(base + offset, &wide, sizeof wide);
      } else {
        memcpy(base + offset, &value, sizeof value);
      }
      offset += p.element;
    }
  }
  return kSuccess;
}

int properties(void *out, size_t length, int device) {
  return with_driver([&] { return fill_properties(out, length, device); });
}

}  // namespace

#if SX_CUDART_MAJOR >= 13
SX_API cudaGetDeviceProperties(void *out, int device) { return properties(out, kLength13, device); }
#else
SX_API cudaGetDeviceProperties(void *out, int device) { return properties(out, kLength11, device); }
SX_API cudaGetDeviceProperties_v2(void *out, int device) { return properties(out, kLength12, device); }
#endif

SX_API cudaGetDeviceCount(int *count) {
  if (!count) return record(kInvalidValue);
  return with_driver([&] {
    int error = driver().cuDeviceGetCount(count);
    if (!error && *count == 0) error = kNoDevice;
    return error;
  });
}

SX_API cudaSetDevice(int device) { return record(choose_device(device)); }

SX_API cudaInitDevice(int device, unsigned, unsigned) {
  return with_driver([&] {
    CUdevice handle = 0;
    return driver().cuDeviceGet(&handle, device);
  });
}

SX_API cudaSetValidDevices(int *, int) { return record(kSuccess); }

SX_API cudaGetDevice(int *device) {
  if (!device) return record(kInvalidValue);
  return record(current_device(device));
}

SX_API cudaDeviceGetAttribute(int *value, int attribute, int device) {
  return with_driver([&] {
    CUdevice handle = 0;
    if (int error = driver().cuDeviceGet(&handle, device)) return error;
    return driver().cuDeviceGetAttribute(value, attribute, handle);
  });
}

// The wish is a preference, never a condition: there is one device, or several alike.
SX_API cudaChooseDevice(int *device, const void *wish) {
  return with_driver([&] {
    if (!device || !wish) return static_cast<int>(kInvalidValue);
    *device = 0;
    return static_cast<int>(kSuccess);
  });
}

SX_API cudaSetDeviceFlags(unsigned flags) {
  return with_driver([&] {
    int device = 0;
    if (flags & ~kDeviceFlags) return static_cast<int>(kInvalidValue);
    if (int error = current_device(&device)) return error;
    return driver().cuDevicePrimaryCtxSetFlags_v2(device, flags & ~kDeviceMapHost);
  });
}

SX_API cudaGetDeviceFlags(unsigned *flags) {
  return with_driver([&] {
    if (!flags) return static_cast<int>(kInvalidValue);
    int device = 0, active = 0;
    if (int error = current_device(&device)) return error;
    int error = driver().cuDevicePrimaryCtxGetState(device, flags, &active);
    if (!error) *flags |= kDeviceMapHost;
    return error;
  });
}

SX_API cudaDeviceSynchronize() {
  return with_context([] { return driver().cuCtxSynchronize(); });
}

SX_API cudaDeviceReset() {
  return with_driver([] { return reset_device(); });
}

SX_API cudaDeviceGetLimit(size_t *value, int limit) {
  return with_context([&] {
    return limit < 0 || limit >= kLimits ? static_cast<int>(kInvalidValue) : driver().cuCtxGetLimit(value, limit);
  });
}

SX_API cudaDeviceSetLimit(int limit, size_t value) {
  return with_context([&] {
    return limit < 0 || limit >= kLimits ? static_cast<int>(kInvalidValue) : driver().cuCtxSetLimit(limit, value);
  });
}

SX_API cudaDeviceGetCacheConfig(int *config) {
  return with_context([&] { return driver().cuCtxGetCacheConfig(config); });
}

SX_API cudaDeviceSetCacheConfig(int config) {
  return with_context([&] { return driver().cuCtxSetCacheConfig(config); });
}

// Bank sizes have been fixed since Maxwell: four bytes, whatever the request.
SX_API cudaDeviceGetSharedMemConfig(int *config) {
  if (!config) return record(kInvalidValue);
  *config = 1;
  return kSuccess;
}

SX_API cudaDeviceSetSharedMemConfig(int) { return kSuccess; }

SX_API cudaCtxResetPersistingL2Cache() {
  return with_context([] { return driver().cuCtxResetPersistingL2Cache(); });
}

SX_API cudaDeviceGetPCIBusId(char *text, int length, int device) {
  return with_driver([&] { return driver().cuDeviceGetPCIBusId(text, length, device); });
}

SX_API cudaDeviceGetByPCIBusId(int *device, const char *text) {
  return with_driver([&] { return driver().cuDeviceGetByPCIBusId(device, text); });
}

SX_API cudaDeviceCanAccessPeer(int *possible, int device, int peer) {
  return with_driver([&] { return driver().cuDeviceCanAccessPeer(possible, device, peer); });
}

SX_API cudaDeviceGetP2PAttribute(int *value, int attribute, int source, int destination) {
  return with_driver([&] { return driver().cuDeviceGetP2PAttribute(value, attribute, source, destination); });
}

namespace {

int with_peer(int device, int own_answer, CUresult (*call)(CUcontext)) {
  return with_context([&] {
    int own = 0;
    if (int error = current_device(&own)) return error;
    if (own == device) return static_cast<int>(own_answer);
    CUcontext peer = nullptr;
    if (int error = driver().cuDevicePrimaryCtxRetain(&peer, device)) return error;
    int error = call(peer);
    driver().cuDevicePrimaryCtxRelease_v2(device);
    return error;
  });
}

}  // namespace

SX_API cudaDeviceEnablePeerAccess(int device, unsigned flags) {
  if (flags) return record(kInvalidValue);
  return with_peer(device, kPeerAccessUnsupported, [](CUcontext peer) { return driver().cuCtxEnablePeerAccess(peer, 0); });
}

SX_API cudaDeviceDisablePeerAccess(int device) {
  return with_peer(device, kPeerAccessNotEnabled, [](CUcontext peer) { return driver().cuCtxDisablePeerAccess(peer); });
}

SX_API cudaDeviceGraphMemTrim(int device) {
  return with_driver([&] { return driver().cuDeviceGraphMemTrim(device); });
}

SX_API cudaDeviceGetGraphMemAttribute(int device, int attribute, void *value) {
  return with_driver([&] { return driver().cuDeviceGetGraphMemAttribute(device, attribute, value); });
}

SX_API cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value) {
  return with_driver([&] { return driver().cuDeviceSetGraphMemAttribute(device, attribute, value); });
}
