// Loops over independent pieces of work, on threads of their own.
#pragma once
#include <cstddef>
#include <functional>

namespace sx::fft {

// How many threads pieces of work are worth: one for each 64 Ki numbers, no more than the machine's cores, and no more
// than 16.
unsigned threads_for(size_t numbers);

// body(thread, index) for every index below `count`; the threads are numbered from 0.  If the system starts no thread,
// the caller does all the work.
void parallel(unsigned threads, size_t count, const std::function<void(unsigned, size_t)> &body);

}  // namespace sx::fft
