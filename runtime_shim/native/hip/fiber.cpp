#include "fiber.h"

#include "state.h"

#include <atomic>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <vector>

#if !defined(__x86_64__)
#error "the emulated device runs on x86-64 only"
#endif

// void sx_switch(void **save, void *load): stores the callee-saved registers of the System V ABI (rbx, rbp, r12 to
// r15) on the stack, its address in *save, and continues from `load`, which an earlier call or fiber_prepare made.
// Not the control words: compiled code does not change them, and FloatControls has set them for all fibers.
asm(R"(
  .text
  .hidden sx_switch
  .globl sx_switch
  .type sx_switch, @function
  .p2align 4
sx_switch:
  .cfi_startproc
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .cfi_endproc
  .size sx_switch, .-sx_switch

  .hidden sx_fiber_start
  .globl sx_fiber_start
  .type sx_fiber_start, @function
sx_fiber_start:
  .cfi_startproc
  .cfi_undefined rip
  xorl %ebp, %ebp
  movq %r12, %rdi
  call *%r13
  ud2
  .cfi_endproc
  .size sx_fiber_start, .-sx_fiber_start
)");

extern "C" void sx_switch(void **save, void *load);
extern "C" void sx_fiber_start();

namespace sx {
namespace {

// Wider than the frame of any kernel ought to be: a frame that jumps over it would hit the next stack.
constexpr size_t kGuard = 256u << 10;
// Stacks begin at different lines of a page: otherwise the same places of all of them would share the host's cache sets, and
// a load would seem to depend on another wave's store to the same place.
constexpr size_t kLines = 64, kLine = 64, kStep = 37;
constexpr uint32_t kMxcsrDefault = 0x1f80;
constexpr uint16_t kX87Default = 0x037f;

struct Pool {
  std::mutex mutex;
  std::vector<Fiber *> free;
};

Pool &pool() {
  static Pool *const instance = new Pool;
  return *instance;
}

void begin(Fiber *fiber) {
  fiber->marks.enter();
  fiber->body(fiber);
}

}  // namespace

FloatControls::FloatControls() {
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr_), "=m"(x87_));
  asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(kMxcsrDefault), "m"(kX87Default));
}

FloatControls::~FloatControls() { asm volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(mxcsr_), "m"(x87_)); }

Fiber *fiber_take() {
  {
    std::lock_guard<std::mutex> guard(pool().mutex);
    if (!pool().free.empty()) {
      Fiber *fiber = pool().free.back();
      pool().free.pop_back();
      return fiber;
    }
  }
  size_t size = config().fiber_stack + kGuard;
  void *at = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  uint8_t *base = static_cast<uint8_t *>(at);
  if (mprotect(base + kGuard, size - kGuard, PROT_READ | PROT_WRITE) != 0) {
    munmap(at, size);
    return nullptr;
  }
  Fiber *fiber = new Fiber;
  fiber->mapping = base;
  fiber->mapping_size = size;
  static std::atomic<size_t> made{0};
  fiber->colour = made.fetch_add(1, std::memory_order_relaxed) * kStep % kLines * kLine;
  return fiber;
}

void fiber_give(Fiber *fiber) {
  std::lock_guard<std::mutex> guard(pool().mutex);
  pool().free.push_back(fiber);
}

void fiber_prepare(Fiber *fiber, void (*body)(Fiber *)) {
  fiber->body = body;
  // The frame that sx_switch pops: r15, r14, r13 (begin), r12 (fiber), rbx, rbp, return address.  After the return the
  // stack is a multiple of 16, as before any call.
  struct Frame {
    void *r15, *r14, *r13, *r12, *rbx, *rbp, *rip;
  };
  uintptr_t top = reinterpret_cast<uintptr_t>(fiber->mapping + fiber->mapping_size) - 64 - fiber->colour;
  fiber->marks.prepare(fiber->mapping + kGuard, fiber->mapping_size - kGuard);
  Frame frame = {nullptr, nullptr, reinterpret_cast<void *>(&begin), fiber,
                 nullptr, nullptr, reinterpret_cast<void *>(&sx_fiber_start)};
  fiber->sp = reinterpret_cast<void *>(top - sizeof frame);
  memcpy(fiber->sp, &frame, sizeof frame);
}

void fiber_resume(Fiber *fiber) {
  fiber->marks.leave_thread();
  sx_switch(&fiber->back, fiber->sp);
  fiber->marks.enter_thread();
}

void fiber_pass(Fiber *fiber, Fiber *next) {
  next->back = fiber->back;
  fiber->marks.leave_to(next->marks);
  sx_switch(&fiber->sp, next->sp);
  fiber->marks.enter();
}

void fiber_suspend(Fiber *fiber) {
  fiber->marks.leave();
  sx_switch(&fiber->sp, fiber->back);
  fiber->marks.enter();
}

}  // namespace sx
