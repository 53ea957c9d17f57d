#include "tiers.h"

#include "baseline.h"
#include "image.h"
#include "log.h"
#include "state.h"
#include "threads.h"

#include <condition_variable>
#include <deque>

namespace sx {
namespace {

// The compiler takes about 0.4 ms of CPU time an instruction, on a processor that may be idle; its code then saves about
// 0.6 ns of each that a wave executes.
constexpr uint64_t kHot = 100000;  // executed, for each instruction of the kernel

struct Wanted {
  std::shared_ptr<Module> module;  // the function's
  Function *function;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable more;
  std::deque<Wanted> wanted;
  unsigned threads = 0;
  unsigned idle = 0;
};

Queue &queue() {
  static Queue *const one = new Queue;
  return *one;
}

void run_image(Function &function) {
  function.entry.store(function.image.entry, std::memory_order_release);
  function.runs.store(function.image.runs, std::memory_order_release);
}

// Counters of one kernel are one file, whichever code counts.
void take_better(Function &function, HostImage &better) {
  std::lock_guard<std::mutex> guard(function.mutex);
  HostImage &image = function.image;
  image.code = better.code;
  image.code_size = better.code_size;
  image.entry = better.entry;
  image.runs = better.runs;
  better.code = nullptr;
  better.counts = Counts();
  run_image(function);
}

void improve() {
  Queue &q = queue();
  for (;;) {
    Wanted next;
    {
      std::unique_lock<std::mutex> lock(q.mutex);
      ++q.idle;
      q.more.wait(lock, [&] { return !q.wanted.empty(); });
      --q.idle;
      next = std::move(q.wanted.front());
      q.wanted.pop_front();
    }
    HostImage better;
    better.counts = next.function->baseline.counts;
    bool done = better_image(*next.module->code, *next.function->info, better);
    if (done) take_better(*next.function, better);
    better.counts = Counts();
  }
}

// The compiler was stopped at the kernel: it runs the baseline's code, or what the compiler makes without optimisation.
void without_compiler(Function &function, const Stopped &stopped) {
  const CodeObject &code = *function.module->code;
  const KernelInfo &info = *function.info;
  std::string why;
  bool compiled = config().strict || config().interleave;
  bool copied = !compiled && load_baseline(code, info, true, function.baseline, why);
  if (!stopped.known)
    log_line("%s; it runs %s", stopped.line.c_str(), copied ? "the baseline tier's code" : "code that is not optimised");
  if (copied) {
    function.entry.store(function.baseline.entry, std::memory_order_release);
    return;
  }
  load_quick_image(code, info, function.image);
  run_image(function);
}

}  // namespace

void first_code(Function &function) {
  const CodeObject &code = *function.module->code;
  Tier tier = config().tier;
  if (tier == Tier::Auto && cached_image(code, *function.info, function.image)) {
    run_image(function);
    return;
  }
  std::string why;
  if (tier != Tier::Llvm && load_baseline(code, *function.info, tier == Tier::Baseline, function.baseline, why)) {
    if (tier == Tier::Auto) function.hot.store(kHot * function.baseline.instructions);
    function.entry.store(function.baseline.entry, std::memory_order_release);
    return;
  }
  if (tier == Tier::Baseline)
    log_line("SX0696: kernel %s: compiled, since the baseline tier has no code for it: %s", function.info->name.c_str(),
             why.c_str());
  Stopped stopped;
  load_image(code, *function.info, function.image, stopped);
  if (stopped) return without_compiler(function, stopped);
  run_image(function);
}

void count_executed(const Launch &launch, uint64_t instructions) {
  Function &function = *launch.function;
  uint64_t hot = function.hot.load(std::memory_order_relaxed);
  if (!hot || function.executed.fetch_add(instructions, std::memory_order_relaxed) + instructions < hot) return;
  if (!function.hot.exchange(0)) return;  // another worker has asked
  Queue &q = queue();
  std::lock_guard<std::mutex> guard(q.mutex);
  q.wanted.push_back({launch.module, &function});
  // Each thread waits for one of the service's workers, of which there are as many as processors.
  if (q.wanted.size() > q.idle && q.threads < config().threads && start_thread("sx-tier", improve)) ++q.threads;
  q.more.notify_one();
}

}  // namespace sx
