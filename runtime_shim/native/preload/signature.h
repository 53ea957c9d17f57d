// Known releases of the statically linked runtime, and the search for one in machine code.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace sx::preload {

// One public function of a runtime: its name and its address in memory.
struct Entry {
  std::string_view name;
  unsigned char *address;
};

// The code of a runtime of which not every public function is known: nothing of it may run but jumps to ours.
struct Sealed {
  unsigned char *start = nullptr;
  size_t length = 0;                     // 0: all are known
  std::vector<unsigned char *> quiet;    // functions that its start and end call, which do nothing instead
  std::vector<std::string_view> absent;  // those of a neighbouring release that are not known
};

// A runtime found in an image, or another library of NVIDIA's that is replaced.
struct Match {
  int major = 0;         // of a runtime: 11, 12 or 13, which of our libraries takes its place
  std::string library;   // of another: our file that takes its place, below own_directory()
  std::string release;   // "13.0.48 13.0.88": the public releases that have exactly this code
  std::vector<Entry> entries;
  std::deque<std::string> names;  // of entries that were found by symbol: theirs refer to these
  Sealed sealed;
};

// Looks for a known runtime in [start, start + size).  `near` is set where one was almost found: its anchor is
// there, but the code around it differs.
bool find_by_signature(const unsigned char *start, size_t size, Match &out, bool &near);

// Whether any public release of a major exports this name: 0, or bit 0 for 12, bit 1 for 13 and bit 2 for 11.
unsigned majors_of(std::string_view name);

}  // namespace sx::preload
