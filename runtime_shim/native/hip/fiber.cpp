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

// Where a prepared fiber begins: what it is to call, and with what, lies on its stack.
asm(R"(
  .text
  .hidden sx_fiber_start
  .globl sx_fiber_start
  .type sx_fiber_start, @function
sx_fiber_start:
  .cfi_startproc
  .cfi_undefined rip
  popq %rdi
  popq %rax
  xorl %ebp, %ebp
  call *%rax
  ud2
  .cfi_endproc
  .size sx_fiber_start, .-sx_fiber_start
)");

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
  // What fiber_switch and sx_fiber_start pop.  After that the stack is a multiple of 16, as before any call.
  struct Frame {
    void *rip, *fiber, *begin;
  };
  uintptr_t top = reinterpret_cast<uintptr_t>(fiber->mapping + fiber->mapping_size) - 64 - fiber->colour;
  fiber->marks.prepare(fiber->mapping + kGuard, fiber->mapping_size - kGuard);
  Frame frame = {reinterpret_cast<void *>(&sx_fiber_start), fiber, reinterpret_cast<void *>(&begin)};
  fiber->sp = reinterpret_cast<void *>(top - sizeof frame);
  memcpy(fiber->sp, &frame, sizeof frame);
}

}  // namespace sx
