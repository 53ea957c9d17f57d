// The mappings of this process, as the system lists them.
#pragma once
#include <cstdint>

namespace sx {

struct Mapping {
  uintptr_t begin, end;
  bool read, write, shared;
  bool file;  // of a file (or of the system's own)
};

// Calls `visit` for each mapping in the order of addresses until it returns false; false if the list cannot be read.
bool each_mapping(bool (*visit)(const Mapping &mapping, void *user), void *user);

// Whether every page that [address, address + size) touches could be read, or written, at the moment of the call: it
// asks the system, which brings the pages into memory as an access would (madvise, MADV_POPULATE_*, Linux 5.14), and
// reads the list of mappings if that is not available.  No signal can come of it.
bool can_access(uintptr_t address, uint64_t size, bool write);

// Whether the mappings of all these pages allow reading (`read`) and writing (`write`), and a file has a page for each.
bool mapped_for(uintptr_t address, uint64_t size, bool read, bool write);

}  // namespace sx
