// The locks under which kernels change 128 bits at once (lowering/rules/memory/atomic128.py).
#pragma once
#include "driver.h"

namespace sx {

// The device address of kLocks words, each 0 if no lane has the lock.
CUresult lock_table(Device &device, uint64_t &address);

}  // namespace sx
