// Runs launches: workgroups on worker threads, their waves as fibers.
//
// A worker owns the workgroups that it has begun.  It runs one until all of its waves have ended or yielded
// (s_sleep, fuel); waves that wait at a barrier are released when the last live wave arrives.  If
// workgroups only yield, the worker begins more of them: they may be waiting for a workgroup that has
// not begun, as in a barrier over the grid or a scan that looks back.
#include "launch.h"

#include "device_memory.h"
#include "fiber.h"
#include "log.h"
#include "per_thread.h"
#include "state.h"
#include "strict.h"
#include "threads.h"
#include "tiers.h"
#include "watchdog.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <deque>
#include <sched.h>
#include <sys/mman.h>
#include <utility>
#include <x86intrin.h>

namespace sx {
namespace {

constexpr size_t kLdsMax = 64u << 10;
// A worker's, so that stacks do not exhaust memory; more than the device advertises room for.
constexpr unsigned kMaxResidentWaves = 4096;
constexpr uint32_t kFaultTime = 101;    // the watchdog's
constexpr uint32_t kFaultMemory = 100;  // no memory for a workgroup's stacks or scratch; not of compiled code

enum class WaveState : uint8_t { New, Ready, AtBarrier, Ended };
enum class Event : uint8_t { Ended, Barrier, Gave, Slept, Turn, Stopped };

struct Group;

struct alignas(64) Wave {
  SxWave regs;
  Group *group;
  Fiber *fiber;
  WaveState state;
  Event event;
  uint32_t index;
  uint32_t filled;  // the number of the launch whose registers it holds; 0: none
  uint64_t turns;  // times that it received fuel
  // The ranges that the slow path found last, valid while the generation stays; the next one takes the place `oldest`.
  uint64_t range_generation;
  Range ranges[4];
  unsigned oldest;
};

struct Group {
  Launch *launch = nullptr;
  uint32_t id[3] = {0, 0, 0};
  unsigned live = 0, arrived = 0;
  unsigned first_wave = 0;  // the wave that is run first
  Wave *last = nullptr;  // the wave that suspended itself last
  unsigned turns = 0;  // times it yielded since workgroups were last added
  uint64_t executed = 0;  // instructions of the waves that have ended
  std::vector<Wave> waves;
  uint8_t *lds = nullptr;
  uint8_t *scratch = nullptr;
  size_t scratch_capacity = 0;
};

void suspend(Wave *wave, Event event) {
  wave->event = event;
  wave->group->last = wave;
  fiber_suspend(wave->fiber);
}

// The wave that the scheduler would run next, if it is of the same round and has begun; otherwise null.
Wave *next_begun(const Wave &wave) {
  Group &group = *wave.group;
  size_t index = size_t{wave.index} + 1;
  if (index == group.waves.size()) index = 0;
  Wave &next = group.waves[index];
  return index != group.first_wave && next.state == WaveState::Ready ? &next : nullptr;
}

Wave *wave_of(SxWave *w) { return static_cast<Wave *>(w->host); }

// ---- Functions called by compiled code (SxRuntime); all on the wave's fiber.

void runtime_barrier(SxWave *w, uint32_t) {
  Wave *wave = wave_of(w);
  Group &group = *wave->group;
  if (group.live == 1) return;  // no other wave to wait for
  Wave *next = group.arrived + 1 < group.live ? next_begun(*wave) : nullptr;
  if (!next) return suspend(wave, Event::Barrier);
  // Without a way through the scheduler: half the switches, and the processor foresees where they lead.
  wave->event = Event::Barrier;
  wave->state = WaveState::AtBarrier;
  ++group.arrived;
  fiber_pass(wave->fiber, next->fiber);
}

// Strict mode makes waves yield at different places with every seed.
int64_t fuel_for(Wave &wave) {
  if (!config().strict) return config().fuel;
  uint64_t place = uint64_t{wave.group->id[0]} << 32 | wave.group->id[1] << 16 | wave.group->id[2];
  return 1 + static_cast<int64_t>(strict_mix(place, ++wave.turns << 8 | wave.index) % static_cast<uint64_t>(config().fuel));
}

// The first fault of a launch counts; it ends the launch.
void record_fault(const Group &group, FaultRecord fault) {
  Launch &launch = *group.launch;
  std::copy(group.id, group.id + 3, fault.group);
  {
    std::lock_guard<std::mutex> guard(launch.fault_mutex);
    if (launch.fault.kind == 0) launch.fault = fault;
  }
  launch.aborted.store(true);
}

// A wave that yields at `pc`, or has not begun, in a launch whose time is over.
void check_time(const Wave &wave, uint32_t pc) {
  const Launch &launch = *wave.group->launch;
  if (!launch.overdue.load(std::memory_order_relaxed) || launch.aborted.load(std::memory_order_relaxed)) return;
  FaultRecord fault;
  fault.kind = kFaultTime;
  fault.pc = pc;
  fault.wave = wave.index;
  record_fault(*wave.group, fault);
}

void runtime_yield(SxWave *w, uint32_t pc) {
  Wave *wave = wave_of(w);
  if (pc & SX_TURN) {
    if (wave->group->live == 1) return;
    return suspend(wave, wave->group->launch->aborted.load(std::memory_order_relaxed) ? Event::Stopped : Event::Turn);
  }
  // Fuel left means s_sleep, or the watchdog: the wave has no use for its turn.
  Event event = w->fuel > 0 ? Event::Slept : Event::Gave;
  w->fuel = fuel_for(*wave);
  check_time(*wave, pc);
  suspend(wave, wave->group->launch->aborted.load(std::memory_order_relaxed) ? Event::Stopped : event);
}

void runtime_fault(SxWave *w, uint32_t kind, uint32_t pc, uint32_t lane, uint64_t address) {
  Wave *wave = wave_of(w);
  FaultRecord fault;
  fault.kind = kind;
  fault.pc = pc;
  fault.lane = lane;
  fault.address = address;
  fault.wave = wave->index;
  record_fault(*wave->group, fault);
  for (;;) suspend(wave, Event::Stopped);
}

// Of registered memory, which the application may have unmapped or protected since.
bool allowed(const Range &range, uint32_t launch, uint64_t address, uint32_t size, uint32_t access) {
  return (!(access & (SX_READ | SX_ATOMIC)) || range.probes->allow(address, size, false, launch)) &&
         (!(access & (SX_WRITE | SX_ATOMIC)) || range.probes->allow(address, size, true, launch));
}

// The mapped range around an address; null if there is none.
const Range *range_of(Wave &wave, uint64_t address) {
  uint64_t generation = memory_generation();
  if (wave.range_generation != generation) {
    wave.range_generation = generation;
    for (Range &range : wave.ranges) range = Range();
  }
  for (const Range &range : wave.ranges)
    if (range.holds(address)) return &range;
  Range &place = wave.ranges[wave.oldest++ % 4];
  if (memory_range(address, place)) return &place;
  place = Range();
  return nullptr;
}

void *runtime_resolve(SxWave *w, uint64_t address, uint32_t size, uint32_t access, uint32_t pc, uint32_t lane) {
  Wave *wave = wave_of(w);
  const Launch &launch = *wave->group->launch;
  const Range *range = range_of(*wave, address);
  if (!range || size > range->end - address || (range->guarded && access & (SX_WRITE | SX_ATOMIC))) {
    runtime_fault(w, SX_FAULT_ADDRESS, pc, lane, address);
    return nullptr;  // not reached
  }
  if (range->probes && !allowed(*range, launch.number, address, size, access))
    runtime_fault(w, SX_FAULT_ADDRESS, pc, lane, address);
  if (range->internal && config().strict) {
    // Of the arguments a kernel may only read its own.
    if (access != SX_READ || address < launch.kernarg || address + size > launch.kernarg + launch.kernarg_slot)
      runtime_fault(w, SX_FAULT_ADDRESS, pc, lane, address);
  }
  return reinterpret_cast<void *>(address + range->shift);
}

uint64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t runtime_clock(SxWave *, uint32_t which) { return which == 0 ? __rdtsc() : nanoseconds() / 10; }

uint64_t runtime_message(SxWave *, uint32_t simm16, uint32_t, uint32_t) {
  // RDNA3 ISA, message types of S_SENDMSG_RTN: 131 is GET_REALTIME; the others concern the driver.
  return (simm16 & 0xff) == 131 ? nanoseconds() / 10 : 0;
}

// Not constant: the watchdog sets `stop`.
SxRuntime g_runtime = {runtime_barrier, runtime_yield,   runtime_resolve, runtime_fault,
                            runtime_clock,   runtime_message, 0, 0, {}};

// A wave's registers are only written when it is first run, which keeps them in the cache.  Of one workgroup of a launch
// to the next only a few differ, since compiled code has its registers elsewhere.
void fill_registers(Group &group, Wave &wave) {
  const Launch &launch = *group.launch;
  const SxWave &first = launch.templates[wave.index];
  static const bool strict = config().strict;
  if (wave.filled != launch.number || strict) {
    memcpy(&wave.regs, &first, launch.template_size);
    wave.filled = launch.number;
  } else {
    wave.regs.fuel = first.fuel;
    wave.regs.executed = 0;
  }
  for (int axis = 0; axis < 3; ++axis) wave.regs.sgpr[launch.group_id_register[axis]] = group.id[axis];
  wave.regs.lds = group.lds;
  wave.regs.scratch = group.scratch + size_t{wave.index} * 32 * launch.scratch_size;
  wave.regs.rt = &g_runtime;
  wave.regs.host = &wave;
  if (strict) wave.regs.fuel = fuel_for(wave);
  wave.state = WaveState::Ready;
}

// The wave has ended; if the next one of its workgroup has not begun, it continues in the same fiber, without a detour
// through the scheduler.  Null if the scheduler is to decide.
Wave *follow(Wave &wave) {
  Group &group = *wave.group;
  const Launch &launch = *group.launch;
  size_t index = size_t{wave.index} + 1;
  if (index == group.waves.size()) index = 0;
  Wave &next = group.waves[index];
  if (next.state != WaveState::New || launch.aborted.load(std::memory_order_relaxed) ||
      launch.overdue.load(std::memory_order_relaxed))
    return nullptr;
  next.fiber = wave.fiber;
  next.fiber->user = &next;
  wave.fiber = nullptr;
  wave.state = WaveState::Ended;
  group.executed += wave.regs.executed;
  --group.live;
  fill_registers(group, next);
  return &next;
}

[[noreturn]] void wave_body(Fiber *fiber) {
  for (;;) {  // a fiber whose wave has ended runs the next one from the same stack
    Wave *wave = static_cast<Wave *>(fiber->user), *next = wave;
    while (next) {
      wave = next;
      wave->group->launch->function->entry.load(std::memory_order_acquire)(&wave->regs);
      next = follow(*wave);
    }
    suspend(wave, Event::Ended);
  }
}

// ---- Launches in flight, and the workers that take workgroups from them.

struct Board {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<Launch *> active;
  unsigned helpers = 0;
};

Board &board() {
  static Board *const instance = new Board;
  return *instance;
}

// Several workgroups at once, for less traffic, unless they may wait for one another.
struct Batch {
  Launch *launch = nullptr;
  uint64_t next = 0, end = 0;
};

void finish_groups(Launch &launch, uint64_t count) {
  if (launch.pending.fetch_sub(count) != count) return;
  std::lock_guard<std::mutex> guard(board().mutex);
  launch.done = true;
  launch.finished.notify_all();
}

// Under the board's mutex.  A launch that has failed has its remaining workgroups dropped.
bool take_from(Launch &launch, Batch &batch, uint64_t &dropped) {
  uint64_t left = launch.total - launch.next;
  if (left == 0) return false;
  if (launch.aborted.load()) {
    dropped = left;
    launch.next = launch.total;
    return false;
  }
  uint64_t share = std::max<uint64_t>(1, left / (uint64_t{4} * config().threads));
  uint64_t count = launch.cooperative || launch.spun.load(std::memory_order_relaxed) ? 1 : std::min<uint64_t>(16, share);
  batch = {&launch, launch.next, launch.next + count};
  launch.next += count;
  return true;
}

class Worker {
 public:
  ~Worker() {
    for (Fiber *fiber : fibers_) fiber_give(fiber);
    for (Group *group : spare_) {
      free(group->lds);
      if (group->scratch) munmap(group->scratch, group->scratch_capacity);
      delete group;
    }
  }

