// What copies and fills may do with virtual memory, as cuMemMap and cuMemSetAccess said.
//
// AMD's library knows these rights of kernels alone: a copy of its may write what is mapped for reading only, or access
// what has no access at all and end the process by a signal (HIP 6.4.3).  NVIDIA's refuses the call.
#pragma once
#include <cstddef>

namespace sx {

void access_reserved(const void *base, size_t size);
void access_freed(const void *base);
void access_mapped(const void *base, size_t size);  // no access yet
void access_unmapped(const void *base, size_t size);
// `flags`: CUmemAccess_flags of any device.
void access_set(const void *base, size_t size, unsigned flags);

// Whether all of the range may be read, or written to.  Memory that is not reserved here is not this question's.
bool may_access(const void *base, size_t size, bool write);

}  // namespace sx
