// Files without a name for memory that several processes map.
#pragma once
#include <cstdint>

namespace sx {

// A new one, of zeros, whose size nothing can change: a smaller file would take pages from those who have it mapped.
// -1 where there is none to be had.
int shared_file(uint64_t size);

// The bytes of a file that `shared_file` made, here or in another process, and that may be written; 0 of anything else.
uint64_t shared_size(int file);

}  // namespace sx
