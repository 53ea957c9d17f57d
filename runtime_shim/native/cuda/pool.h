// Memory pools: all use HIP's allocator; a pool stores its attributes, and accounts.
#pragma once
#include "cuda_abi.h"

namespace sx {

struct MemoryPool {
  int device = 0;
  bool owned = false;      // made by cuMemPoolCreate
  bool destroyed = false;  // and destroyed, while memory of it is in use
  uint64_t release_threshold = 0;
  int reuse[4] = {1, 1, 1, 1};  // by attribute 1 to 3
  uint64_t used = 0, most = 0;  // bytes
};

// The pool of a handle, or null.
MemoryPool *find_pool(CUmemoryPool handle);

// Accounts for an allocation, and for its end; memory of no pool is skipped.
void pool_took(MemoryPool &pool, CUdeviceptr address, size_t size);
void pool_gave_back(CUdeviceptr address);
CUmemoryPool pool_of(CUdeviceptr address);

}  // namespace sx
