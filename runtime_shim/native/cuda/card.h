// Finds an AMD card for a program that carries its translation: no command has looked for one before it started.
#pragma once
#include <string>

namespace sx {

// The name or path of AMD's HIP library whose GPUs take a target that is carried, which is chosen then; "" where there
// is none.  Only where the kernel's driver is there (/dev/kfd).
std::string find_card();

// Whether all GPUs of a HIP library take one of the targets; chooses it.
bool card_takes(const char *library, const std::string &targets);

}  // namespace sx
