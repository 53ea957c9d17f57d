#include "fiber.h"

#include "state.h"

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

// For sx_barrier: from a stack of a row to the next one's same place.
extern "C" {
__attribute__((visibility("hidden"), used)) size_t sx_stack_step = 0;
}

namespace sx {
namespace {

// Wider than the frame of any kernel ought to be: a frame that jumps over it would hit the next stack.
constexpr size_t kGuard = 256u << 10;
// Stacks begin at different lines of a page: otherwise the same places of all of them would share the host's cache sets, and
// a load would seem to depend on another wave's store to the same place.
constexpr size_t kColour = size_t{37} * 64;
constexpr size_t kPage = 4096;

struct Pool {
  std::mutex mutex;
  std::vector<FiberRow *> free;
};

Pool &pool() {
  static Pool *const instance = new Pool;
  return *instance;
}

// From the beginning of a stack's guard to that of the next one's.
size_t pitch() {
  static const size_t bytes = (config().fiber_stack + kGuard + kFibersOfRow * kColour + kPage - 1) / kPage * kPage;
  return bytes;
}

uint8_t *guard_of(const Fiber &fiber) { return fiber.row->mapping + fiber.number * pitch(); }

void begin(Fiber *fiber) {
  fiber->marks.enter();
  fiber->body(fiber);
}

}  // namespace

FiberRow *fiber_row_take() {
  {
    std::lock_guard<std::mutex> guard(pool().mutex);
    if (!pool().free.empty()) {
      FiberRow *row = pool().free.back();
      pool().free.pop_back();
      for (Fiber &fiber : row->fibers) fiber.body = nullptr;
      return row;
    }
    sx_stack_step = pitch() - kColour;
  }
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK;
  void *at = mmap(nullptr, kFibersOfRow * pitch(), PROT_NONE, flags, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  FiberRow *row = new FiberRow;
  row->mapping = static_cast<uint8_t *>(at);
  for (unsigned i = 0; i < kFibersOfRow; ++i) {
    row->fibers[i].row = row;
    row->fibers[i].number = i;
  }
  return row;
}

void fiber_row_give(FiberRow *row) {
  std::lock_guard<std::mutex> guard(pool().mutex);
  pool().free.push_back(row);
}

bool fiber_use(Fiber *fiber) {
  if (!fiber->usable) fiber->usable = mprotect(guard_of(*fiber) + kGuard, pitch() - kGuard, PROT_READ | PROT_WRITE) == 0;
  return fiber->usable;
}

void fiber_prepare(Fiber *fiber, void (*body)(Fiber *)) {
  fiber->body = body;
  // What fiber_switch and sx_fiber_start pop.  After that the stack is a multiple of 16, as before any call.
  struct Frame {
    void *rip, *fiber, *begin;
  };
  uint8_t *stack = guard_of(*fiber) + kGuard;
  uintptr_t top = reinterpret_cast<uintptr_t>(guard_of(*fiber) + pitch()) - 64 - fiber->number * kColour;
  fiber->marks.prepare(stack, pitch() - kGuard);
  Frame frame = {reinterpret_cast<void *>(&sx_fiber_start), fiber, reinterpret_cast<void *>(&begin)};
  fiber->sp = reinterpret_cast<void *>(top - sizeof frame);
  memcpy(fiber->sp, &frame, sizeof frame);
}

}  // namespace sx
