#include "state.h"

#include "kernarg.h"
#include "log.h"
#include "memory.h"
#include "stream.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "files.h"

namespace sx {
namespace {

constexpr int kErrorNotPermitted = 800;  // CUDA's number

std::atomic<int> g_sticky{0};
std::atomic<bool> g_initialised{false};
std::atomic<bool> g_forked{false};
thread_local int t_last_error = 0;

uint64_t physical_memory() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  for (const char *path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::string text;
    if (read_file(path, text, 64) && text[0] >= '0' && text[0] <= '9')
      bytes = std::min<uint64_t>(bytes, strtoull(text.c_str(), nullptr, 10));
  }
  return bytes;
}

unsigned processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
  return static_cast<unsigned>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN)));
}

Config read_config() {
  Config c = {};
  c.strict = env_flag("SASSXLATE_STRICT");
  c.interleave = env_flag("SASSXLATE_INTERLEAVE");
  std::string tier = env_string("SASSXLATE_TIER");
  bool compiled = c.strict || c.interleave;
  c.tier = compiled ? Tier::Llvm : tier == "baseline" ? Tier::Baseline : tier == "auto" ? Tier::Auto : Tier::Llvm;
  c.strict_seed = env_size("SASSXLATE_STRICT_SEED", 0);
  c.threads = static_cast<unsigned>(std::clamp<uint64_t>(env_size("SASSXLATE_THREADS", processors()), 1, 1024));
  c.fiber_stack = std::clamp<uint64_t>(env_size("SASSXLATE_FIBER_STACK", 1u << 20), 64u << 10, 64u << 20);
  c.arena_size = std::clamp<uint64_t>(env_size("SASSXLATE_ARENA", 64ull << 30), 64u << 20, 16ull << 40);
  uint64_t memory = physical_memory();
  uint64_t advertised = memory > (4ull << 30) ? memory - (2ull << 30) : memory / 2;
  advertised = env_size("SASSXLATE_DEVICE_MEMORY", advertised) & ~0xfffffull;
  // The rest of the arena holds pinned host memory, kernel arguments and gaps.
  c.device_memory = std::min(std::max<uint64_t>(advertised, 1u << 20), c.arena_size / 4 * 3);
  c.multiprocessors = static_cast<unsigned>(std::clamp<uint64_t>(env_size("SASSXLATE_MULTIPROCESSORS", 48), 1, 1024));
  c.fuel = static_cast<int64_t>(std::clamp<uint64_t>(env_size("SASSXLATE_FUEL", 8192), 1, 1u << 30));
  double limit = strtod(env_string("SASSXLATE_KERNEL_TIME_LIMIT", "0").c_str(), nullptr);
  c.kernel_time_limit = limit > 0 ? std::min(limit, 1e6) : 0;
  return c;
}

void after_fork_in_child() {
  if (g_initialised.load()) g_forked.store(true);
}

}  // namespace

const Config &config() {
  static const Config c = read_config();
  return c;
}

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
