// The driver functions that kernels call: printf and assert write records to a queue, malloc and free work on a heap.
// lowering/rules/control/hostcall.py has the other side, and the layout of the blocks.
#pragma once
#include "driver.h"

namespace sx {

// The address that kernels get for the driver's function `name`; `unknown` where there is none or no memory.
uint64_t host_function(Device &device, const std::string &name, uint64_t unknown);

// malloc and free: their addresses are known once a kernel that uses them is launched.
bool is_heap_function(const std::string &name);
struct HeapAddresses {
  uint64_t malloc, free;
};
// The device's heap, which the first launch of a kernel that uses it makes, of the current context's limit.
CUresult use_heap(Device &device, HeapAddresses &out);
// Whether there was such a launch: the limit can no longer be changed.
bool heap_in_use(Device &device);
// The effective value of a heap limit, in bytes.
size_t heap_limit(const Device &device, size_t asked);

// Prints what kernels have written.  CUDA_ERROR_ASSERT if an assertion of one has failed, otherwise `result`.
CUresult flush(Device &device, CUresult result);

}  // namespace sx
