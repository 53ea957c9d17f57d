#include "watchdog.h"

#include "launch.h"
#include "log.h"
#include "state.h"
#include "threads.h"

#include <algorithm>

namespace sx {
namespace {

using Clock = std::chrono::steady_clock;

struct Watch {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Launch *> launches;
  SxRuntime *runtime = nullptr;
  bool running = false;
};

Watch &watch() {
  static Watch *const instance = new Watch;
  return *instance;
}

// Under the mutex.  Compiled code reads the word in its loops.
void tell(Watch &w) {
  bool any = std::any_of(w.launches.begin(), w.launches.end(), [](Launch *l) { return l->overdue.load(); });
  __atomic_store_n(&w.runtime->stop, any ? 1u : 0u, __ATOMIC_RELAXED);
}

void look() {
  Watch &w = watch();
  std::unique_lock<std::mutex> lock(w.mutex);
  for (;;) {
    Clock::time_point now = Clock::now(), next = Clock::time_point::max();
    for (Launch *launch : w.launches) {
      if (launch->overdue.load()) continue;
      if (launch->deadline <= now) launch->overdue.store(true);
      else next = std::min(next, launch->deadline);
    }
    if (w.runtime) tell(w);
    if (next == Clock::time_point::max()) w.changed.wait(lock);
    else w.changed.wait_until(lock, next);
  }
}

}  // namespace

Watched::Watched(Launch &launch, SxRuntime &runtime) : launch_(nullptr) {
  double limit = config().kernel_time_limit;
  if (limit <= 0) return;
  launch_ = &launch;
  launch.deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit));
  Watch &w = watch();
  std::lock_guard<std::mutex> guard(w.mutex);
  w.runtime = &runtime;
  w.launches.push_back(&launch);
  if (!w.running) w.running = start_thread("sx-watchdog", look);
  if (!w.running) log_line("SX0655: cannot start a thread for SASSXLATE_KERNEL_TIME_LIMIT; launches have no time limit");
  w.changed.notify_one();
}

Watched::~Watched() {
  if (!launch_) return;
  Watch &w = watch();
  std::lock_guard<std::mutex> guard(w.mutex);
  w.launches.erase(std::find(w.launches.begin(), w.launches.end(), launch_));
  tell(w);
}

}  // namespace sx
