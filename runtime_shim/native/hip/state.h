// The process's state of the emulated device: settings, errors, and the frame of every exported call.
#pragma once
#include "hip.h"

#include <new>

#define SX_API extern "C" __attribute__((visibility("default")))

namespace sx {

// Which code kernels run on the emulated device.
enum class Tier { Auto, Baseline, Llvm };

struct Config {
  Tier tier;              // SASSXLATE_TIER; strict mode and turns have the compiler's code only
  bool strict;            // SASSXLATE_STRICT: bounds of each allocation, images with strict checks
  bool interleave;        // SASSXLATE_INTERLEAVE: waves of a workgroup take turns, up to each access to memory
  uint64_t strict_seed;   // SASSXLATE_STRICT_SEED: of the perturbation of approximate functions
  unsigned threads;       // SASSXLATE_THREADS, default: processors of this process
  size_t fiber_stack;     // SASSXLATE_FIBER_STACK, bytes
  uint64_t arena_size;    // SASSXLATE_ARENA, bytes of address space
  uint64_t device_memory; // SASSXLATE_DEVICE_MEMORY, bytes advertised
  unsigned multiprocessors;  // SASSXLATE_MULTIPROCESSORS advertised
  double kernel_time_limit;  // SASSXLATE_KERNEL_TIME_LIMIT: seconds a launch may run; 0: no limit
  int64_t fuel;           // SASSXLATE_FUEL: loop back edges a wave runs before it gives way
};
const Config &config();

// First error of a kernel; every later call answers it, as CUDA's context does.  First one wins.
void set_sticky_error(int error);
int sticky_error();

// Reserves the arena.  Called by every exported function that needs the device.
int initialise();
// Whether this process has forked off one that had initialised.
bool forked();

enum CallFlags : unsigned {
  kNormal = 0,
  kIgnoreSticky = 1,  // works after a kernel has failed
  kNoInit = 2,        // neither initialises nor cares about fork
};

// Error of a call before it begins: 3 in the child of a fork, the sticky error, or failed start-up.
int begin_call(unsigned flags);
// Remembers the calling thread's last error.
int finish_call(int error);

// Frame of an exported function: nothing is thrown across the C ABI.
template <class Body>
hipError_t call(Body body, unsigned flags = kNormal) noexcept {
  int error;
  try {
    error = begin_call(flags);
    if (error == 0) error = body();
  } catch (const std::bad_alloc &) {
    error = hipErrorOutOfMemory;
  } catch (...) {
    error = hipErrorUnknown;
  }
  return finish_call(error);
}

}  // namespace sx