  // Runs workgroups of `only`, or of any launch if that is null, until there are none to begin.
  void serve(Launch *only) {
    size_t turn = 0;
    for (;;) {
      if (resident_.empty()) {
        if (!admit(only)) return;
        turn = 0;
      }
      turn %= resident_.size();
      Group *group = resident_[turn];
      Outcome outcome = run(*group);
      if (outcome == Outcome::Finished) {
        resident_.erase(resident_.begin() + static_cast<ptrdiff_t>(turn));
        retire(group);
        continue;
      }
      ++group->turns;
      ++turn;
      if (turn >= resident_.size()) after_round(only);
    }
  }

 private:
  enum class Outcome { Finished, GaveWay };

  // All resident workgroups have yielded once.
  void after_round(Launch *only) {
    tell();
    bool slept = true;
    unsigned fewest = ~0u;
    for (Group *group : resident_) {
      slept = slept && asleep(*group);
      fewest = std::min(fewest, group->turns);
      group->launch->spun.store(true, std::memory_order_relaxed);
    }
    bool hurry = slept || resident_[0]->launch->cooperative;
    if (fewest >= (hurry ? 1u : 4u)) {
      size_t more = resident_.size();
      while (more-- && waves_ < kMaxResidentWaves && admit(only)) {
      }
      for (Group *group : resident_) group->turns = 0;
    }
    if (slept) sched_yield();  // what they wait for may be another thread's
  }

