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

struct Mapping {
  uint64_t end;
  unsigned access;
};

struct Rights {
  std::shared_mutex mutex;
  std::atomic<bool> any{false};           // reservations: most programs have none
  std::map<uint64_t, uint64_t> reserved;  // base -> end
  std::map<uint64_t, Mapping> mappings;   // by base
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
