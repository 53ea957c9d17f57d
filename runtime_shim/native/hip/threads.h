// Threads of the library's own.
#pragma once

namespace sx {

// Starts a detached thread with every signal blocked (handlers belong to the application's threads); false
// where the system allows no more.
bool start_thread(const char *name, void (*body)());

}  // namespace sx
