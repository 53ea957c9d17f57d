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

// Called by compiled code.  Not constant: the watchdog sets `stop`.
extern SxRuntime g_runtime;

// What a fiber runs: waves, each from its start to its end.  `user` of the fiber is the first one.
[[noreturn]] void wave_body(Fiber *fiber);

// The state of a wave that is about to run for the first time; it is ready then.
void fill_registers(Group &group, Wave &wave);

// The first fault of a launch counts; it ends the launch.
void record_fault(const Group &group, FaultRecord fault);

// A wave that yields at `pc`, or has not begun, in a launch whose time is over: that is a fault.
void check_time(const Wave &wave, uint32_t pc);

}  // namespace sx
