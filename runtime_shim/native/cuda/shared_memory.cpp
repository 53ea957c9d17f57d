// Shared memory of a multiprocessor and of a block.
#include "shared_memory.h"

#include "capability.h"
#include "driver.h"

namespace sx {
namespace {

constexpr int kOfACard = 64 << 10;  // LDS of an RDNA3 workgroup

// CUDA Programming Guide, technical specifications per compute capability.
int specified(int arch) {
  if (arch < 80) return 64 << 10;
  if (arch == 80 || arch == 87) return 164 << 10;
  if (arch < 90 || arch >= 120) return 100 << 10;
  return 228 << 10;
}

}  // namespace

int shared_per_multiprocessor() {
  const Hip &library = hip();
  if (!library.emulated || library.emulated_lds < static_cast<uint32_t>(specified(capability()))) return kOfACard;
  return specified(capability());
}

int shared_per_block() { return shared_per_multiprocessor() - kReservedShared; }

}  // namespace sx
