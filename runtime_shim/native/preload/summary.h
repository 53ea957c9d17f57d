// What `sassxlate run` says at a program's end, said by a program that carries its translation (common/carried.h).
#pragma once

namespace sx::preload {

// At the start of the program: whatever it registers to run at its end runs before ours.
void begin_summary();

// The summary, now.
void say_summary();

}  // namespace sx::preload
