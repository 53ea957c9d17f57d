#include "access.h"

#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace sx {
namespace {

constexpr unsigned kRead = 1, kReadWrite = 3;  // CU_MEM_ACCESS_FLAGS_PROT_*; nothing is 0

constexpr uint64_t kGranule = 2u << 20;  // as cuMemGetAllocationGranularity says

struct Mapping {
  uint64_t end;
  unsigned access;
};

struct Memory {
  size_t size;
  unsigned owners;  // cuMemCreate and cuMemRetainAllocationHandle, less releases
};

struct Rights {
  std::shared_mutex mutex;
  std::atomic<bool> any{false};           // reservations: most programs have none
  std::map<uint64_t, uint64_t> reserved;  // base -> end
  std::map<uint64_t, Mapping> mappings;   // by base
  std::map<CUmemGenericAllocationHandle, Memory> memories;
};

Rights &rights() {
  static Rights *const instance = new Rights;  // outlives static destructors
  return *instance;
}

uint64_t number(const void *pointer) { return reinterpret_cast<uint64_t>(pointer); }

bool reaches(const Rights &r, uint64_t begin, uint64_t end) {
  auto next = r.reserved.lower_bound(end);
  return next != r.reserved.begin() && std::prev(next)->second > begin;
}

bool overlaps_mapping(const Rights &r, uint64_t begin, uint64_t end) {
  auto next = r.mappings.lower_bound(end);
  return next != r.mappings.begin() && std::prev(next)->second.end > begin;
}

// Whether one reservation holds all of the range.
bool within_reservation(const Rights &r, uint64_t begin, uint64_t end) {
  auto next = r.reserved.upper_bound(begin);
  return next != r.reserved.begin() && std::prev(next)->second >= end;
}

}  // namespace

void access_reserved(const void *base, size_t size) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  r.reserved[number(base)] = number(base) + size;
  r.any = true;
}

void access_freed(const void *base) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  r.reserved.erase(number(base));
  r.any = !r.reserved.empty();
}

void access_mapped(const void *base, size_t size) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  r.mappings[number(base)] = {number(base) + size, 0};
}

void access_unmapped(const void *base, size_t size) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  r.mappings.erase(r.mappings.lower_bound(number(base)), r.mappings.lower_bound(number(base) + size));
}

void access_set(const void *base, size_t size, unsigned flags) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  for (auto it = r.mappings.lower_bound(number(base)); it != r.mappings.end() && it->first < number(base) + size; ++it)
    it->second.access = flags;
}

void memory_made(CUmemGenericAllocationHandle memory, size_t size) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  r.memories[memory] = {size, 1};
}

void memory_retained(CUmemGenericAllocationHandle memory, const void *pointer) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  auto next = r.mappings.upper_bound(number(pointer));
  if (next == r.mappings.begin()) return;
  auto it = std::prev(next);
  auto [place, added] = r.memories.try_emplace(memory, Memory{it->second.end - it->first, 0});
  ++place->second.owners;
}

bool memory_released(CUmemGenericAllocationHandle memory) {
  Rights &r = rights();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  auto it = r.memories.find(memory);
  if (it == r.memories.end()) return false;
  if (--it->second.owners == 0) r.memories.erase(it);
  return true;
}

CUresult may_free(const void *base, size_t size) {
  Rights &r = rights();
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  auto it = r.reserved.find(number(base));
  if (it == r.reserved.end() || it->second - it->first != size || overlaps_mapping(r, it->first, it->second))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult may_map(const void *base, size_t size, size_t offset, CUmemGenericAllocationHandle memory) {
  Rights &r = rights();
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  const uint64_t begin = number(base);
  uint64_t end = 0;
  auto it = r.memories.find(memory);
  if (it == r.memories.end() || !size || __builtin_add_overflow(begin, size, &end) || begin % kGranule)
    return CUDA_ERROR_INVALID_VALUE;
  if (!within_reservation(r, begin, end) || overlaps_mapping(r, begin, end)) return CUDA_ERROR_INVALID_VALUE;
  return offset || size != it->second.size ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

bool nothing_mapped(const void *base, size_t size) {
  Rights &r = rights();
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  const uint64_t begin = number(base);
  uint64_t end = 0;
  return size && !__builtin_add_overflow(begin, size, &end) && within_reservation(r, begin, end) &&
         !overlaps_mapping(r, begin, end);
}

std::vector<Range> whole_mappings(const void *base, size_t size) {
  Rights &r = rights();
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  const uint64_t begin = number(base);
  uint64_t end = 0;
  if (__builtin_add_overflow(begin, size, &end) || !within_reservation(r, begin, end)) return {};
  auto it = r.mappings.lower_bound(begin);
  if (it != r.mappings.begin() && std::prev(it)->second.end > begin) return {};
  std::vector<Range> found;
  for (; it != r.mappings.end() && it->first < end; ++it) {
    if (it->second.end > end) return {};
    found.push_back({reinterpret_cast<void *>(it->first), it->second.end - it->first});
  }
  return found;
}

bool may_access(const void *base, size_t size, bool write) {
  Rights &r = rights();
  if (!size || !r.any.load(std::memory_order_acquire)) return true;
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  uint64_t at = number(base), end = 0;
  if (__builtin_add_overflow(at, size, &end) || !reaches(r, at, end)) return true;
  const unsigned wanted = write ? kReadWrite : kRead;
  while (at < end) {
    auto it = r.mappings.upper_bound(at);
    if (it == r.mappings.begin()) return false;
    const auto &mapping = std::prev(it)->second;
    if (mapping.end <= at || (mapping.access & wanted) != wanted) return false;
    at = mapping.end;
  }
  return true;
}

}  // namespace sx