  static bool asleep(const Group &group) {
    for (const Wave &wave : group.waves)
      if (wave.state == WaveState::Ready && wave.event != Event::Slept) return false;
    return true;
  }

  // Begins the next workgroup; false if there is none.
  bool admit(Launch *only) {
    if (batch_.next == batch_.end && !refill(only)) return false;
    Launch &launch = *batch_.launch;
    uint64_t index = batch_.next++;
    uint64_t place = config().strict && !launch.cooperative ? strict_order(index, launch.total) : index;
    if (launch.aborted.load(std::memory_order_relaxed)) {
      uint64_t count = batch_.end - index;
      batch_ = {};
      finish_groups(launch, count);
      return admit(only);
    }
    Group *group = spare_group();
    group->launch = &launch;
    group->id[0] = static_cast<uint32_t>(place % launch.grid[0]);
    group->id[1] = static_cast<uint32_t>(place / launch.grid[0] % launch.grid[1]);
    group->id[2] = static_cast<uint32_t>(place / launch.grid[0] / launch.grid[1]);
    begin(*group);
    resident_.push_back(group);
    waves_ += launch.waves();
    return true;
  }

  bool refill(Launch *only) {
    tell();
    Launch *dropped_from = nullptr;
    uint64_t dropped = 0;
    bool found = false;
    {
      std::lock_guard<std::mutex> guard(board().mutex);
      if (only) {
        found = take_from(*only, batch_, dropped);
        if (dropped) dropped_from = only;
      } else {
        for (Launch *launch : board().active) {
          found = take_from(*launch, batch_, dropped);
          if (dropped) dropped_from = launch;
          if (found || dropped) break;
        }
      }
    }
    if (dropped_from) finish_groups(*dropped_from, dropped);
    return found;
  }

