#include "kernarg.h"

#include "memory.h"

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace sx {
namespace {

constexpr size_t kChunk = 256u << 10;

struct Pool {
  std::mutex mutex;
  std::map<size_t, std::vector<uint64_t>> free;  // by slot size, a power of two
};

Pool &pool() {
  static Pool *const instance = new Pool;
  return *instance;
}

}  // namespace

uint64_t kernarg_take(size_t size, size_t &slot) {
  slot = 1024;
  while (slot < size) slot *= 2;
  uint64_t address = 0;
  {
    std::lock_guard<std::mutex> guard(pool().mutex);
    std::vector<uint64_t> &list = pool().free[slot];
    if (list.empty()) {
      size_t chunk = slot > kChunk ? slot : kChunk;
      uint64_t base;
      if (memory_allocate(chunk, MemoryKind::Internal, 0, base) != 0) return 0;
      for (size_t at = 0; at < chunk; at += slot) list.push_back(base + chunk - slot - at);
    }
    address = list.back();
    list.pop_back();
  }
  memset(reinterpret_cast<void *>(address), 0, size);
  return address;
}

void kernarg_give(uint64_t address, size_t slot) {
  std::lock_guard<std::mutex> guard(pool().mutex);
  pool().free[slot].push_back(address);
}

}  // namespace sx
