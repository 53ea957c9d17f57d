// The parts of strict mode on the emulated device: seeded undefined values, another order of execution, and messages.
#pragma once
#include "code_object.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace sx {

// A uniformly distributed number from the run's seed and two others.
uint64_t strict_mix(uint64_t a, uint64_t b = 0);

// The seed that compiled code sees: never 0, which would mean none.
uint64_t strict_wave_seed();

// The contents of memory that was never written: a pattern from the seed and `salt`.
void strict_fill(void *at, size_t size, uint64_t salt);

// The workgroup to run in place of the index-th: a permutation within each run of 64, since programs that
// look back to earlier workgroups may count on their having begun before.
uint64_t strict_order(uint64_t index, uint64_t total);

// The text for the code of a strict fault, as lowering/emulate/strict_hazards.py makes them.
std::string strict_text(uint64_t code);

}  // namespace sx