  Group *spare_group() {
    if (spare_.empty()) return new Group;
    Group *group = spare_.back();
    spare_.pop_back();
    return group;
  }

  // LDS and scratch for the workgroup; false if memory is exhausted.
  static bool provide(Group &group, size_t scratch) {
    if (!group.lds) group.lds = static_cast<uint8_t *>(aligned_alloc(4096, kLdsMax + 4096));
    if (!group.lds) return false;
    if (scratch <= group.scratch_capacity) return true;
    if (group.scratch) munmap(group.scratch, group.scratch_capacity);
    void *at = mmap(nullptr, scratch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    group.scratch = at == MAP_FAILED ? nullptr : static_cast<uint8_t *>(at);
    group.scratch_capacity = group.scratch ? scratch : 0;
    return group.scratch != nullptr;
  }

  static void begin(Group &group) {
    Launch &launch = *group.launch;
    unsigned count = launch.waves();
    size_t scratch = size_t{count} * 32 * launch.scratch_size;
    group.waves.resize(count);
    group.live = count;
    group.arrived = group.turns = 0;
    group.executed = 0;
    for (unsigned i = 0; i < count; ++i) {
      Wave &wave = group.waves[i];
      wave.group = &group;
      wave.fiber = nullptr;
      wave.state = WaveState::New;
      wave.index = i;
      wave.range_generation = 0;
      wave.oldest = 0;
      wave.turns = 0;
    }
    if (!provide(group, scratch)) return out_of_memory(group);
    if (config().strict) {
      uint64_t salt = strict_mix(group.id[0], uint64_t{group.id[1]} << 32 | group.id[2]);
      strict_fill(group.lds, launch.lds_size, salt);
      if (scratch) strict_fill(group.scratch, scratch, salt + 1);
      group.first_wave = static_cast<unsigned>(salt % count);
    } else if (launch.lds_size) {  // of no bytes it takes long where the page does not exist yet
      memset(group.lds, 0, launch.lds_size);
    }
  }

  static void out_of_memory(const Group &group) {
    FaultRecord fault;
    fault.kind = kFaultMemory;
    record_fault(group, fault);
  }

  bool start(Group &group, Wave &wave) {
    check_time(wave, 0);
    if (group.launch->aborted.load(std::memory_order_relaxed)) return false;
    if (fibers_.empty()) {
      Fiber *fresh = fiber_take();
      if (!fresh) {
        out_of_memory(group);
        return false;
      }
      fiber_prepare(fresh, wave_body);
      fibers_.push_back(fresh);
    }
    wave.fiber = fibers_.back();
    fibers_.pop_back();
    wave.fiber->user = &wave;
    fill_registers(group, wave);
    return true;
  }

  Outcome run(Group &group) {
    for (;;) {
      bool gave_way = false;
      size_t count = group.waves.size(), next = group.first_wave;
      for (size_t i = 0; i < count; ++i) {
        Wave &wave = group.waves[next];
        if (++next == count) next = 0;
        if (wave.state == WaveState::New && !start(group, wave)) {
          stop(group);
          return Outcome::Finished;
        }
        if (wave.state != WaveState::Ready) continue;
        fiber_resume(wave.fiber);
        Wave &now = *group.last;  // a later one where waves have ended, or waited for each other
        size_t done = (now.index + count - group.first_wave) % count;
        if (done > i) {
          i = done;
          next = (size_t{now.index} + 1) % count;
        }
        switch (now.event) {
          case Event::Stopped:
            stop(group);
            return Outcome::Finished;
          case Event::Ended:
            now.state = WaveState::Ended;
            fibers_.push_back(now.fiber);
            now.fiber = nullptr;
            group.executed += now.regs.executed;
            --group.live;
            break;
          case Event::Barrier:
            now.state = WaveState::AtBarrier;
            ++group.arrived;
            break;
          case Event::Turn:  // the others of the workgroup run next
            break;
          default:
            gave_way = true;
        }
        if (group.arrived && group.arrived == group.live) release(group);
      }
      if (group.live == 0) return Outcome::Finished;
      if (gave_way) return Outcome::GaveWay;
      if (group.launch->aborted.load(std::memory_order_relaxed)) {
        stop(group);
        return Outcome::Finished;
      }
    }
  }

  static void release(Group &group) {
    group.arrived = 0;
    for (Wave &wave : group.waves)
      if (wave.state == WaveState::AtBarrier) wave.state = WaveState::Ready;
  }

  // Abandons the waves where they are: compiled code holds no resources to release.
  void stop(Group &group) {
    for (Wave &wave : group.waves) {
      if (!wave.fiber) continue;
      fiber_prepare(wave.fiber, wave_body);
      fibers_.push_back(wave.fiber);
      wave.fiber = nullptr;
      wave.state = WaveState::Ended;
    }
  }

  void retire(Group *group) {
    Launch &launch = *group->launch;
    waves_ -= launch.waves();
    if (ended_.launch != &launch) tell();
    ended_.launch = &launch;
    ended_.groups += 1;
    ended_.executed += group->executed;
    spare_.push_back(group);
  }

  // Adds what has ended to its launch, which may end by that.  Not for every workgroup: an atomic operation waits until
  // all the stores before it are done.
  void tell() {
    Ended ended = std::exchange(ended_, Ended());
    if (!ended.launch) return;
    ended.launch->executed.fetch_add(ended.executed, std::memory_order_relaxed);
    count_executed(*ended.launch, ended.executed);
    finish_groups(*ended.launch, ended.groups);
  }

  // Workgroups of a launch that have ended, and the instructions that they executed.
  struct Ended {
    Launch *launch = nullptr;
    uint64_t groups = 0, executed = 0;
  };


  std::vector<Group *> resident_;
  std::vector<Group *> spare_;
  std::vector<Fiber *> fibers_;
  Batch batch_;
  Ended ended_;
  unsigned waves_ = 0;
};

void help() {
  // The worker keeps its stacks and buffers for the next launch.
  Worker *worker = new Worker;
  Board &b = board();
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(b.mutex);
      b.work.wait(lock, [&] {
        return std::any_of(b.active.begin(), b.active.end(), [](Launch *l) { return l->next < l->total; });
      });
    }
    worker->serve(nullptr);
  }
}

}  // namespace

