// Registered host memory in the operations of streams.
#pragma once
#include <cstddef>

namespace sx {

// Whether an operation may use these bytes when it runs: memory that was registered may have been unmapped or protected
// since.  If it was, logs it and gives the device error 700, as after a kernel's access.  Memory that
// was never registered is the caller's own affair: NVIDIA's library ends with the signal, too (measured).
bool reach(const void *pointer, size_t size, bool write);

}  // namespace sx
