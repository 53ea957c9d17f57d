#include "state.h"

#include "kernarg.h"
#include "log.h"
#include "memory.h"
#include "stream.h"

#include <atomic>
#include <mutex>
#include <pthread.h>

namespace sx {
namespace {

constexpr int kErrorNotPermitted = 800;  // CUDA's number

std::atomic<int> g_sticky{0};
std::atomic<bool> g_initialised{false};
std::atomic<bool> g_forked{false};
thread_local int t_last_error = 0;

void after_fork_in_child() {
  if (g_initialised.load()) g_forked.store(true);
}

}  // namespace

void set_sticky_error(int error) {
  int none = 0;
  g_sticky.compare_exchange_strong(none, error);
}

int sticky_error() { return g_sticky.load(std::memory_order_acquire); }

bool forked() { return g_forked.load(); }

int initialise() {
  static std::once_flag once;
  static int result = 0;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, after_fork_in_child);
    result = memory_start() && kernarg_start() ? 0 : hipErrorOutOfMemory;
    g_initialised.store(true);
  });
  return result;
}

int begin_call(unsigned flags) {
  if (flags & kNoInit) return 0;
  // Threads do not survive a fork, so neither does the device (CUDA answers 3 as well).
  if (g_forked.load(std::memory_order_relaxed)) return hipErrorNotInitialized;
  if (!g_initialised.load(std::memory_order_acquire)) {
    if (int error = initialise()) return error;
  }
  // A callback runs on the thread that works a stream off: waiting there would deadlock.
  if (in_callback()) return kErrorNotPermitted;
  return flags & kIgnoreSticky ? 0 : sticky_error();
}

int finish_call(int error) {
  if (error) t_last_error = error;
  return error;
}

}  // namespace sx

SX_API hipError_t hipGetLastError(void) {
  int error = sx::t_last_error;
  sx::t_last_error = 0;
  return error;
}

SX_API hipError_t hipPeekAtLastError(void) { return sx::t_last_error; }
