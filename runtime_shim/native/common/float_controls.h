// A thread's floating-point control words, which it inherits from the thread that made it: applications round otherwise,
// or flush denormals (all that -ffast-math links does), and a device knows nothing of that.
#pragma once
#include <cstdint>

namespace sx {

// The calling thread's at their defaults (rounding to nearest, denormals kept, exceptions masked) while this lives; then
// what they were.  Threads that are made meanwhile have the defaults, too.
class FloatControls {
 public:
  FloatControls() {
    constexpr uint32_t kMxcsr = 0x1f80;
    constexpr uint16_t kX87 = 0x037f;
    asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr_), "=m"(x87_));
    asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(kMxcsr), "m"(kX87));
  }
  ~FloatControls() { asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr_), "m"(x87_)); }
  FloatControls(const FloatControls &) = delete;
  FloatControls &operator=(const FloatControls &) = delete;

 private:
  uint32_t mxcsr_ = 0;
  uint16_t x87_ = 0;
};

}  // namespace sx
