// What a pointer is, and which memory is managed.
#pragma once
#include "driver.h"

namespace sx {

struct PointerFacts {
  hipPointerAttribute_t hip = {};
  bool known = false;
  CUdeviceptr base = 0;  // of the allocation
  size_t size = 0;       // in bytes
};

PointerFacts facts_of(CUdeviceptr pointer);

struct MemoryRange {
  CUdeviceptr base = 0;
  size_t size = 0;  // in bytes

  bool holds(CUdeviceptr address) const { return address - base < size; }
};

// The memory of a module's variables on a device, of which some are managed; until it is freed or the device is reset.
void module_memory_made(CUdeviceptr base, const Device &device, std::vector<MemoryRange> managed);
void module_memory_gone(CUdeviceptr base);
// Whether such memory begins at `base`: it is not the application's to free.
bool is_module_memory(CUdeviceptr base);

// The managed allocation or variable that holds the pointer; of size 0 if there is none.
MemoryRange managed_memory(CUdeviceptr pointer);
// The range, made one of whole pages, as far as it is of the managed allocation or variable that holds the pointer; false if
// it is of more than that.
bool managed_part(CUdeviceptr pointer, size_t size, MemoryRange &out);
// Nothing was advised about memory that is new.
void managed_made(CUdeviceptr pointer, size_t size);

}  // namespace sx
