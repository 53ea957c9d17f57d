// Virtual memory as cuMemMap and its relatives left it: what they may be asked for, and what copies and fills may do.
//
// AMD's library takes calls for what they are not: HIP 6.4.3 and 7.2.4 end the process where a mapping goes beyond its
// reservation, 6.4.3 changes all of a mapping of which a part was named, and both know rights of kernels alone, so that a
// copy may write what is mapped for reading only.  Here such calls get the errors that an H100's driver gives them.
#pragma once
#include <cstddef>
#include <vector>

#include "driver.h"

namespace sx {

struct Range {
  void *base;
  size_t size;
};

void access_reserved(const void *base, size_t size);
void access_freed(const void *base);
void access_mapped(const void *base, size_t size);  // no access yet
void access_unmapped(const void *base, size_t size);
// `flags`: CUmemAccess_flags of any device.
void access_set(const void *base, size_t size, unsigned flags);

// Memory: made, and retained once more at an address where it is mapped; `released` is false of what is not held.
void memory_made(CUmemGenericAllocationHandle memory, size_t size);
void memory_retained(CUmemGenericAllocationHandle memory, const void *pointer);
bool memory_released(CUmemGenericAllocationHandle memory);

// The answers to calls that AMD's library is not asked about; CUDA_SUCCESS lets it decide.
CUresult may_free(const void *base, size_t size);
CUresult may_map(const void *base, size_t size, size_t offset, CUmemGenericAllocationHandle memory);
// Whether all of the range is reserved and none of it mapped.
bool nothing_mapped(const void *base, size_t size);
// The mappings in a reserved range, in order; none if one is only partly in it.
std::vector<Range> whole_mappings(const void *base, size_t size);

// Whether all of the range may be read, or written to.  Memory that is not reserved here is not this question's.
bool may_access(const void *base, size_t size, bool write);

}  // namespace sx
