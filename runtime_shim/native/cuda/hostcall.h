// What kernels call of the driver: printf and assert write records to a queue, malloc and free work on a heap.
// lowering/rules/hostcall.py has the other side, and the layout of the blocks.
#pragma once
#include "driver.h"

namespace sx {

// The address that kernels get for the driver's function `name`; `unknown` where there is none or no memory.
uint64_t host_function(Device &device, const std::string &name, uint64_t unknown);

// Prints what kernels have written.  CUDA_ERROR_ASSERT if an assertion of one has failed, else `result`.
CUresult flush(Device &device, CUresult result);

}  // namespace sx
