// Which code a kernel runs: the baseline's at once, the compiler's when it pays.
#pragma once
#include "launch.h"
#include "module.h"

namespace sx {

// Gives a function its first code, or an error, by SASSXLATE_TIER; under the function's mutex.
void first_code(Function &function);

// Waves of the launch have executed so many more instructions.
void count_executed(const Launch &launch, uint64_t instructions);

// The same of instructions that waves have executed after they left a partial image.
void count_left(const Launch &launch, uint64_t instructions);

}  // namespace sx
