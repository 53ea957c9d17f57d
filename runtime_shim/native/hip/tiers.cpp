#include "tiers.h"

#include "baseline.h"
#include "image.h"
#include "log.h"
#include "state.h"
#include "threads.h"
#include "trusted.h"

#include <algorithm>
#include <condition_variable>
#include <deque>

namespace sx {
namespace {

// The compiler takes about 0.4 ms of CPU time an instruction, on a processor that may be idle; its code then saves about
// 0.6 ns of each that a wave executes.
constexpr uint64_t kHot = 100000;  // executed, for each instruction of the kernel

// Runs may be too short to make a kernel hot, each of them: a file of the cache has a byte for each of so many parts of kHot
// that they have executed.
constexpr unsigned kParts = 32;

// A kernel is compiled at most so often without the blocks that were not entered, then as a whole.
constexpr unsigned kPartialVersions = 4;
constexpr size_t kStackOfBoth = 1u << 20;  // compiled code takes at most a third of it where it may be left

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
  function.partial.store(function.image.partial, std::memory_order_relaxed);
}

uint64_t part_of_hot(const Function &function) {
  return kHot * std::max(function.baseline.instructions, 1u) / kParts;
}

// Counts from now on for the baseline's code, or for what is left out of the partial image of `part`.
void begin_counting(Function &function, const std::string &part) {
  const uint64_t now = function.executed.load();
  function.warmth = warmth_path(*function.module->code, *function.info, part);
  const uint64_t before = function.warmth.empty() ? 0 : std::min<uint64_t>(trusted_size(function.warmth), kParts);
  function.warm.store(function.warmth.empty() ? 0 : now + part_of_hot(function));
  function.hot.store(std::max<uint64_t>(now + part_of_hot(function) * (kParts - before), 1));
}

void tell_cache(Function &function, uint64_t executed) {
  std::string path, parts;
  {
    std::lock_guard<std::mutex> guard(function.mutex);
    const uint64_t warm = function.warm.load();
    if (!warm || executed < warm) return;  // another worker has told it, or other code counts now
    const uint64_t more = (executed - warm) / part_of_hot(function) + 1;
    parts.assign(more, '.');
    function.warm.store(warm + more * part_of_hot(function));
    path = function.warmth;
  }
  append_trusted(path, parts, kParts);
}

// Counters of one kernel are one file, whichever code counts.
void take(Function &function, HostImage &better, const std::string &part) {
  HostImage &image = function.image;
  if (image.code) {
    function.former.push_back(std::make_unique<HostImage>());
    function.former.back()->code = image.code;
    function.former.back()->code_size = image.code_size;
  }
  image.code = better.code;
  image.code_size = better.code_size;
  image.entry = better.entry;
  image.runs = better.runs;
  image.partial = better.partial;
  better.code = nullptr;
  better.counts = Counts();
  function.warm.store(0);
  if (image.partial) begin_counting(function, part);
  run_image(function);
}

// The blocks that the baseline's code has entered, as the service reads them: two hexadecimal digits for eight, the
// lowest bit the first one.  Empty where all of the kernel is to be compiled: it is small, was compiled in parts several times, or
// no wave's stack has room for both tiers' frames.
std::string entered(const Function &function) {
  const std::vector<BlockPlace> &blocks = function.baseline.resumable.blocks;
  const uint64_t *counts = function.baseline.counts.blocks();
  if (blocks.empty() || function.partial_versions >= kPartialVersions || config().fiber_stack < kStackOfBoth) return "";
  std::string text;
  bool all = true;
  for (size_t first = 0; first < blocks.size(); first += 8) {
    unsigned bits = 0;
    for (size_t n = first; n < std::min(first + 8, blocks.size()); ++n) {
      bool is = counts ? __atomic_load_n(counts + n, __ATOMIC_RELAXED) : __atomic_load_n(&function.marks[n], __ATOMIC_RELAXED);
      all = all && is;
      bits |= static_cast<unsigned>(is) << (n - first);
    }
    text += "0123456789abcdef"[bits >> 4];
    text += "0123456789abcdef"[bits & 15];
  }
  return all ? "" : text;
}

void take_better(Function &function, HostImage &better, const std::string &part) {
  std::lock_guard<std::mutex> guard(function.mutex);
  take(function, better, part);
}

// The partial image of an earlier run; the blocks that had been entered when it was made count as entered.
bool take_cached_part(Function &function) {
  const std::vector<BlockPlace> &blocks = function.baseline.resumable.blocks;
  if (blocks.empty() || config().fiber_stack < kStackOfBoth) return false;
  std::string entered;
  HostImage better;
  better.counts = function.baseline.counts;
  const bool found = cached_part(*function.module->code, *function.info, entered, better);
  if (found) take(function, better, entered);
  better.counts = Counts();
  if (!found || !function.marks) return found;
  for (size_t n = 0; n < blocks.size() && n / 4 < entered.size(); ++n) {
    char digit = entered[n / 8 * 2 + (n % 8 < 4)];
    unsigned bits = static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    if (bits >> n % 4 & 1) function.marks[n] = 1;
  }
  return true;
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
    const std::string part = entered(*next.function);
    bool done = better_image(*next.module->code, *next.function->info, part, better);
    next.function->partial_versions += !part.empty();
    if (done) take_better(*next.function, better, part);
    better.counts = Counts();
  }
}

// The function's baseline, with a place for what it notes.
bool copy_baseline(Function &function, bool wait, std::string &why) {
  HostImage &made = function.baseline;
  if (!load_baseline(*function.module->code, *function.info, wait, made, why)) return false;
  if (!made.counts.words && !made.resumable.blocks.empty())
    function.marks = std::make_unique<uint8_t[]>(made.resumable.blocks.size());
  return true;
}

// The compiler was stopped at the kernel: it runs the baseline's code, or what the compiler makes without optimisation.
void without_compiler(Function &function, const Stopped &stopped) {
  const CodeObject &code = *function.module->code;
  const KernelInfo &info = *function.info;
  std::string why;
  bool compiled = config().strict || config().interleave;
  bool copied = !compiled && copy_baseline(function, true, why);
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
  if (tier != Tier::Llvm && copy_baseline(function, tier == Tier::Baseline, why)) {
    if (tier == Tier::Auto && take_cached_part(function)) return;
    if (tier == Tier::Auto) begin_counting(function, "");
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

namespace {

void count(const Launch &launch, uint64_t instructions) {
  Function &function = *launch.function;
  uint64_t hot = function.hot.load(std::memory_order_relaxed);
  if (!hot) return;
  const uint64_t executed = function.executed.fetch_add(instructions, std::memory_order_relaxed) + instructions;
  if (executed < hot) {
    const uint64_t warm = function.warm.load(std::memory_order_relaxed);
    if (warm && executed >= warm) tell_cache(function, executed);
    return;
  }
  if (!function.hot.exchange(0)) return;  // another worker has asked
  Queue &q = queue();
  std::lock_guard<std::mutex> guard(q.mutex);
  q.wanted.push_back({launch.module, &function});
  // Each thread waits for one of the service's workers, of which there are as many as processors.
  if (q.wanted.size() > q.idle && q.threads < config().threads && start_thread("sx-tier", improve)) ++q.threads;
  q.more.notify_one();
}

}  // namespace

void count_executed(const Launch &launch, uint64_t instructions) {
  // Of a partial image only what waves execute after they left it counts.
  if (!launch.function->partial.load(std::memory_order_relaxed)) count(launch, instructions);
}

void count_left(const Launch &launch, uint64_t instructions) { count(launch, instructions); }

}  // namespace sx
