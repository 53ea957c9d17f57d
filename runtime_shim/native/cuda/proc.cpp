// cuGetProcAddress: which variant of a name a caller means, by the driver version it was written for.
#include "driver.h"
#include "entry_points.h"
#include "profile.h"

#include <cstring>
#include <dlfcn.h>
#include <string>
#include <unordered_map>

using namespace sx;

namespace {

// CU_GET_PROC_ADDRESS_*
constexpr uint64_t kLegacyStream = 1, kPerThreadStream = 2;
// CUdriverProcAddressQueryResult
enum : int { kFound = 0, kNotFound = 1, kVersionTooOld = 2 };

const std::unordered_map<std::string, std::pair<const Variant *, const Variant *>> &index() {
  static auto *const built = [] {
    auto *map = new std::unordered_map<std::string, std::pair<const Variant *, const Variant *>>;
    for (const Variant *v = kVariants; v != kVariants + kVariantCount; ++v)
      map->emplace(v->name, std::make_pair(v, v)).first->second.second = v + 1;
    return map;
  }();
  return *built;
}

CUresult find(const char *symbol, void **out, int version, uint64_t flags, int *status) {
  if (status) *status = kNotFound;
  if (!symbol || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  if (version > kDriverVersion) return CUDA_ERROR_INVALID_VALUE;  // measured: as the driver does
  if (!*symbol) return CUDA_SUCCESS;                              // a probe of the runtime
  if ((flags & ~(kLegacyStream | kPerThreadStream)) || flags == 3) return CUDA_ERROR_INVALID_VALUE;
  auto found = index().find(symbol);
  if (found == index().end()) return CUDA_ERROR_NOT_FOUND;
  const Variant *best = nullptr, *best_per_thread = nullptr;
  for (const Variant *v = found->second.first; v != found->second.second; ++v) {
    if (v->version > version) continue;
    (v->per_thread ? best_per_thread : best) = v;
  }
  if ((flags & kPerThreadStream) && best_per_thread) best = best_per_thread;
  if (!best) {
    if (status) *status = kVersionTooOld;
    return CUDA_ERROR_NOT_FOUND;
  }
  *out = best->address;
  if (status) *status = kFound;
  return CUDA_SUCCESS;
}

}  // namespace

SX_API cuGetProcAddress(const char *symbol, void **out, int version, cuuint64_t flags) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    return find(symbol, out, version, flags, nullptr);
  });
}

SX_API cuGetProcAddress_v2(const char *symbol, void **out, int version, cuuint64_t flags, int *status) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    note("%s version %d flags %llu", symbol ? symbol : "(null)", version, static_cast<unsigned long long>(flags));
    return find(symbol, out, version, flags, status);
  });
}

SX_API cuGetProcAddress_v2_ptsz(const char *symbol, void **out, int version, cuuint64_t flags, int *status) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    return find(symbol, out, version, flags ? flags : kPerThreadStream, status);
  });
}

// The private tables serve NVIDIA's own runtime, whose self-test of the driver is not answered here: the
// runtime is replaced instead.
SX_API cuGetExportTable(const void **table, const CUuuid *id) {
  const void *caller = __builtin_return_address(0);
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    using Starts = void (*)(const void *);  // of libsassxlate_preload, if that is loaded
    static const auto starts = reinterpret_cast<Starts>(dlsym(RTLD_DEFAULT, "sassxlate_runtime_starts"));
    if (starts) starts(caller);
    if (!table) return CUDA_ERROR_INVALID_VALUE;
    if (id) {
      const auto *b = reinterpret_cast<const unsigned char *>(id->bytes);
      note("%02x%02x%02x%02x-%02x%02x-...", b[0], b[1], b[2], b[3], b[4], b[5]);
    }
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
  });
}
