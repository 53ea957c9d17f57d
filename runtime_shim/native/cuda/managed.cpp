// Managed memory: its allocation, what the application advises about it, and what it asks of that.  All memory is where
// every processor sees it, so advice and prefetching change nothing but the answers about them.
#include "graph.h"
#include "pointer.h"
#include "unsupported.h"

#include <cstring>
#include <map>
#include <mutex>

using namespace sx;

namespace {

constexpr CUdevice kHostDevice = -1, kNoDevice = -2;  // CU_DEVICE_CPU, CU_DEVICE_INVALID

// CU_MEM_LOCATION_TYPE_*
enum : int { kNowhere = 0, kDevice = 1, kHost = 2, kHostNode = 3, kHostNodeCurrent = 4 };
// CU_MEM_ADVISE_*
enum : int { kSetReadMostly = 1, kUnsetReadMostly = 2, kSetPreferred = 3, kUnsetPreferred = 4, kSetAccessedBy = 5,
             kUnsetAccessedBy = 6 };
// CU_MEM_RANGE_ATTRIBUTE_*
enum : int { kReadMostly = 1, kPreferred = 2, kAccessedBy = 3, kLastPrefetch = 4, kPreferredType = 5, kPreferredId = 6,
             kLastPrefetchType = 7, kLastPrefetchId = 8 };

bool same(const CUmemLocation &a, const CUmemLocation &b) { return a.type == b.type && a.id == b.id; }

// What is known of a page.
struct Advice {
  bool read_mostly = false;
  CUmemLocation preferred = {kNowhere, 0};
  CUmemLocation last_prefetch = {kNowhere, 0};
  uint64_t accessed_by = 0;  // a bit for each device
  bool accessed_by_host = false;
};

// The advice about each address: that of the last entry at or before it.  Nothing was advised before the first.
class AdviceMap {
 public:
  template <typename Change>
  void change(const MemoryRange &range, Change change) {
    split(range.base);
    split(range.base + range.size);
    for (auto at = from_.find(range.base); at->first < range.base + range.size; ++at) change(at->second);
  }

  // Calls `look` with the advice of each part of the range.
  template <typename Look>
  void each(const MemoryRange &range, Look look) const {
    auto at = from_.upper_bound(range.base);
    look(at == from_.begin() ? Advice() : std::prev(at)->second);
    for (; at != from_.end() && at->first < range.base + range.size; ++at) look(at->second);
  }

  void forget(const MemoryRange &range) {
    if (!from_.empty()) change(range, [](Advice &a) { a = Advice(); });
  }

 private:
  // An entry begins at the address.
  void split(CUdeviceptr address) {
    auto next = from_.upper_bound(address);
    from_.emplace(address, next == from_.begin() ? Advice() : std::prev(next)->second);
  }

  std::map<CUdeviceptr, Advice> from_;
};

struct Advices {
  std::mutex mutex;
  AdviceMap map;
};

Advices &advices() {
  static auto *const one = new Advices;  // not destroyed: calls may come at the very end
  return *one;
}

CUmemLocation location_of(CUdevice device) { return device == kHostDevice ? CUmemLocation{kHost, 0} : CUmemLocation{kDevice, device}; }

// Where memory can be.  The thread's own node is the only one that a program can count on.
CUresult check_location(CUmemLocation &where) {
  switch (where.type) {
    case kDevice: return find_device(where.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case kHost: case kHostNodeCurrent: where.id = 0; return CUDA_SUCCESS;
    case kHostNode: return where.id >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult prefetch(const char *name, CUdeviceptr pointer, size_t size, CUmemLocation where, unsigned flags,
                  CUstream stream) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    if (!pointer || !size || flags) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult refused = refused_in_capture(stream)) return refused;
    if (CUresult result = check_location(where)) return result;
    MemoryRange range;
    if (!managed_part(pointer, size, range)) return CUDA_ERROR_INVALID_VALUE;
    Advices &known = advices();
    std::lock_guard<std::mutex> guard(known.mutex);
    known.map.change(range, [&](Advice &a) { a.last_prefetch = where; });
    return CUDA_SUCCESS;
  });
}

void advise(Advice &a, int advice, const CUmemLocation &where) {
  const bool device = where.type == kDevice;
  const uint64_t bit = device ? uint64_t{1} << (where.id & 63) : 0;
  switch (advice) {
    case kSetReadMostly: a.read_mostly = true; break;
    case kUnsetReadMostly: a.read_mostly = false; break;
    case kSetPreferred: a.preferred = where; break;
    case kUnsetPreferred: a.preferred = {kNowhere, 0}; break;
    case kSetAccessedBy: (device ? void(a.accessed_by |= bit) : void(a.accessed_by_host = true)); break;
    default: (device ? void(a.accessed_by &= ~bit) : void(a.accessed_by_host = false)); break;
  }
}

CUresult advise(const char *name, CUdeviceptr pointer, size_t size, int advice, CUmemLocation where) {
  return enter<Need::Context>(name, [&]() -> CUresult {
    if (!pointer || !size || advice < kSetReadMostly || advice > kUnsetAccessedBy) return CUDA_ERROR_INVALID_VALUE;
    // The others ignore the place.
    const bool placed = advice == kSetPreferred || advice >= kSetAccessedBy;
    if (placed)
      if (CUresult result = check_location(where)) return result;
    if (advice >= kSetAccessedBy && where.type != kDevice && where.type != kHost) return CUDA_ERROR_INVALID_VALUE;
    MemoryRange range;
    if (!managed_part(pointer, size, range)) return CUDA_ERROR_INVALID_VALUE;
    Advices &known = advices();
    std::lock_guard<std::mutex> guard(known.mutex);
    known.map.change(range, [&](Advice &a) { advise(a, advice, where); });
    return CUDA_SUCCESS;
  });
}