void execute(Launch &launch) {
  Worker *worker = &PerThread<Worker>::get();
  Board &b = board();
  Watched watched(launch, g_runtime);
  launch.pending.store(launch.total);
  bool shared = launch.total > 1 && config().threads > 1;
  if (shared) {
    std::lock_guard<std::mutex> guard(b.mutex);
    b.active.push_back(&launch);
    uint64_t wanted = std::min<uint64_t>(config().threads - 1, launch.total - 1);
    while (b.helpers < wanted && start_thread("sx-worker", help)) ++b.helpers;
    if (wanted == 1) b.work.notify_one();
    else b.work.notify_all();
  }
  worker->serve(&launch);
  std::unique_lock<std::mutex> lock(b.mutex);
  launch.finished.wait(lock, [&] { return launch.done; });
  if (shared) b.active.erase(std::find(b.active.begin(), b.active.end(), &launch));
}

namespace {

// The encoding at an offset of the kernel's code, as "[dc6a0000 04000102] "; "" outside of it.
std::string instruction_at(const Launch &launch, uint32_t pc) {
  const uint8_t *code = launch.module->code->elf.at_vaddr(launch.function->info->entry_vaddr + pc, 8);
  uint32_t words[2];
  if (!code) return "";
  memcpy(words, code, sizeof words);
  char text[32];
  snprintf(text, sizeof text, "[%08x %08x] ", words[0], words[1]);
  return text;
}

}  // namespace

