#include "device_memory.h"
#include "mappings.h"

#include <algorithm>

namespace sx {
namespace {

constexpr uint64_t kProbe = 64u << 10;  // of registered memory: asked for at once

}  // namespace

Probes::Probes(uint64_t base, uint64_t size, bool read_only)
    : base_(base), end_(base + size), read_only_(read_only), seen_(2 * ((end_ - 1) / kProbe - base / kProbe + 1)) {}

bool Probes::probe(uint64_t part, bool write) const {
  uint64_t begin = std::max(base_, (base_ / kProbe + part) * kProbe);
  uint64_t end = std::min(end_, (base_ / kProbe + part + 1) * kProbe);
  return can_access(begin, end - begin, write);
}

bool Probes::allow(uint64_t address, uint64_t size, bool write, uint32_t launch) {
  if (write && read_only_) return false;
  uint64_t first = address / kProbe - base_ / kProbe, last = (address + size - 1) / kProbe - base_ / kProbe;
  for (uint64_t part = first; part <= last; ++part) {
    std::atomic<uint32_t> &seen = seen_[2 * part + (write ? 1 : 0)];
    if (seen.load(std::memory_order_relaxed) == launch) continue;
    // In a part with unmapped pages, the remaining pages may be used.
    if (!probe(part, write)) return can_access(address, size, write);
    seen.store(launch, std::memory_order_relaxed);
  }
  return true;
}

}  // namespace sx
