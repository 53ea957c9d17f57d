#include "locks.h"

#include <map>
#include <mutex>

#include "hip_api.h"

namespace sx {

namespace {

constexpr size_t kLocks = 1024;  // LOCKS of lowering/rules/memory/atomic128.py

struct Locks {
  unsigned generation = 0;  // of the device: a reset takes the memory
  void *memory = nullptr;
};

}  // namespace

CUresult lock_table(Device &device, uint64_t &address) {
  static std::mutex mutex;
  static auto *all = new std::map<int, Locks>;
  std::lock_guard<std::mutex> guard(mutex);
  Locks &locks = (*all)[device.ordinal];
  if (locks.generation != device.generation) locks = Locks();
  if (!locks.memory) {
    void *memory = nullptr;
    CUresult result = from_hip(hip().hipMalloc(&memory, kLocks * sizeof(uint32_t)));
    if (result != CUDA_SUCCESS) return result;
    static const uint32_t free_locks[kLocks] = {};
    result = from_hip(hip().hipMemcpy(memory, free_locks, sizeof free_locks, hipMemcpyHostToDevice));
    if (result != CUDA_SUCCESS) {
      hip().hipFree(memory);
      return result;
    }
    locks.generation = device.generation;
    locks.memory = memory;
  }
  address = reinterpret_cast<uint64_t>(locks.memory);
  return CUDA_SUCCESS;
}

}  // namespace sx
