// Shared memory in bytes: an RDNA3 card's LDS, or on the emulated device what NVIDIA's devices of the advertised
// capability have.
#pragma once

namespace sx {

constexpr int kReservedShared = 1024;  // of each block, since sm_80

int shared_per_multiprocessor();

// Static and dynamic together, with cuFuncSetAttribute.
int shared_per_block();

}  // namespace sx