// The place that all of the range agrees on; nowhere otherwise.
template <typename Which>
CUmemLocation common_place(const AdviceMap &map, const MemoryRange &range, Which which) {
  bool first = true;
  CUmemLocation place = {kNowhere, 0};
  map.each(range, [&](const Advice &a) {
    if (first) place = which(a);
    else if (!same(place, which(a))) place = {kNowhere, 0};
    first = false;
  });
  return place;
}

CUresult put(void *out, int value) {
  memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

// A place as the attributes without a type tell it.
CUresult put_device(void *out, const CUmemLocation &place) {
  switch (place.type) {
    case kDevice: return put(out, place.id);
    case kHost: return put(out, kHostDevice);
    case kNowhere: return put(out, kNoDevice);
    default: return refuse("cuMemRangeGetAttribute of a node of the host's memory, without the type of the place");
  }
}

// The devices, then the host; what is left of the list names none.
CUresult put_accessors(void *out, size_t count, const AdviceMap &map, const MemoryRange &range) {
  uint64_t devices = ~uint64_t{0};
  bool host = true;
  map.each(range, [&](const Advice &a) {
    devices &= a.accessed_by;
    host = host && a.accessed_by_host;
  });
  std::vector<int> list;
  for (int i = 0; i < 64; ++i)
    if (devices >> i & 1) list.push_back(i);
  if (host) list.push_back(kHostDevice);
  list.resize(count, kNoDevice);
  memcpy(out, list.data(), count * sizeof(int));
  return CUDA_SUCCESS;
}

CUresult range_attribute(void *out, size_t bytes, int id, CUdeviceptr pointer, size_t size) {
  if (!out || !bytes || !pointer || !size || bytes % sizeof(int) || (id != kAccessedBy && bytes != sizeof(int)))
    return CUDA_ERROR_INVALID_VALUE;
  MemoryRange range;
  if (!managed_part(pointer, size, range)) return CUDA_ERROR_INVALID_VALUE;
  Advices &known = advices();
  std::lock_guard<std::mutex> guard(known.mutex);
  const CUmemLocation preferred = common_place(known.map, range, [](const Advice &a) { return a.preferred; });
  const CUmemLocation last = common_place(known.map, range, [](const Advice &a) { return a.last_prefetch; });
  bool read_mostly = true;
  known.map.each(range, [&](const Advice &a) { read_mostly = read_mostly && a.read_mostly; });
  switch (id) {
    case kReadMostly: return put(out, read_mostly);
    case kPreferred: return put_device(out, preferred);
    case kAccessedBy: return put_accessors(out, bytes / sizeof(int), known.map, range);
    case kLastPrefetch: return put_device(out, last);
    case kPreferredType: return put(out, preferred.type);
    case kPreferredId: return put(out, preferred.id);
    case kLastPrefetchType: return put(out, last.type);
    case kLastPrefetchId: return put(out, last.id);
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

void sx::managed_made(CUdeviceptr pointer, size_t size) {
  Advices &known = advices();
  std::lock_guard<std::mutex> guard(known.mutex);
  known.map.forget({pointer, size});
}

SX_API cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!out || !size || !flags || flags > 3) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
    void *pointer = nullptr;
    CUresult result = SX_HIP(hipMallocManaged, &pointer, size, flags & 3);
    if (result != CUDA_SUCCESS) return result;
    *out = reinterpret_cast<CUdeviceptr>(pointer);
    managed_made(*out, size);
    return CUDA_SUCCESS;
  });
}

SX_API cuMemPrefetchAsync(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
  return prefetch(__func__, pointer, size, location_of(device), 0, stream);
}
SX_API cuMemPrefetchAsync_v2(CUdeviceptr pointer, size_t size, CUmemLocation where, unsigned flags, CUstream stream) {
  return prefetch(__func__, pointer, size, where, flags, stream);
}
SX_API cuMemPrefetchAsync_ptsz(CUdeviceptr pointer, size_t size, CUdevice device, CUstream stream) {
  return cuMemPrefetchAsync(pointer, size, device, stream ? stream : CU_STREAM_PER_THREAD);
}
SX_API cuMemPrefetchAsync_v2_ptsz(CUdeviceptr pointer, size_t size, CUmemLocation where, unsigned flags, CUstream stream) {
  return cuMemPrefetchAsync_v2(pointer, size, where, flags, stream ? stream : CU_STREAM_PER_THREAD);
}

SX_API cuMemAdvise(CUdeviceptr pointer, size_t size, int advice, CUdevice device) {
  return advise(__func__, pointer, size, advice, location_of(device));
}
SX_API cuMemAdvise_v2(CUdeviceptr pointer, size_t size, int advice, CUmemLocation where) {
  return advise(__func__, pointer, size, advice, where);
}

SX_API cuMemRangeGetAttribute(void *out, size_t bytes, int id, CUdeviceptr pointer, size_t size) {
  return enter<Need::Context>(__func__, [&] { return range_attribute(out, bytes, id, pointer, size); });
}

SX_API cuMemRangeGetAttributes(void **outs, size_t *bytes, int *ids, size_t count, CUdeviceptr pointer, size_t size) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!outs || !bytes || !ids || !count) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; ++i)
      if (CUresult result = range_attribute(outs[i], bytes[i], ids[i], pointer, size)) return result;
    return CUDA_SUCCESS;
  });
}
