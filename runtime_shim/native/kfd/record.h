// Dispatches written to files, so that any other executor can run them again and be compared (tools/witness/executor).
#pragma once
#include "card.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace sx::kfd {

constexpr uint64_t kPage = 4096;

// One dispatch: memory before its kernel runs is kept here, what the kernel has changed is found after it.  Does
// nothing unless SASSXLATE_RECORD_DISPATCHES names a folder.
class Record {
 public:
  Record();
  // Writes the file, of a kernel that ran to its end.
  void write(const Packet &packet, uint64_t address, const std::string &kernel, uint32_t lds, uint32_t scratch) const;

 private:
  using Pages = std::map<uint64_t, std::array<uint8_t, kPage>>;
  // The pages that are not all zero or, with `since`, that are not as they were then.
  static Pages pages(const Pages *since);

  std::string folder_;
  Pages before_;
};

}  // namespace sx::kfd
