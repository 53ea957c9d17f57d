// Fibers: the stacks that waves run on, and the switch between them.
#pragma once
#include "fiber_marks.h"

#include <cstddef>
#include <cstdint>

namespace sx {

// A stack with what is needed to continue.  While a fiber runs, `back` is where it came from.
struct Fiber {
  void *sp = nullptr;    // its registers, saved on its own stack
  void *back = nullptr;  // the same of the thread that resumed it
  void (*body)(Fiber *) = nullptr;
  void *user = nullptr;
  uint8_t *mapping = nullptr;
  size_t mapping_size = 0;
  size_t colour = 0;  // bytes that its stack begins below the mapping's end
  FiberMarks marks;
};

// A fiber with a stack of config().fiber_stack bytes and a guard below, new or from the pool; nullptr
// where memory is exhausted.  Its state is undefined until fiber_prepare.
Fiber *fiber_take();
// Puts a fiber back into the pool, whatever it was doing.
void fiber_give(Fiber *fiber);

// Makes the fiber begin `body` (which must never return) when it is next resumed.
void fiber_prepare(Fiber *fiber, void (*body)(Fiber *));

// Runs the fiber until it suspends itself.
void fiber_resume(Fiber *fiber);
// Called on the fiber: goes back to fiber_resume's caller.
void fiber_suspend(Fiber *fiber);
// Called on `fiber`: suspends it and continues with `next`, which was prepared, suspended itself or passed on earlier;
// fiber_resume's caller then gets control from `next`.
void fiber_pass(Fiber *fiber, Fiber *next);

// The calling thread's floating-point control words at their defaults (rounding to nearest, denormals kept, exceptions
// masked) while this lives; then what they were.  Fibers run with the thread's.
class FloatControls {
 public:
  FloatControls();
  ~FloatControls();
  FloatControls(const FloatControls &) = delete;
  FloatControls &operator=(const FloatControls &) = delete;

 private:
  uint32_t mxcsr_ = 0;
  uint16_t x87_ = 0;
};

}  // namespace sx
