// Runs launches: workgroups on worker threads, their waves as fibers.
//
// A worker owns the workgroups that it has begun.  It runs one until all of its waves have ended or yielded
// (s_sleep, fuel); waves that wait at a barrier are released when the last live wave arrives.  If
// workgroups only yield, the worker begins more of them: they may be waiting for a workgroup that has
// not begun, as in a barrier over the grid or a scan that looks back.
#include "float_controls.h"
#include "limits.h"
#include "moment.h"
#include "state.h"
#include "strict.h"
#include "threads.h"
#include "tiers.h"
#include "watchdog.h"
#include "wave.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sched.h>
#include <sys/mman.h>
#include <utility>

namespace sx {
namespace {

// A worker's, so that stacks do not exhaust memory; more than the device advertises room for.
constexpr unsigned kMaxResidentWaves = 4096;

// Launches in flight, of which the workers take workgroups.
struct Board {
  std::mutex mutex;
  std::condition_variable work;
  std::deque<Launch *> active;
  unsigned helpers = 0;
  std::atomic<unsigned> called{0};  // launches so far
};

Board &board() {
  static Board *const instance = new Board;
  return *instance;
}

// Several workgroups at once, for less traffic, unless they may wait for one another.
struct Batch {
  Launch *launch = nullptr;
  uint64_t next = 0, end = 0;
  uint32_t id[3] = {};  // of `next`: counted, since divisions would take longer than all else that begins a workgroup
};

void place_of(uint64_t index, const Launch &launch, uint32_t id[3]) {
  id[0] = static_cast<uint32_t>(index % launch.grid[0]);
  id[1] = static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]);
  id[2] = static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1]);
}

// Passes over workgroups of one row.
void advance(Batch &batch, uint32_t count) {
  batch.next += count;
  batch.id[0] += count;
  if (batch.id[0] < batch.launch->grid[0]) return;
  batch.id[0] = 0;
  if (++batch.id[1] < batch.launch->grid[1]) return;
  batch.id[1] = 0;
  ++batch.id[2];
}

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
  // What ends is told by an atomic operation, which waits for all stores before it: less often where waves are short.
  const uint64_t most = launch.rows ? 64 : 16;
  uint64_t count = launch.cooperative || launch.spun.load(std::memory_order_relaxed) ? 1 : std::min(most, share);
  batch = {&launch, launch.next, launch.next + count, {}};
  place_of(launch.next, launch, batch.id);
  launch.next += count;
  return true;
}

class Worker {
 public:
  Moment moment;  // of the thread's waits for the ends of launches

  ~Worker() {
    for (Group *group : spare_) {
      free(group->lds);
      if (group->scratch) munmap(group->scratch, group->scratch_capacity);
      delete group;
    }
  }

