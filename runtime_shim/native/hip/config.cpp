// The settings of the emulated device, and the processor that it is.
#include "carried.h"
#include "files.h"
#include "log.h"
#include "state.h"
#include "target.h"

#include <algorithm>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <unistd.h>

namespace sx {
namespace {

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
  c.tier = compiled || tier == "llvm" ? Tier::Llvm : tier == "baseline" ? Tier::Baseline : Tier::Auto;
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

Target chosen_target() {
  static const std::string name = [] {
    const std::string carried = carried_target();
    return carried.empty() ? std::string(kTargets[0].name) : carried;
  }();
  for (const Target &one : kTargets)
    if (one.name == name) return one;
  log_line("SX0416: SASSXLATE_TARGET=%s is not a target", name.c_str());
  return Target{name, ~0u, kTargets[0].vgprs_per_simd, kTargets[0].vgpr_step};
}

}  // namespace

const Config &config() {
  static const Config c = read_config();
  return c;
}

const Target &target() {
  static const Target chosen = chosen_target();
  return chosen;
}

}  // namespace sx
