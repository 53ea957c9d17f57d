// Barriers of a workgroup: from one of its waves to the next without a way through the scheduler.
#include "sanitizers.h"
#include "state.h"
#include "wave.h"

namespace sx {
namespace {

// Where a wave goes that has arrived; nowhere, to the scheduler, or to another wave.
struct Way {
  Wave *from, *to;
};

Way arrive(SxWave *w) {
  Wave *wave = static_cast<Wave *>(w->host);
  Group &group = *wave->group;
  if (group.live == 1) return {nullptr, nullptr};  // no other wave to wait for
  wave->event = Event::Barrier;
  if (group.rounds) {
    if (wave->round) return {wave, wave->round};
    if (!group.launch->aborted.load(std::memory_order_relaxed)) return {wave, &after(group, *wave)};
    end_rounds(group, *wave);
    return {wave, nullptr};
  }
  if (group.arrived + 1 < group.live) {
    Wave *next = next_ready(group, *wave);
    if (!next) return {wave, nullptr};
    wave->state = WaveState::AtBarrier;
    ++group.arrived;
    return {wave, next};
  }
  if (group.launch->aborted.load(std::memory_order_relaxed)) return {wave, nullptr};
  release(group);
  if (group.live == group.waves.size() && after(group, *wave).index == group.first_wave && group.released++)
    begin_rounds(group, *wave);
  // There is another: more than one is live, and none of them waits now.
  for (Wave *next = wave;;) {
    next = &after(group, *next);
    if (next->state == WaveState::Ready) return {wave, next};
  }
}

}  // namespace

#if defined(SX_ASAN) || defined(SX_TSAN)

extern "C" void sx_barrier(SxWave *w, uint32_t) {
  Way way = arrive(w);
  if (way.to) {
    fiber_pass(way.from->fiber, way.to->fiber);
  } else if (way.from) {
    way.from->group->last = way.from;
    fiber_suspend(way.from->fiber);
  }
}

#else

// What a switch saves to, and what it loads; null where the wave goes on.
struct SxSwitch {
  void **save;
  void *load;
};

extern "C" __attribute__((visibility("hidden"), used)) SxSwitch sx_barrier_way(SxWave *w) {
  Way way = arrive(w);
  if (!way.from) return {nullptr, nullptr};
  Fiber *fiber = way.from->fiber;
  if (way.to) {
    way.to->fiber->back = fiber->back;
    return {&fiber->sp, way.to->fiber->sp};
  }
  way.from->group->last = way.from;
  return {&fiber->sp, fiber->back};
}

// void sx_barrier(SxWave *, uint32_t): as fiber_switch where the wave waits.  The call that the processor expects a return
// from is that of the wave that arrived last.  Where that is at another barrier, a return would go astray and a jump does
// not, whose target is foreseen by the branches before it.  rcx: where the other wave returns to; 0 if it was not here.
// In rounds (Wave::round) all there is to do is to change stacks: the other wave is at the same place of this function, and
// where its stack pointer is as foreseen (FiberRow), the processor goes on before it has loaded that.  A chain of dependent
// loads (the next wave's structure, its fiber, the registers on its stack) cost more than the work many waves do between barriers.
static_assert(offsetof(Wave, regs) == 0 && offsetof(Wave, fiber) == 0x308 && offsetof(Wave, round) == 0x310);
static_assert(offsetof(Fiber, sp) == 0);
asm(R"(
  .text
  .hidden sx_barrier
  .globl sx_barrier
  .type sx_barrier, @function
  .p2align 4
sx_barrier:
  .cfi_startproc
  movq 0x310(%rdi), %rax
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  .cfi_adjust_cfa_offset 48
  testq %rax, %rax
  je 4f
  movq 0x308(%rax), %rdx
  movq 0x308(%rdi), %rax
  leaq 1f(%rip), %rsi
  movq 48(%rsp), %rcx
  pushq %rsi
  movq %rsp, (%rax)
  movq sx_stack_step(%rip), %rsi
  addq %rsp, %rsi
  cmpq (%rdx), %rsi
  jne 5f
  leaq 8(%rsi), %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  cmpq %rcx, (%rsp)
  jne 3f
  ret
5:
  movq (%rdx), %rsp
  addq $8, %rsp
  jmp 1f
4:
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call sx_barrier_way
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  testq %rax, %rax
  movq 48(%rsp), %rcx
  je 1f
  leaq 1f(%rip), %rsi
  pushq %rsi
  movq %rsp, (%rax)
  movq %rdx, %rsp
  popq %rsi
  jmpq *%rsi
1:
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  .cfi_adjust_cfa_offset -48
  testq %rcx, %rcx
  je 2f
  cmpq %rcx, (%rsp)
  jne 3f
2:
  ret
3:
  popq %rcx
  jmpq *%rcx
  .cfi_endproc
  .size sx_barrier, .-sx_barrier
)");

#endif

}  // namespace sx