  // Runs workgroups of `only`, or of any launch if that is null, until there are none to begin.
  void serve(Launch *only) {
    FloatControls defaults;
    size_t turn = 0;
    for (;;) {
      if (resident_.empty()) {
        if (!admit(only)) return;
        turn = 0;
      }
      if (turn >= resident_.size()) turn = 0;
      Group *group = resident_[turn];
      Outcome outcome = run(*group);
      if (group->more) group->left = std::exchange(group->more, 0);  // not even its first wave has begun
      if (group->left) put_back(*group);
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
    uint64_t index = batch_.next;
    if (launch.aborted.load(std::memory_order_relaxed)) {
      uint64_t count = batch_.end - index;
      batch_ = {};
      finish_groups(launch, count);
      return admit(only);
    }
    Group *group = spare_group();
    group->launch = &launch;
    for (unsigned axis = 0; axis < 3; ++axis) group->id[axis] = batch_.id[axis];
    if (launch.rows) group->more = static_cast<uint32_t>(std::min<uint64_t>(batch_.end - index, launch.grid[0] - group->id[0])) - 1;
    advance(batch_, 1 + group->more);
    if (config_.strict && !launch.cooperative) place_of(strict_order(index, launch.total), launch, group->id);
    begin(*group);
    resident_.push_back(group);
    waves_ += launch.waves();
    return true;
  }

  // Workgroups that a run was to go on with, where a wave of it has been suspended: others may wait for them.
  void put_back(Group &group) {
    batch_.next -= std::exchange(group.left, 0);
    std::copy(group.id, group.id + 3, batch_.id);
    ++batch_.id[0];
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
    if (!group.lds) group.lds = static_cast<uint8_t *>(aligned_alloc(4096, kMostLds + 4096));
    if (!group.lds) return false;
    if (scratch <= group.scratch_capacity) return true;
    if (group.scratch) munmap(group.scratch, group.scratch_capacity);
    for (Wave &wave : group.waves) wave.filled = 0;
    void *at = mmap(nullptr, scratch, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    group.scratch = at == MAP_FAILED ? nullptr : static_cast<uint8_t *>(at);
    group.scratch_capacity = group.scratch ? scratch : 0;
    return group.scratch != nullptr;
  }

  // Of a launch with another number of waves than the workgroup had.
  static void make_waves(Group &group, unsigned count) {
    group.waves.clear();
    group.waves.resize(count);
    group.begin = group.waves.data();
    group.end = group.begin + count;
    for (unsigned i = 0; i < count; ++i) {
      group.waves[i].group = &group;
      group.waves[i].index = i;
      group.waves[i].round = nullptr;
    }
  }

  void begin(Group &group) {
    Launch &launch = *group.launch;
    group.fibers = &fibers_;
    unsigned count = launch.waves();
    size_t scratch = size_t{count} * 32 * launch.scratch_size;
    if (group.waves.size() != count) make_waves(group, count);
    group.live = count;
    group.arrived = group.turns = group.ended = group.released = 0;
    group.executed = 0;
    for (Wave *wave = group.begin; wave != group.end; ++wave) {
      wave->fiber = nullptr;
      wave->state = WaveState::New;
      wave->range_generation = 0;
      wave->turns = 0;
    }
    if (!provide(group, scratch)) return record_fault(group, out_of_memory());
    if (config_.strict) {
      uint64_t salt = strict_mix(group.id[0], uint64_t{group.id[1]} << 32 | group.id[2]);
      strict_fill(group.lds, launch.lds_size, salt);
      if (scratch) strict_fill(group.scratch, scratch, salt + 1);
      group.first_wave = static_cast<unsigned>(salt % count);
    } else if (launch.lds_size) {  // of no bytes it takes long where the page does not exist yet
      memset(group.lds, 0, launch.lds_size);
    }
  }

  Outcome run(Group &group) {
    for (;;) {
      bool gave_way = false;
      size_t count = group.waves.size(), next = group.first_wave;
      for (size_t i = 0; i < count; ++i) {
        Wave &wave = group.waves[next];
        if (++next == count) next = 0;
        if (wave.state == WaveState::New && !begin_wave(group, wave)) {
          stop(group);
          return Outcome::Finished;
        }
        if (wave.state != WaveState::Ready) continue;
        fiber_resume(wave.fiber);
        Wave &now = *group.last;  // a later one where waves have ended, or waited for each other
        size_t done = now.index + (now.index < group.first_wave ? count : 0) - group.first_wave;
        if (done > i) {
          i = done;
          next = size_t{now.index} + 1;
          if (next == count) next = 0;
        }
        switch (now.event) {
          case Event::Stopped:
            stop(group);
            return Outcome::Finished;
          case Event::Ended:
            now.state = WaveState::Ended;
            fibers_.take_back(now);
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

  // Abandons the waves where they are: compiled code holds no resources to release.
  void stop(Group &group) {
    for (Wave &wave : group.waves) {
      if (!wave.fiber) continue;
      fibers_.abandon(wave);
      wave.state = WaveState::Ended;
    }
  }

  void retire(Group *group) {
    Launch &launch = *group->launch;
    waves_ -= launch.waves();
    if (ended_.launch != &launch) tell();
    ended_.launch = &launch;
    ended_.groups += 1 + group->ended;
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

  const Config &config_ = config();
  std::vector<Group *> resident_;
  std::vector<Group *> spare_;
  IdleFibers fibers_;
  Batch batch_;
  Ended ended_;
  unsigned waves_ = 0;
};

// A worker that no thread has, while this lives: a launch may run on any thread, and stacks and buffers that were used last
// are in the caches.
class Borrowed {
 public:
  Borrowed() {
    std::lock_guard<std::mutex> guard(idle().mutex);
    if (idle().workers.empty()) {
      worker_ = new Worker;
    } else {
      worker_ = idle().workers.back();
      idle().workers.pop_back();
    }
  }
  ~Borrowed() {
    std::lock_guard<std::mutex> guard(idle().mutex);
    idle().workers.push_back(worker_);
  }
  Borrowed(const Borrowed &) = delete;
  Borrowed &operator=(const Borrowed &) = delete;

  Worker *operator->() { return worker_; }

 private:
  struct Idle {
    std::mutex mutex;
    std::vector<Worker *> workers;
  };
  static Idle &idle() {
    static Idle *const instance = new Idle;
    return *instance;
  }

  Worker *worker_;
};

bool to_begin(const Board &b) {
  return std::any_of(b.active.begin(), b.active.end(), [](Launch *l) { return l->next < l->total; });
}

void help() {
  // The worker keeps its stacks and buffers for the next launch.
  Worker *worker = new Worker;
  Moment moment;
  Board &b = board();
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(b.mutex);
      if (!to_begin(b)) {
        const unsigned before = b.called.load(std::memory_order_relaxed);
        lock.unlock();
        moment.pass([&] { return b.called.load(std::memory_order_acquire) != before; });
        lock.lock();
      }
      b.work.wait(lock, [&] { return to_begin(b); });
    }
    worker->serve(nullptr);
  }
}

}  // namespace

void execute(Launch &launch) {
  Borrowed worker;
  Board &b = board();
  Watched watched(launch, g_runtime);
  launch.pending.store(launch.total);
  bool shared = launch.total > 1 && config().threads > 1;
  if (shared) {
    std::lock_guard<std::mutex> guard(b.mutex);
    b.active.push_back(&launch);
    b.called.fetch_add(1, std::memory_order_release);
    uint64_t wanted = std::min<uint64_t>(config().threads - 1, launch.total - 1) - (launch.helped ? 1 : 0);
    while (b.helpers < wanted && start_thread("sx-worker", help)) ++b.helpers;
    if (wanted == 1) b.work.notify_one();
    else if (wanted) b.work.notify_all();
  }
  worker->serve(&launch);
  // Others run the last of its workgroups.
  if (shared) worker->moment.pass([&] { return launch.done.load(std::memory_order_acquire); });
  std::unique_lock<std::mutex> lock(b.mutex);
  launch.finished.wait(lock, [&] { return launch.done.load(); });
  if (shared) b.active.erase(std::find(b.active.begin(), b.active.end(), &launch));
}

void help_with_launches() {
  if (config().threads == 1) return;
  Board &b = board();
  const unsigned before = b.called.load(std::memory_order_relaxed);
  auto some = [&] {
    std::lock_guard<std::mutex> guard(b.mutex);
    return to_begin(b);
  };
  // The launch that is waited for is about to begin.
  if (!some()) Moment::within(std::chrono::microseconds(5), [&] { return b.called.load(std::memory_order_acquire) != before; });
  if (some()) Borrowed()->serve(nullptr);
}

}  // namespace sx
