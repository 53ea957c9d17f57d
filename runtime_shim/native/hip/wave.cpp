// Waves on fibers: what compiled code calls, and how a wave begins, waits and ends.
#include "wave.h"

#include "state.h"
#include "strict.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>
#include <x86intrin.h>

namespace sx {
namespace {

// Inline, as all on the way to a switch is (fiber_switch).
__attribute__((always_inline)) inline void suspend(Wave *wave, Event event) {
  wave->event = event;
  wave->group->last = wave;
  leave_rounds(*wave->group, *wave);
  fiber_suspend(wave->fiber);
}

Wave *wave_of(SxWave *w) { return static_cast<Wave *>(w->host); }

// The waves of a run up to `last` have ended, which has the fiber then; so have all of the workgroups before that.
inline void end_run(Group &group, Wave &last) {
  Wave *wave = std::exchange(group.run, nullptr);
  if (group.more) {
    group.left = std::exchange(wave->regs.more, 0);
    group.ended = std::exchange(group.more, 0) - group.left;
    group.id[0] += group.ended;
  }
  last.fiber = std::exchange(wave->fiber, nullptr);
  last.fiber->user = &last;
  group.live -= static_cast<unsigned>(&last - wave);
  for (; wave != &last; ++wave) wave->state = WaveState::Ended;
}

// Before a wave is suspended: if it is one of a run, that ends with it, and the waves after it begin on their own.
void alone(Wave &wave) {
  Group &group = *wave.group;
  if (!group.run) return;
  end_run(group, wave);
  wave.state = WaveState::Ready;
  wave.regs.follows = 0;
  wave.filled = 0;
}

// ---- Functions called by compiled code (SxRuntime); all on the wave's fiber.

// Strict mode makes waves yield at different places with every seed.
int64_t fuel_for(Wave &wave) {
  if (!config().strict) return config().fuel;
  uint64_t place = uint64_t{wave.group->id[0]} << 32 | wave.group->id[1] << 16 | wave.group->id[2];
  return 1 + static_cast<int64_t>(strict_mix(place, ++wave.turns << 8 | wave.index) % static_cast<uint64_t>(config().fuel));
}

}  // namespace

void record_fault(const Group &group, FaultRecord fault) {
  Launch &launch = *group.launch;
  std::copy(group.id, group.id + 3, fault.group);
  {
    std::lock_guard<std::mutex> guard(launch.fault_mutex);
    if (launch.fault.kind == 0) launch.fault = fault;
  }
  launch.aborted.store(true);
}

void check_time(const Wave &wave, uint32_t pc) {
  const Launch &launch = *wave.group->launch;
  if (!launch.overdue.load(std::memory_order_relaxed) || launch.aborted.load(std::memory_order_relaxed)) return;
  FaultRecord fault;
  fault.kind = kFaultTime;
  fault.pc = pc;
  fault.wave = wave.index;
  record_fault(*wave.group, fault);
}

namespace {

void runtime_yield(SxWave *w, uint32_t pc) {
  Wave *wave = wave_of(w);
  if (pc & SX_TURN) {
    if (wave->group->live == 1) return;
    return suspend(wave, wave->group->launch->aborted.load(std::memory_order_relaxed) ? Event::Stopped : Event::Turn);
  }
  // Fuel left means s_sleep, or the watchdog: the wave has no use for its turn.
  alone(*wave);
  Event event = w->fuel > 0 ? Event::Slept : Event::Gave;
  w->fuel = fuel_for(*wave);
  check_time(*wave, pc);
  suspend(wave, wave->group->launch->aborted.load(std::memory_order_relaxed) ? Event::Stopped : event);
}

void runtime_fault(SxWave *w, uint32_t kind, uint32_t pc, uint32_t lane, uint64_t address) {
  Wave *wave = wave_of(w);
  alone(*wave);
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

void *runtime_find(SxWave *w, uint64_t address, uint32_t size, uint32_t access) {
  Wave *wave = wave_of(w);
  const Launch &launch = *wave->group->launch;
  const Range *range = range_of(*wave, address);
  if (!range || size > range->end - address || (range->guarded && access & (SX_WRITE | SX_ATOMIC))) return nullptr;
  if (range->probes && !allowed(*range, launch.number, address, size, access)) return nullptr;
  if (range->internal && config().strict) {
    // Of the arguments a kernel may only read its own.
    if (access != SX_READ || address < launch.kernarg || address + size > launch.kernarg + launch.kernarg_slot)
      return nullptr;
  }
  return reinterpret_cast<void *>(address + range->shift);
}

void *runtime_resolve(SxWave *w, uint64_t address, uint32_t size, uint32_t access, uint32_t pc, uint32_t lane) {
  void *found = runtime_find(w, address, size, access);
  if (!found) runtime_fault(w, SX_FAULT_ADDRESS, pc, lane, address);
  return found;
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

}  // namespace

SxRuntime g_runtime = {sx_barrier, runtime_yield,   runtime_resolve, runtime_fault,
                            runtime_clock,   runtime_message, 0, 0, runtime_find, sx_leave, {}};

FaultRecord out_of_memory() {
  FaultRecord fault;
  fault.kind = kFaultMemory;
  return fault;
}

void release(Group &group) {
  group.arrived = 0;
  for (Wave &wave : group.waves)
    if (wave.state == WaveState::AtBarrier) wave.state = WaveState::Ready;
}

void begin_rounds(Group &group, const Wave &last) {
  for (Wave *wave = group.begin; wave != group.end; ++wave) wave->round = &after(group, *wave);
  group.begin[last.index].round = nullptr;
  group.back = last.fiber->back;
  group.rounds = true;
}

void end_rounds(Group &group, Wave &now) {
  group.rounds = false;
  for (Wave *wave = group.begin; wave != group.end; ++wave) wave->round = nullptr;
  for (Wave *wave = group.begin + group.first_wave; wave != &now; wave = &after(group, *wave)) {
    wave->state = WaveState::AtBarrier;
    ++group.arrived;
  }
  now.fiber->back = group.back;
}

IdleFibers::~IdleFibers() {
  if (row_) fiber_row_give(row_);
  for (FiberRow *row : more_) fiber_row_give(row);
}

// An idle fiber, the wave's own place in the row if it is free; null where memory is exhausted.
Fiber *IdleFibers::idle(unsigned index) {
  if (!row_) {
    row_ = fiber_row_take();
    if (!row_) return nullptr;
    idle_of_row_ = ~0u;
  }
  if (idle_of_row_) {
    unsigned number = idle_of_row_ >> index & 1 ? index : static_cast<unsigned>(__builtin_ctz(idle_of_row_));
    idle_of_row_ &= ~(1u << number);
    return &row_->fibers[number];
  }
  if (idle_.empty()) {
    FiberRow *row = fiber_row_take();
    if (!row) return nullptr;
    more_.push_back(row);
    for (unsigned i = kFibersOfRow; i--;) idle_.push_back(&row->fibers[i]);
  }
  Fiber *fiber = idle_.back();
  idle_.pop_back();
  return fiber;
}

void IdleFibers::put(Fiber *fiber) {
  if (fiber->row == row_) idle_of_row_ |= 1u << fiber->number;
  else idle_.push_back(fiber);
}

bool IdleFibers::lend(Wave &wave) {
  Fiber *fiber = idle(wave.index);
  if (!fiber) return false;
  if (!fiber->body) {
    if (!fiber_use(fiber)) {
      put(fiber);
      return false;
    }
    fiber_prepare(fiber, wave_body);
  }
  wave.fiber = fiber;
  fiber->user = &wave;
  return true;
}

void IdleFibers::take_back(Wave &wave) { put(std::exchange(wave.fiber, nullptr)); }

void IdleFibers::abandon(Wave &wave) {
  fiber_prepare(wave.fiber, wave_body);
  take_back(wave);
}

namespace {

// All of a wave's registers but the workgroup's numbers.
__attribute__((noinline)) void fill_all(const Group &group, const Launch &launch, Wave &wave) {
  const bool strict = config().strict;
  memcpy(&wave.regs, &launch.templates[wave.index], launch.template_size);
  wave.regs.lds = group.lds;
  wave.regs.scratch = group.scratch + size_t{wave.index} * 32 * launch.scratch_size;
  wave.regs.rt = &g_runtime;
  wave.regs.host = &wave;
  if (strict) wave.regs.fuel = fuel_for(wave);
  wave.filled = strict ? 0 : launch.number;
}

// A wave's registers are only written when it is first run, which keeps them in the cache.  Of one workgroup of a launch
// to the next only a few differ, since compiled code has its registers elsewhere.
inline void fill_registers(const Group &group, const Launch &launch, Wave &wave) {
  if (wave.filled != launch.number) {
    fill_all(group, launch, wave);
  } else {
    wave.regs.fuel = launch.fuel;
    wave.regs.executed = 0;
  }
  for (int axis = 0; axis < 3; ++axis) wave.regs.sgpr[launch.group_id_register[axis]] = group.id[axis];
  wave.state = WaveState::Ready;
}

}  // namespace

bool begin_wave(Group &group, Wave &wave) {
  check_time(wave, 0);
  if (group.launch->aborted.load(std::memory_order_relaxed)) return false;
  if (!group.fibers->lend(wave)) {
    record_fault(group, out_of_memory());
    return false;
  }
  fill_registers(group, *group.launch, wave);
  return true;
}

namespace {

// The wave has ended.  The next one of its workgroup that is to run in this fiber, or null where that is for others to
// say, and the wave's end to be dealt with.
inline Wave *follow(Group &group, const Launch &launch, Wave &wave) {
  Wave &next = after(group, wave);
  if (next.state != WaveState::New || launch.aborted.load(std::memory_order_relaxed) ||
      launch.overdue.load(std::memory_order_relaxed))
    return nullptr;
  next.fiber = wave.fiber;
  wave.fiber = nullptr;
  wave.state = WaveState::Ended;
  group.executed += wave.regs.executed;
  --group.live;
  fill_registers(group, launch, next);
  return &next;
}

// Gives control to the next wave of the workgroup, which waits in a fiber of its own, or to the scheduler; returns when
// the fiber has another wave.
__attribute__((always_inline)) inline void part(Wave &wave) {
  Group &group = *wave.group;
  Fiber *fiber = wave.fiber;
  leave_rounds(group, wave);
  Wave *next = group.arrived + 1 < group.live ? next_ready(group, wave) : nullptr;
  if (!next) return suspend(&wave, Event::Ended);
  wave.state = WaveState::Ended;
  group.executed += wave.regs.executed;
  --group.live;
  group.fibers->take_back(wave);
  fiber_pass(fiber, next->fiber);
}

// The waves from one on are to be run by one call.
inline void begin_run(Group &group, const Launch &launch, Wave &first) {
  group.run = &first;
  first.regs.more = group.more;
  for (Wave *wave = &first + 1; wave != group.end; ++wave)
    if (wave->filled != launch.number) fill_all(group, launch, *wave);
}

}  // namespace

void wave_body(Fiber *fiber) {
  for (;;) {  // a fiber whose wave has ended runs the next one from the same stack
    Wave *wave = static_cast<Wave *>(fiber->user), *next = wave;
    Group &group = *wave->group;
    const Launch &launch = *group.launch;
    while (next) {
      wave = next;
      if (launch.runs) begin_run(group, launch, *wave);
      launch.function->entry.load(std::memory_order_acquire)(&wave->regs);
      clear_upper_halves();
      if (group.run) end_run(group, *(wave = group.end - 1));
      else if (launch.runs) wave = static_cast<Wave *>(fiber->user);
      next = follow(group, launch, *wave);
    }
    part(*wave);
  }
}

}  // namespace sx
