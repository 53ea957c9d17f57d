// One launch of a kernel on the emulated device.
#pragma once
#include "abi.h"
#include "module.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace sx {

// The reason why a launch stopped: the first fault of any wave.
struct FaultRecord {
  uint32_t kind = 0, pc = 0, lane = 0;
  uint64_t address = 0;
  uint32_t group[3] = {0, 0, 0};
  uint32_t wave = 0;
};

struct Launch {
  std::shared_ptr<Module> module;  // kept until the launch has ended
  Function *function = nullptr;
  Counts counts;
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t lds_size = 0;
  uint64_t scratch_size = 0;  // bytes per lane
  uint64_t kernarg = 0;       // address in the arena
  const void *arguments = nullptr;  // the same bytes as the host has them
  size_t kernarg_slot = 0;
  bool cooperative = false;
  bool runs = false;  // its code runs the waves of a workgroup that follow, as the templates say
  bool rows = false;  // and workgroups of a row one after the other, which need nothing of their own
  uint32_t number = 0;  // of launches so far that have begun; never 0 then
  unsigned group_id_register[3] = {0, 0, 0};  // SGPR of each workgroup id, kNoRegister where not enabled
  std::vector<SxWave> templates;              // a wave's initial state, without what differs by workgroup
  int64_t fuel = 0;                           // theirs
  // Not a constant, for which compilers write a slow instruction in place of a call of memcpy.
  size_t template_size = sizeof(SxWave);

  // Scheduling; the executor's.
  bool helped = false;              // a thread is about to call help_with_launches for it
  uint64_t total = 0;               // workgroups
  uint64_t next = 0;                // the first not yet taken (under the executor's mutex)
  std::atomic<uint64_t> pending{0}; // not yet ended
  std::atomic<bool> aborted{false};
  std::atomic<bool> spun{false};    // a wave has yielded for lack of progress
  std::atomic<bool> overdue{false}; // its time is over; the watchdog's, as is the deadline
  std::chrono::steady_clock::time_point deadline;
  std::atomic<uint64_t> executed{0};  // instructions, of the waves of all workgroups that have ended
  std::atomic<bool> done{false};  // set under the executor's mutex
  std::condition_variable finished;
  std::mutex fault_mutex;
  FaultRecord fault;

  unsigned waves() const { return static_cast<unsigned>(templates.size()); }
};

// The initial state of a workgroup's waves: of the shape, sizes and arguments that the launch has.  `packet`, `queue`:
// addresses of the dispatch packet and of its queue, for kernels that ask for them.
void make_templates(Launch &launch, uint64_t packet, uint64_t queue);

// Runs the launch, which has its templates, to its end: 0, or the HIP error of a fault, which is reported.
int run_launch(Launch &launch);

// The time in which at least one kernel ran.
uint64_t busy_nanoseconds();

// Runs the launch to its end on the calling thread and on the workers; the part of run_launch that is the executor's.
void execute(Launch &launch);

// Runs workgroups of launches in flight until there are none to begin.
void help_with_launches();

// The HIP error of a fault, after one line on standard error about it.
int report_fault(const Launch &launch);

}  // namespace sx
