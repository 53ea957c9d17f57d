#include "kernarg.h"

#include "memory.h"

#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace sx {
namespace {

constexpr size_t kChunk = 8u << 20;  // of address space; only what is used takes memory

struct Pool {
  std::mutex mutex;
  std::map<size_t, std::vector<uint64_t>> free;  // by slot size, a power of two
  uint64_t fresh = 0, fresh_end = 0;             // the chunk that new slots are cut from
};

Pool &pool() {
  static Pool *const instance = new Pool;
  return *instance;
}

}  // namespace

bool kernarg_start() {
  // The first thing in the arena, so that a kernel that writes past its buffers hits no arguments.
  Pool &p = pool();
  if (memory_allocate(kChunk, MemoryKind::Internal, 0, p.fresh) != 0) return false;
  p.fresh_end = p.fresh + kChunk;
  return true;
}

uint64_t kernarg_take(size_t size, size_t &slot) {
  slot = 1024;
  while (slot < size) slot *= 2;
  Pool &p = pool();
  std::unique_lock<std::mutex> lock(p.mutex);
  std::vector<uint64_t> &list = p.free[slot];
  uint64_t address;
  if (!list.empty()) {
    address = list.back();
    list.pop_back();
  } else {
    if (p.fresh_end - p.fresh < slot) {
      uint64_t chunk = slot > kChunk ? slot : kChunk, base;
      if (memory_allocate(chunk, MemoryKind::Internal, 0, base) != 0) return 0;
      p.fresh = base;
      p.fresh_end = base + chunk;
    }
    address = p.fresh;
    p.fresh += slot;
  }
  lock.unlock();
  memset(reinterpret_cast<void *>(address), 0, size);
  return address;
}

void kernarg_give(uint64_t address, size_t slot) {
  std::lock_guard<std::mutex> guard(pool().mutex);
  pool().free[slot].push_back(address);
}

}  // namespace sx
