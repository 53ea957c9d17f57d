// What a wave begins with, and a launch from its first workgroup to its last.
#include "launch.h"

#include "device_memory.h"
#include "limits.h"
#include "log.h"
#include "record.h"
#include "state.h"
#include "strict.h"
#include "wave.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace sx {
namespace {

// Enable bits of user SGPRs in the kernel descriptor's properties, and what each takes (rdna3.md 4.2, LLVM's
// AMDGPUUsage): the order is that of the registers.
constexpr unsigned kDispatchPtr = 1, kQueuePtr = 2, kKernargPtr = 3, kDispatchId = 4, kPrivateSize = 6;

// User SGPRs by the enable bits, then the workgroup ids where the descriptor's count puts them.
void place_sgprs(Launch &launch, const KernelInfo &info, uint64_t packet, uint64_t queue, SxWave &wave) {
  unsigned at = 0;
  auto pair = [&](uint64_t value) {
    wave.sgpr[at++] = static_cast<uint32_t>(value);
    wave.sgpr[at++] = static_cast<uint32_t>(value >> 32);
  };
  auto enabled = [&](unsigned bit) { return info.properties >> bit & 1; };
  if (enabled(kDispatchPtr)) pair(packet);
  if (enabled(kQueuePtr)) pair(queue);
  if (enabled(kKernargPtr)) pair(launch.kernarg);
  if (enabled(kDispatchId)) pair(0);
  if (enabled(kPrivateSize)) wave.sgpr[at++] = static_cast<uint32_t>(launch.scratch_size);
  unsigned system = info.rsrc2 >> 1 & 31;
  for (unsigned axis = 0; axis < 3; ++axis) {
    launch.group_id_register[axis] = info.rsrc2 >> (7 + axis) & 1 ? system++ : kNoRegister;
  }
}

// The number in the file that a variable names, if it is set: the work of a killed process is included, and that of
// several processes adds up.
uint64_t *shared_number(const char *variable) {
  std::string path = env_string(variable);
  int fd = path.empty() ? -1 : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return nullptr;
  void *at = ftruncate(fd, sizeof(uint64_t)) == 0
                 ? mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                 : MAP_FAILED;
  close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<uint64_t *>(at);
}

// Adds to the number in the file SASSXLATE_INSTRUCTIONS.
void tally(uint64_t executed) {
  static uint64_t *const number = shared_number("SASSXLATE_INSTRUCTIONS");
  if (number) __atomic_fetch_add(number, executed, __ATOMIC_RELAXED);
}

// As `tally`: nanoseconds of processor time of the thread that ran the launch, in the file SASSXLATE_CPU_TIME.  With
// SASSXLATE_THREADS=1 that is all of it.
class Clock {
 public:
  Clock() : began_(number() ? now() : 0) {}
  ~Clock() {
    if (number()) __atomic_fetch_add(number(), now() - began_, __ATOMIC_RELAXED);
  }
  Clock(const Clock &) = delete;
  Clock &operator=(const Clock &) = delete;

 private:
  static uint64_t *number() {
    static uint64_t *const one = shared_number("SASSXLATE_CPU_TIME");
    return one;
  }
  static uint64_t now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
  }

  uint64_t began_;
};

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// The time in which at least one kernel ran: streams overlap.
class Busy {
 public:
  Busy() {
    std::lock_guard<std::mutex> guard(mutex());
    if (running++ == 0) began = nanoseconds();
  }
  ~Busy() {
    std::lock_guard<std::mutex> guard(mutex());
    if (--running == 0) total += nanoseconds() - began;
  }
  Busy(const Busy &) = delete;
  Busy &operator=(const Busy &) = delete;

  static uint64_t so_far() {
    std::lock_guard<std::mutex> guard(mutex());
    return total + (running ? nanoseconds() - began : 0);
  }

 private:
  static std::mutex &mutex() {
    static std::mutex *const one = new std::mutex;  // threads of the device outlive static destructors
    return *one;
  }
  static inline unsigned running = 0;
  static inline uint64_t began = 0, total = 0;
};

}  // namespace

void make_templates(Launch &launch, uint64_t packet, uint64_t queue) {
  const KernelInfo &info = *launch.function->info;
  unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  // rsrc2[12:11]: which of x, y and z v0 holds.
  unsigned dimensions = (info.rsrc2 >> 11 & 3) + 1;
  SxWave wave;
  memset(&wave, 0, sizeof wave);
  if (config().strict) strict_fill(wave.sgpr, sizeof wave.sgpr, 0x5095);
  place_sgprs(launch, info, packet, queue, wave);
  wave.lds_size = launch.lds_size;
  wave.scratch_size = launch.scratch_size;
  wave.fuel = launch.fuel = config().fuel;
  wave.counts = launch.counts.blocks();
  if (!wave.counts) wave.counts = reinterpret_cast<uint64_t *>(launch.function->marks.get());
  wave.arguments = launch.arguments;
  wave.strict_seed = config().strict ? strict_wave_seed() : 0;
  uint64_t text = info.entry_vaddr;
  launch.module->code->elf.section_address(".text", text);
  wave.code_base = launch.module->load_base + text;
  launch.templates.assign((threads + 31) / 32, wave);
  for (unsigned i = 0; i < launch.templates.size(); ++i) {
    SxWave &w = launch.templates[i];
    unsigned lanes = std::min(32u, threads - i * 32);
    if (config().strict) strict_fill(w.v0, sizeof w.v0, 0x6095 + i);
    w.exec = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      unsigned flat = i * 32 + lane;
      unsigned x = flat % launch.block[0], y = flat / launch.block[0] % launch.block[1];
      unsigned z = flat / launch.block[0] / launch.block[1];
      w.v0[lane] = x | (dimensions > 1 ? y << 10 : 0) | (dimensions > 2 ? z << 20 : 0);
    }
    w.rows = sx_rows(&w);
    for (int axis = 0; axis < 3; ++axis) w.most[axis] = launch.block[axis] - 1;
  }
}

int run_launch(Launch &launch) {
  // The current window: a kernel may also access memory that was allocated since the launch was enqueued.
  Window window = memory_window();
  static std::atomic<uint32_t> launches{0};
  do launch.number = ++launches;
  while (!launch.number);
  launch.runs = launch.function->runs.load(std::memory_order_acquire);
  launch.rows = launch.runs && !launch.lds_size && !launch.cooperative;
  for (SxWave &wave : launch.templates) {
    wave.arena_base = window.base;
    wave.arena_size = window.size;
    wave.follows = launch.runs && &wave != &launch.templates.back() ? 1 : 0;
    wave.step = sizeof(Wave);
  }
  uint32_t dynamic = launch.lds_size - launch.function->info->group_size;
  {
    Recording recording(launch, dynamic);
    Busy busy;
    const Clock clock;
    execute(launch);
  }
  tally(launch.executed.load());
  launch.counts.launched(launch, dynamic);
  return report_fault(launch);
}

uint64_t busy_nanoseconds() { return Busy::so_far(); }

}  // namespace sx
