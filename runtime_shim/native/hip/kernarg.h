// Kernel argument segments, in the arena.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sx {

// Takes the first piece of the arena; false if there is no memory.
bool kernarg_start();

// A block of at least `size` zeroed bytes, 256-aligned; 0 if device memory is exhausted.  `slot` is what to
// give back.
uint64_t kernarg_take(size_t size, size_t &slot);
void kernarg_give(uint64_t address, size_t slot);

}  // namespace sx