int report_fault(const Launch &launch) {
  const FaultRecord &f = launch.fault;
  if (f.kind == 0) return 0;
  const char *kernel = launch.function->info->name.c_str();
  if (f.kind == kFaultMemory) {
    log_line("SX0659: kernel %s: no memory for the stacks or scratch of its workgroups", kernel);
    return hipErrorLaunchOutOfResources;
  }
  struct Row {
    const char *code, *text;
    int error;
  };
  static const Row rows[] = {
      {"SX0669", "unknown fault", hipErrorLaunchFailure},
      {"SX0661", "illegal address", hipErrorIllegalAddress},
      {"SX0662", "misaligned address", hipErrorMisalignedAddress},
      {"SX0663", "trap", hipErrorLaunchFailure},
      {"SX0664", "address outside shared memory (LDS)", hipErrorIllegalAddress},
      {"SX0665", "stack overflow: address outside scratch", hipErrorIllegalAddress},
      {"SX0666", "the program counter left the code", hipErrorLaunchFailure},
      {"SX0667", "strict mode:", hipErrorLaunchFailure},
  };
  static const Row late = {"SX0668", "longer than SASSXLATE_KERNEL_TIME_LIMIT:", hipErrorLaunchTimeOut};
  const Row &row = f.kind == kFaultTime ? late : f.kind < sizeof rows / sizeof rows[0] ? rows[f.kind] : rows[0];
  char address[32];
  snprintf(address, sizeof address, "0x%llx", static_cast<unsigned long long>(f.address));
  std::string what = f.kind == SX_FAULT_STRICT ? strict_text(f.address) : address;
  if (f.kind == kFaultTime) what = std::to_string(config().kernel_time_limit) + " s";
  if (f.kind == SX_FAULT_ADDRESS) what += memory_describe(f.address);
  std::string sass = launch.function->info->sass_at(f.pc);
  if (!sass.empty()) sass = ", from SASS " + sass;
  log_line("%s: kernel %s: /*%04x*/ %s%s %s, lane %u of wave %u, workgroup (%u,%u,%u)%s", row.code, kernel, f.pc,
           instruction_at(launch, f.pc).c_str(), row.text, what.c_str(), f.lane, f.wave, f.group[0], f.group[1],
           f.group[2], sass.c_str());
  return row.error;
}

}  // namespace sx
