// Memory pools: HIP's allocator stands behind all of them; a pool keeps what is asked of it.
#pragma once
#include <cstdint>

namespace sx {

struct MemoryPool {
  int device = 0;
  bool owned = false;  // made by cuMemPoolCreate
  uint64_t release_threshold = 0;
  int reuse[4] = {1, 1, 1, 1};  // by attribute 1 to 3
};

}  // namespace sx
