// Virtual memory management: addresses, memory, and the mapping of one to the other, each by itself.
//
// All memory is one file without a name, so that it keeps its content while it is mapped elsewhere, or twice; a mapping
// shows a part of the file at a place in the arena.  Memory that other processes are to open is a file of its own, of a
// fixed size: its descriptor is what they get.  What a device may access there is an allocation of the arena (of
// the kind Virtual) for each run of neighbouring mappings: a copy may go across them.  Mappings that the device may not
// write end the window of compiled code, whose accesses after it are checked one by one.  Addresses that are reserved and
// not mapped stay readable and writable, as every hole in the window of compiled code does.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>

#include "memory.h"
#include "shared_file.h"
#include "state.h"
#include "stream.h"

namespace sx {
namespace {

constexpr uint64_t kGranule = 2u << 20;
constexpr int kPinned = 1, kDevice = 1;  // hipMemAllocationTypePinned, hipMemLocationTypeDevice
constexpr unsigned kReadable = 1, kReadWrite = 3;
constexpr int kDescriptor = 1;  // hipMemHandleTypePosixFileDescriptor

struct Memory {
  int file;               // of this memory alone, or -1: it is a part of the file of all
  bool counted;           // as taken from the device, by the process that made it
  uint64_t offset, size;  // in the file
  unsigned owners;        // hipMemCreate and hipMemRetainAllocationHandle, less releases; a mapping is one, too
  hipMemAllocationProp properties;
};

struct Mapping {
  uint64_t size;
  uint64_t memory;  // its number
  unsigned access;
};

struct State {
  std::mutex mutex;
  int file = -1;
  uint64_t next = 1;                     // numbers of memory are not used again
  std::map<uint64_t, Memory> memories;   // by number, which is the handle
  std::map<uint64_t, uint64_t> free_at;  // of the file: offset -> size
  std::map<uint64_t, uint64_t> reserved; // base -> size
  std::map<uint64_t, Mapping> mappings;  // base -> mapping
};

State &state() {
  static State *const instance = new State;  // outlives static destructors
  return *instance;
}

bool aligned(uint64_t value) { return value % kGranule == 0; }

uint64_t number_of(hipMemGenericAllocationHandle_t handle) { return reinterpret_cast<uint64_t>(handle); }

// Where the file grows there is a free part without an end.
bool open_file(State &s) {
  if (s.file >= 0) return true;
  s.file = memfd_create("device memory (sassxlate)", MFD_CLOEXEC);
  if (s.file < 0) return false;
  constexpr uint64_t kMost = uint64_t{1} << 46;
  if (ftruncate(s.file, static_cast<off_t>(kMost)) != 0) {
    close(s.file);
    s.file = -1;
    return false;
  }
  s.free_at[0] = kMost;
  return true;
}

bool take_part(State &s, uint64_t size, uint64_t &offset) {
  for (auto it = s.free_at.begin(); it != s.free_at.end(); ++it) {
    if (it->second < size) continue;
    offset = it->first;
    const uint64_t rest = it->second - size;
    s.free_at.erase(it);
    if (rest) s.free_at[offset + size] = rest;
    return true;
  }
  return false;
}

void give_part(State &s, uint64_t offset, uint64_t size) {
  // New memory reads as zero, and takes none of the host's.  A part that cannot be emptied is not used again.
  if (fallocate(s.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(size)) != 0)
    return;
  auto next = s.free_at.lower_bound(offset);
  if (next != s.free_at.end() && next->first == offset + size) {
    size += next->second;
    next = s.free_at.erase(next);
  }
  if (next != s.free_at.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  s.free_at[offset] = size;
}

void drop(State &s, uint64_t number) {
  auto it = s.memories.find(number);
  if (--it->second.owners) return;
  if (it->second.counted) memory_uncount(it->second.size);
  if (it->second.file >= 0)
    close(it->second.file);
  else
    give_part(s, it->second.offset, it->second.size);
  s.memories.erase(it);
}

// The reservation that holds the range, or the end.
std::map<uint64_t, uint64_t>::iterator reservation_of(State &s, uint64_t base, uint64_t size) {
  auto it = s.reserved.upper_bound(base);
  if (it == s.reserved.begin()) return s.reserved.end();
  --it;
  return size <= it->second && base - it->first <= it->second - size ? it : s.reserved.end();
}

// Whether mappings begin and end with the range and fill it.
bool filled(State &s, uint64_t base, uint64_t size) {
  uint64_t at = base;
  for (auto it = s.mappings.find(base); it != s.mappings.end() && it->first == at && at < base + size; ++it)
    at += it->second.size;
  return size && at == base + size;
}

// Makes the arena's allocations within a reservation those that the mappings say.
void show(State &s, uint64_t base, uint64_t size) {
  memory_hide_virtual(base, size);
  uint64_t begin = 0, end = 0;  // of readable memory so far
  for (auto it = s.mappings.lower_bound(base); it != s.mappings.end() && it->first < base + size; ++it) {
    if (it->second.access != kReadWrite) memory_guard_virtual(it->first, it->second.size);
    if (!(it->second.access & kReadable)) continue;
    if (it->first != end) {
      if (end) memory_show_virtual(begin, end - begin);
      begin = it->first;
    }
    end = it->first + it->second.size;
  }
  if (end) memory_show_virtual(begin, end - begin);
}

hipMemGenericAllocationHandle_t keep(State &s, const Memory &memory) {
  const uint64_t number = s.next++;
  s.memories[number] = memory;
  return reinterpret_cast<hipMemGenericAllocationHandle_t>(number);
}

bool usable(const hipMemAllocationProp *prop) {
  return prop && prop->type == kPinned && prop->location.type == kDevice && prop->location.id == 0;
}

int reserve(void **out, size_t size, size_t alignment, unsigned long long flags) {
  if (!out || !size || !aligned(size) || flags || (alignment & (alignment - 1))) return hipErrorInvalidValue;
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  uint64_t base = 0;
  if (!memory_reserve(size, alignment > kGranule ? alignment : kGranule, base)) return hipErrorOutOfMemory;
  s.reserved[base] = size;
  *out = reinterpret_cast<void *>(base);
  return 0;
}

int unreserve(void *pointer, size_t size) {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  auto it = s.reserved.find(base);
  if (it == s.reserved.end() || it->second != size) return hipErrorInvalidValue;
  auto mapped = s.mappings.lower_bound(base);
  if (mapped != s.mappings.end() && mapped->first < base + size) return hipErrorInvalidValue;
  s.reserved.erase(it);
  memory_unreserve(base, size);
  return 0;
}

int create(hipMemGenericAllocationHandle_t *out, size_t size, const hipMemAllocationProp *prop, unsigned long long flags) {
  if (!out || !size || !aligned(size) || flags || !usable(prop)) return hipErrorInvalidValue;
  const int type = prop->requestedHandleType;
  if (type && type != kDescriptor) return hipErrorNotSupported;
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  if (!open_file(s) || !memory_count(size)) return hipErrorOutOfMemory;
  uint64_t offset = 0;
  const int file = type ? shared_file(size) : -1;
  if (type ? file < 0 : !take_part(s, size, offset)) {
    memory_uncount(size);
    return hipErrorOutOfMemory;
  }
  *out = keep(s, {file, true, offset, size, 1, *prop});
  return 0;
}

int export_memory(void *out, hipMemGenericAllocationHandle_t handle, int type, unsigned long long flags) {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  auto it = s.memories.find(number_of(handle));
  if (!out || flags || it == s.memories.end() || type != kDescriptor || it->second.file < 0) return hipErrorInvalidValue;
  const int file = fcntl(it->second.file, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return hipErrorOutOfMemory;
  memcpy(out, &file, sizeof file);
  return 0;
}

int import_memory(hipMemGenericAllocationHandle_t *out, int given, int type) {
  const uint64_t size = shared_size(given);
  if (!out || type != kDescriptor || !size || !aligned(size)) return hipErrorInvalidValue;
  const int file = fcntl(given, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return hipErrorOutOfMemory;
  hipMemAllocationProp properties = {};
  properties.type = kPinned;
  properties.requestedHandleType = kDescriptor;
  properties.location = {kDevice, 0};
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  *out = keep(s, {file, false, 0, size, 1, properties});
  return 0;
}

int map_memory(void *pointer, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle, unsigned long long flags) {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  auto memory = s.memories.find(number_of(handle));
  if (memory == s.memories.end() || flags || offset || !size || !aligned(base) || size != memory->second.size ||
      reservation_of(s, base, size) == s.reserved.end())
    return hipErrorInvalidValue;
  auto next = s.mappings.lower_bound(base);
  if (next != s.mappings.end() && next->first < base + size) return hipErrorInvalidValue;
  if (next != s.mappings.begin() && std::prev(next)->first + std::prev(next)->second.size > base) return hipErrorInvalidValue;
  if (!memory_commit(base + size)) return hipErrorOutOfMemory;
  const int file = memory->second.file >= 0 ? memory->second.file : s.file;
  if (mmap(pointer, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
           static_cast<off_t>(memory->second.offset)) == MAP_FAILED)
    return hipErrorOutOfMemory;
  ++memory->second.owners;
  s.mappings[base] = {size, memory->first, 0};
  memory_guard_virtual(base, size);
  return 0;
}

int unmap_memory(void *pointer, size_t size) {
  wait_all_streams();  // work in flight may still use it
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  if (!filled(s, base, size)) return hipErrorInvalidValue;
  // In one step, so that no library of the application's gets the addresses.
  if (mmap(pointer, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    return hipErrorOutOfMemory;
  auto reservation = reservation_of(s, base, size);
  for (auto it = s.mappings.find(base); it != s.mappings.end() && it->first < base + size;) {
    const uint64_t number = it->second.memory;
    it = s.mappings.erase(it);
    drop(s, number);
  }
  show(s, reservation->first, reservation->second);
  return 0;
}

int set_access(void *pointer, size_t size, const hipMemAccessDesc *wanted, size_t count) {
  if (!wanted || !count) return hipErrorInvalidValue;
  unsigned access = 0;
  for (size_t i = 0; i < count; ++i) {
    if (wanted[i].location.type != kDevice || wanted[i].location.id != 0) return hipErrorInvalidDevice;
    if (wanted[i].flags != 0 && wanted[i].flags != kReadable && wanted[i].flags != kReadWrite) return hipErrorInvalidValue;
    access = wanted[i].flags;
  }
  wait_all_streams();
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  const uint64_t base = reinterpret_cast<uint64_t>(pointer);
  if (!filled(s, base, size)) return hipErrorInvalidValue;
  for (auto it = s.mappings.find(base); it != s.mappings.end() && it->first < base + size; ++it) it->second.access = access;
  auto reservation = reservation_of(s, base, size);
  show(s, reservation->first, reservation->second);
  return 0;
}

// The mapping around an address, or the end.
std::map<uint64_t, Mapping>::iterator mapping_at(State &s, const void *pointer) {
  const uint64_t address = reinterpret_cast<uint64_t>(pointer);
  auto it = s.mappings.upper_bound(address);
  if (it == s.mappings.begin()) return s.mappings.end();
  --it;
  return address - it->first < it->second.size ? it : s.mappings.end();
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipMemGetAllocationGranularity(size_t *granularity, const hipMemAllocationProp *prop, int option) {
  return call([&]() -> int {
    if (!granularity || !usable(prop) || option < 0 || option > 1) return hipErrorInvalidValue;
    *granularity = kGranule;
    return 0;
  });
}

SX_API hipError_t hipMemAddressReserve(void **pointer, size_t size, size_t alignment, void *, unsigned long long flags) {
  return call([&] { return reserve(pointer, size, alignment, flags); });
}

SX_API hipError_t hipMemAddressFree(void *pointer, size_t size) {
  return call([&] { return unreserve(pointer, size); });
}

SX_API hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size, const hipMemAllocationProp *prop,
                               unsigned long long flags) {
  return call([&] { return create(handle, size, prop, flags); });
}

SX_API hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle) {
  return call([&]() -> int {
    State &s = state();
    std::lock_guard<std::mutex> guard(s.mutex);
    auto it = s.memories.find(number_of(handle));
    if (it == s.memories.end()) return hipErrorInvalidValue;
    unsigned mapped = 0;
    for (const auto &mapping : s.mappings) mapped += mapping.second.memory == it->first;
    if (it->second.owners == mapped) return hipErrorInvalidValue;  // released already; only mappings keep it
    drop(s, it->first);
    return 0;
  });
}

SX_API hipError_t hipMemMap(void *pointer, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
                            unsigned long long flags) {
  return call([&] { return map_memory(pointer, size, offset, handle, flags); });
}

SX_API hipError_t hipMemUnmap(void *pointer, size_t size) {
  return call([&] { return unmap_memory(pointer, size); });
}

SX_API hipError_t hipMemSetAccess(void *pointer, size_t size, const hipMemAccessDesc *desc, size_t count) {
  return call([&] { return set_access(pointer, size, desc, count); });
}

SX_API hipError_t hipMemGetAccess(unsigned long long *flags, const hipMemLocation *location, void *pointer) {
  return call([&]() -> int {
    if (!flags || !location || location->type != kDevice || location->id != 0) return hipErrorInvalidValue;
    State &s = state();
    std::lock_guard<std::mutex> guard(s.mutex);
    auto it = mapping_at(s, pointer);
    if (it == s.mappings.end()) return hipErrorInvalidValue;
    *flags = it->second.access;
    return 0;
  });
}

SX_API hipError_t hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *pointer) {
  return call([&]() -> int {
    if (!handle) return hipErrorInvalidValue;
    State &s = state();
    std::lock_guard<std::mutex> guard(s.mutex);
    auto it = mapping_at(s, pointer);
    if (it == s.mappings.end()) return hipErrorInvalidValue;
    ++s.memories[it->second.memory].owners;
    *handle = reinterpret_cast<hipMemGenericAllocationHandle_t>(it->second.memory);
    return 0;
  });
}

SX_API hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *prop, hipMemGenericAllocationHandle_t handle) {
  return call([&]() -> int {
    State &s = state();
    std::lock_guard<std::mutex> guard(s.mutex);
    auto it = s.memories.find(number_of(handle));
    if (!prop || it == s.memories.end()) return hipErrorInvalidValue;
    *prop = it->second.properties;
    return 0;
  });
}

SX_API hipError_t hipMemExportToShareableHandle(void *out, hipMemGenericAllocationHandle_t handle, int type,
                                                unsigned long long flags) {
  return call([&] { return export_memory(out, handle, type, flags); });
}

SX_API hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *given, int type) {
  return call([&] { return import_memory(handle, static_cast<int>(reinterpret_cast<intptr_t>(given)), type); });
}
