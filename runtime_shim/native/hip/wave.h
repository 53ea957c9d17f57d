// A launch's workgroups and waves, as the executor's workers run them.
#pragma once
#include "device_memory.h"
#include "fiber.h"
#include "launch.h"

#include <vector>

namespace sx {

// Kinds of faults that are not of compiled code: the watchdog's, and no memory for a workgroup's stacks or scratch.
constexpr uint32_t kFaultTime = 101;
constexpr uint32_t kFaultMemory = 100;

enum class WaveState : uint8_t { New, Ready, AtBarrier, Ended };
enum class Event : uint8_t { Ended, Barrier, Gave, Slept, Turn, Stopped };

struct Group;
struct Wave;

// A worker's fibers that no wave has.
class IdleFibers {
 public:
  IdleFibers() = default;
  ~IdleFibers();
  IdleFibers(const IdleFibers &) = delete;
  IdleFibers &operator=(const IdleFibers &) = delete;

  // Makes one run the wave when it is next resumed; false where memory is exhausted.
  bool lend(Wave &wave);
  // Takes the wave's fiber, which is suspended at the end of a wave, or is about to pass on there.
  void take_back(Wave &wave);
  // The same of a fiber that is anywhere else: it begins anew.
  void abandon(Wave &wave);

 private:
  Fiber *idle(unsigned index);
  void put(Fiber *fiber);

  FiberRow *row_ = nullptr;  // whose fibers go to waves of their number, where they can
  uint32_t idle_of_row_ = 0;  // bits
  std::vector<FiberRow *> more_;
  std::vector<Fiber *> idle_;  // of those
};

struct alignas(64) Wave {
  SxWave regs;
  Group *group;
  Fiber *fiber;
  Wave *round;  // while Group::rounds: who runs when this one has arrived; null where sx_barrier_way is to say
  WaveState state;
  Event event;
  uint32_t index;
  // The number of the launch whose registers it holds, with the workgroup's memory as it is; 0: none.
  uint32_t filled;
  uint64_t turns;  // times that it received fuel
  // The ranges that the slow path found last, valid while the generation stays; the next one takes the place `oldest`.
  uint64_t range_generation;
  Range ranges[4];
  unsigned oldest;
};

struct Group {
  Launch *launch = nullptr;
  IdleFibers *fibers = nullptr;  // of the worker that has begun it
  uint32_t id[3] = {0, 0, 0};
  unsigned live = 0, arrived = 0;
  unsigned first_wave = 0;  // the wave that is run first
  Wave *last = nullptr;  // the wave that suspended itself last
  unsigned turns = 0;  // times it yielded since workgroups were last added
  uint64_t executed = 0;  // instructions of the waves that have ended
  std::vector<Wave> waves;
  Wave *begin = nullptr, *end = nullptr;  // of these
  // The first of the waves that one call of compiled code runs now, up to the last, if none of them has been suspended.
  Wave *run = nullptr;
  // Workgroups of its row that the same call goes on with, in this one's place: of these, where a wave was suspended, those
  // that had ended before, and those that have not begun.
  uint32_t more = 0, ended = 0, left = 0;
  // Whether the waves, of which none has ended, go from barrier to barrier in their order: each is at the same one or has
  // passed it, and what has arrived is counted when that ends (leave_rounds).  Until then all are ready, and the thread is
  // to go on at `back`.
  bool rounds = false;
  unsigned released = 0;  // times that all waves had arrived before
  void *back = nullptr;
  uint8_t *lds = nullptr;
  uint8_t *scratch = nullptr;
  size_t scratch_capacity = 0;
};

// SxRuntime.barrier.
extern "C" void sx_barrier(SxWave *w, uint32_t pc);

// SxRuntime.leave.
extern "C" void sx_leave(SxWave *w, uint32_t pc, const SxLeft *left);

// Called by compiled code.  Not constant: the watchdog sets `stop`.
extern SxRuntime g_runtime;

// What a fiber runs: waves, each from its start to its end.  `user` of the fiber is the first one.
[[noreturn]] void wave_body(Fiber *fiber);

// Gives a new wave a fiber and its first registers; it is ready then.  False if it cannot begin: the launch has failed
// (also by this: no memory, or no time is left).
bool begin_wave(Group &group, Wave &wave);

// The wave after another one; after the last the first.
inline Wave &after(const Group &group, Wave &wave) {
  Wave *next = &wave + 1;
  return next == group.end ? *group.begin : *next;
}

// The wave that the scheduler would run next, if it is of the same round, and ready or made so; otherwise null.
inline Wave *next_ready(Group &group, Wave &wave) {
  Wave &next = after(group, wave);
  if (next.index == group.first_wave) return nullptr;
  if (next.state == WaveState::New && !begin_wave(group, next)) return nullptr;
  return next.state == WaveState::Ready ? &next : nullptr;
}

// All live waves have arrived at the barrier: they are ready.
void release(Group &group);

// The same, and where all waves were live and `last` is the last of their order: from here on they go in rounds.
void begin_rounds(Group &group, const Wave &last);

// Before the running wave ends, is suspended, or control goes back to the thread: what rounds had not noted.
void end_rounds(Group &group, Wave &now);

inline void leave_rounds(Group &group, Wave &now) {
  if (group.rounds) end_rounds(group, now);
}

// Of a launch for whose fibers or scratch there is no memory.
FaultRecord out_of_memory();

// The first fault of a launch counts; it ends the launch.
void record_fault(const Group &group, FaultRecord fault);

// A wave that yields at `pc`, or has not begun, in a launch whose time is over: that is a fault.
void check_time(const Wave &wave, uint32_t pc);

}  // namespace sx
