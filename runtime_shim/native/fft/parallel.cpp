#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <system_error>
#include <thread>
#include <vector>

namespace sx::fft {

unsigned threads_for(size_t numbers) {
  constexpr size_t kGrain = 64 << 10, kMost = 16;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::min({numbers / kGrain + 1, cores, kMost}));
}

void parallel(unsigned threads, size_t count, const std::function<void(unsigned, size_t)> &body) {
  std::atomic<size_t> next{0};
  auto work = [&](unsigned thread) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) body(thread, i);
  };
  const unsigned more = static_cast<unsigned>(std::min<size_t>(threads, std::max<size_t>(count, 1))) - 1;
  std::vector<std::thread> helpers;
  helpers.reserve(more);
  if (more) {
    // Signals are for the application's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (unsigned i = 0; i < more; ++i) helpers.emplace_back(work, i + 1);
    } catch (const std::system_error &) {
      static_cast<void>(helpers);  // those that there are, and the caller, do the work
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  work(0);
  for (std::thread &helper : helpers) helper.join();
}

}  // namespace sx::fft
