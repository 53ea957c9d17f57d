// Annotations of fibers for the sanitizers; empty in other builds.
//
// AddressSanitizer has to know which stack is in use, and that what an abandoned fiber had on its stack is no longer
// there; ThreadSanitizer takes a fiber for a thread of its own, whose switches order memory.
#pragma once
#include "sanitizers.h"

#include <cstddef>

#if defined(SX_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(SX_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace sx {

// The calls come in this order: prepare, then for each resumption leave_thread (on the thread), enter (on the fiber),
// leave (on the fiber), enter_thread (on the thread).  In place of leave, leave_to (on the fiber) goes to another fiber,
// which has left before and enters next.
#if defined(SX_ASAN)
class FiberMarks {
 public:
  void prepare(void *stack, size_t size) {
    stack_ = stack;
    size_ = size;
    fake_ = nullptr;
    passed_ = false;
    __asan_unpoison_memory_region(stack, size);
  }
  void leave_thread() { __sanitizer_start_switch_fiber(&thread_fake_, stack_, size_); }
  void enter() {
    const void *stack = nullptr;
    size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_, &stack, &size);
    if (!passed_) {
      thread_stack_ = stack;
      thread_size_ = size;
    }
    passed_ = false;
  }
  void leave() { __sanitizer_start_switch_fiber(&fake_, thread_stack_, thread_size_); }
  void leave_to(FiberMarks &next) {
    next.thread_stack_ = thread_stack_;
    next.thread_size_ = thread_size_;
    next.passed_ = true;
    __sanitizer_start_switch_fiber(&fake_, next.stack_, next.size_);
  }
  void enter_thread() { __sanitizer_finish_switch_fiber(thread_fake_, nullptr, nullptr); }

 private:
  void *stack_ = nullptr, *fake_ = nullptr, *thread_fake_ = nullptr;
  const void *thread_stack_ = nullptr;
  size_t size_ = 0, thread_size_ = 0;
  bool passed_ = false;  // the next `enter` comes from another fiber
};
#elif defined(SX_TSAN)
class FiberMarks {
 public:
  void prepare(void *, size_t) {
    if (fiber_) __tsan_destroy_fiber(fiber_);
    fiber_ = __tsan_create_fiber(0);
  }
  void leave_thread() {
    thread_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber_, 0);
  }
  void enter() {}
  void leave() { __tsan_switch_to_fiber(thread_, 0); }
  void leave_to(FiberMarks &next) {
    next.thread_ = thread_;
    __tsan_switch_to_fiber(next.fiber_, 0);
  }
  void enter_thread() {}

 private:
  void *fiber_ = nullptr, *thread_ = nullptr;
};
#else
class FiberMarks {
 public:
  void prepare(void *, size_t) {}
  void leave_thread() {}
  void enter() {}
  void leave() {}
  void leave_to(FiberMarks &) {}
  void enter_thread() {}
};
#endif

}  // namespace sx
