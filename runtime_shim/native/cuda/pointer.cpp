// What a pointer is: the attributes of memory, and which of it modules' variables are.
#include "pointer.h"

#include "pool.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

using namespace sx;

namespace {

constexpr uint64_t kPage = 4096;  // bytes: the processor's, to which the driver rounds ranges of managed memory

struct ModuleMemory {
  const Device *device;
  unsigned generation;  // the device's when it was allocated
  std::vector<MemoryRange> managed;

  bool there() const { return generation == device->generation; }
};

struct ModuleMemories {
  std::mutex mutex;
  std::map<CUdeviceptr, ModuleMemory> all;  // by address
};

ModuleMemories &module_memories() {
  static auto *const one = new ModuleMemories;  // not destroyed: calls may come at the very end
  return *one;
}

// The managed variable that holds the address.
bool managed_variable(CUdeviceptr address, MemoryRange &out) {
  ModuleMemories &memories = module_memories();
  std::lock_guard<std::mutex> guard(memories.mutex);
  auto next = memories.all.upper_bound(address);
  if (next == memories.all.begin() || !std::prev(next)->second.there()) return false;
  for (const MemoryRange &range : std::prev(next)->second.managed)
    if (range.holds(address)) {
      out = range;
      return true;
    }
  return false;
}

}  // namespace

void sx::module_memory_made(CUdeviceptr base, const Device &device, std::vector<MemoryRange> managed) {
  for (const MemoryRange &range : managed) managed_made(range.base, range.size);
  ModuleMemories &memories = module_memories();
  std::lock_guard<std::mutex> guard(memories.mutex);
  for (auto at = memories.all.begin(); at != memories.all.end();)
    at = at->second.there() ? std::next(at) : memories.all.erase(at);
  memories.all[base] = ModuleMemory{&device, device.generation, std::move(managed)};
}

void sx::module_memory_gone(CUdeviceptr base) {
  ModuleMemories &memories = module_memories();
  std::lock_guard<std::mutex> guard(memories.mutex);
  memories.all.erase(base);
}

bool sx::is_module_memory(CUdeviceptr base) {
  ModuleMemories &memories = module_memories();
  std::lock_guard<std::mutex> guard(memories.mutex);
  auto found = memories.all.find(base);
  return found != memories.all.end() && found->second.there();
}

PointerFacts sx::facts_of(CUdeviceptr pointer) {
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
  MemoryRange variable;
  if (facts.known && managed_variable(pointer, variable)) {
    facts.hip.type = hipMemoryTypeManaged;
    facts.hip.isManaged = 1;
    facts.hip.hostPointer = to_pointer(pointer);
  }
  return facts;
}

MemoryRange sx::managed_memory(CUdeviceptr pointer) {
  MemoryRange whole;
  if (managed_variable(pointer, whole)) return whole;
  const PointerFacts facts = facts_of(pointer);
  return facts.known && facts.hip.isManaged ? MemoryRange{facts.base, facts.size} : MemoryRange();
}

bool sx::managed_part(CUdeviceptr pointer, size_t size, MemoryRange &out) {
  const MemoryRange whole = managed_memory(pointer);
  const CUdeviceptr end = whole.base + whole.size;
  const CUdeviceptr last_page = (end + kPage - 1) / kPage * kPage;  // it may be named as a whole
  if (!whole.holds(pointer) || size > last_page - pointer) return false;
  out.base = std::max(pointer / kPage * kPage, whole.base);
  out.size = std::min((pointer + size + kPage - 1) / kPage * kPage, end) - out.base;
  return true;
}

namespace {

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
