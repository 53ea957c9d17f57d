// Fibers: the stacks that waves run on, and the switch between them.
#pragma once
#include "fiber_marks.h"

#include <cstddef>
#include <cstdint>

namespace sx {

struct FiberRow;

// A stack with what is needed to continue.  While a fiber runs, `back` is where it came from.
struct Fiber {
  void *sp = nullptr;    // its registers, saved on its own stack
  void *back = nullptr;  // the same of the thread that resumed it
  void (*body)(Fiber *) = nullptr;
  void *user = nullptr;
  FiberRow *row = nullptr;
  unsigned number = 0;  // in its row
  bool usable = false;  // whether its stack may be accessed
  FiberMarks marks;
};

// Fibers whose stacks are equally far apart, as many as a workgroup has waves.  Where they wait at the same place of a function,
// each one's stack pointer is the one before's plus sx_stack_step, which sx_barrier foresees.
constexpr unsigned kFibersOfRow = 32;
struct FiberRow {
  Fiber fibers[kFibersOfRow];
  uint8_t *mapping = nullptr;
};

// A row whose stacks have config().fiber_stack bytes and a guard below each, new or from the pool; nullptr where there is no
// address space.
FiberRow *fiber_row_take();
// Puts a row back into the pool, whatever its fibers were doing.
void fiber_row_give(FiberRow *row);
// Before fiber_prepare; false where memory is exhausted.
bool fiber_use(Fiber *fiber);

// Makes the fiber begin `body` (which must never return) when it is next resumed.
void fiber_prepare(Fiber *fiber, void (*body)(Fiber *));

// Saves what the System V ABI keeps over a call on the stack, whose address goes to *save, and continues from `load`, which
// another switch or fiber_prepare made.  Inline, and by a jump, so that no call is pending where fibers change but those
// that wave_body and compiled code make: the processor foresees returns by the calls before them, which are another
// fiber's, but the same ones.  (By a call and a return, two to four returns of each wave went astray.)
// Not the control words: compiled code does not change them, and FloatControls has set them for all fibers.
__attribute__((always_inline)) inline void fiber_switch(void **save, void *load) {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the red zone
      "pushq %%rbp\n\t"
      "pushq %%rbx\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "xorl %%ecx, %%ecx\n\t"  // for sx_barrier
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "1:\n\t"
      "popq %%rbx\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp"
      : "+D"(save), "+S"(load)
      :
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
        "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
}

// After code of waves.  The baseline's stencils leave values in the upper halves of the vector registers, which compiled code
// clears where it returns: each SSE instruction of this library, or of the application in whose thread waves run, would
// wait for the last one that wrote its register, to keep them (up to three times the time of a loop of floats).
__attribute__((always_inline)) inline void clear_upper_halves() { asm volatile("vzeroupper"); }

// Runs the fiber until it suspends itself.
__attribute__((always_inline)) inline void fiber_resume(Fiber *fiber) {
  fiber->marks.leave_thread();
  fiber_switch(&fiber->back, fiber->sp);
  clear_upper_halves();  // of a wave that waits, or has failed
  fiber->marks.enter_thread();
}

// Called on the fiber: goes back to fiber_resume's caller.
__attribute__((always_inline)) inline void fiber_suspend(Fiber *fiber) {
  fiber->marks.leave();
  fiber_switch(&fiber->sp, fiber->back);
  fiber->marks.enter();
}

// Called on `fiber`: suspends it and continues with `next`, which was prepared, suspended itself or passed on earlier;
// fiber_resume's caller then gets control from `next`.
__attribute__((always_inline)) inline void fiber_pass(Fiber *fiber, Fiber *next) {
  next->back = fiber->back;
  fiber->marks.leave_to(next->marks);
  fiber_switch(&fiber->sp, next->sp);
  fiber->marks.enter();
}

}  // namespace sx
