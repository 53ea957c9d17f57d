// Writes past the end of an allocation that no fault tells of: an NVIDIA GPU maps 2 MiB at a time, and so does the
// window of compiled code.  They are told in the run's report; strict mode refuses them.
#pragma once
#include <cstdint>

namespace sx {

// Clears what lies between an allocation's end and the next one's place, as far as it is watched.
void overrun_watch(uint64_t base, uint64_t size, uint64_t span);

// A row of the report (SASSXLATE_REPORT) if something was written there since.
void overrun_check(uint64_t base, uint64_t size, uint64_t span);

}  // namespace sx
