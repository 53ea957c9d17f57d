// Queues: a thread for each, which looks for packets as the card's command processor would.
#include "card.h"

#include "../hip/threads.h"
#include "log.h"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>

namespace sx::kfd {
namespace {

constexpr uint64_t kDoorbellPage = 8192;

struct Running {
  Queue queue;
  std::atomic<bool> stop{false};
  bool over = false;  // under the mutex
};

struct Queues {
  std::mutex mutex;
  std::condition_variable ended;
  std::map<uint32_t, std::shared_ptr<Running>> all;
  std::shared_ptr<Running> starting;  // for the thread that is being started
};

Queues &queues() {
  static Queues *const one = new Queues;
  return *one;
}

void sleep_for(long nanoseconds) {
  timespec time = {0, nanoseconds};
  nanosleep(&time, nullptr);
}

// How long to sleep after so many looks in vain: a program that waits for each kernel loses little, and one that is
// busy elsewhere is not disturbed.
long idle_time(uint64_t looks) { return looks < 200 ? 20000 : looks < 2000 ? 100000 : 500000; }

void serve() {
  std::shared_ptr<Running> mine;
  {
    Queues &q = queues();
    std::lock_guard<std::mutex> guard(q.mutex);
    mine.swap(q.starting);
    q.ended.notify_all();
  }
  bool failed = false;
  for (uint64_t looks = 0; !mine->stop.load(std::memory_order_acquire);) {
    Progress progress;
    if (!failed) progress = mine->queue.type == kQueueAql ? run_aql(mine->queue) : run_sdma(mine->queue);
    failed = failed || progress.failed;
    looks = progress.any ? 0 : looks + 1;
    if (!progress.any) sleep_for(idle_time(looks));
  }
  Queues &q = queues();
  std::lock_guard<std::mutex> guard(q.mutex);
  mine->over = true;
  q.ended.notify_all();
}

}  // namespace

int queue_create(CreateQueueArgs &args) {
  bool sdma = args.type == kQueueSdma || args.type == kQueueSdmaXgmi || args.type == kQueueSdmaByEngine;
  if (args.type != kQueueAql && !sdma) {
    log_line("SX0870: the emulated card has no queues of type %u", args.type);
    return EINVAL;
  }
  if (args.gpu_id != kGpuId || !args.ring || !args.ring_size || args.ring_size & (args.ring_size - 1) || !args.read_pointer ||
      !args.write_pointer)
    return EINVAL;
  Queues &q = queues();
  std::unique_lock<std::mutex> lock(q.mutex);
  uint32_t id = 1;
  while (q.all.count(id)) ++id;
  if (uint64_t{id} * 8 >= kDoorbellPage) return ENOSPC;
  auto made = std::make_shared<Running>();
  Queue &queue = made->queue;
  queue.id = id;
  queue.type = args.type;
  queue.ring = args.ring;
  queue.size = args.ring_size;
  queue.read_pointer = reinterpret_cast<volatile uint64_t *>(args.read_pointer);
  queue.write_pointer = reinterpret_cast<volatile uint64_t *>(args.write_pointer);
  queue.save = sdma ? nullptr : reinterpret_cast<const ContextSaveHeader *>(args.context_save);
  q.ended.wait(lock, [&] { return !q.starting; });
  q.all[id] = made;
  q.starting = made;
  if (!start_thread("sx-queue", serve)) {
    q.starting.reset();
    q.all.erase(id);
    return ENOMEM;
  }
  q.ended.wait(lock, [&] { return q.starting != made; });
  args.queue_id = id;
  args.doorbell_offset = kMapDoorbell | uint64_t{id} * 8;
  return 0;
}

int queue_destroy(uint32_t id) {
  Queues &q = queues();
  std::unique_lock<std::mutex> lock(q.mutex);
  auto found = q.all.find(id);
  if (found == q.all.end()) return EINVAL;
  std::shared_ptr<Running> gone = found->second;
  gone->stop.store(true, std::memory_order_release);
  q.ended.wait(lock, [&] { return gone->over; });
  q.all.erase(id);
  return 0;
}

void queue_exception(const Queue &queue, uint32_t code) {
  if (!queue.save || !queue.save->error_reason) return;
  __atomic_fetch_or(reinterpret_cast<uint64_t *>(queue.save->error_reason), uint64_t{1} << (code - 1), __ATOMIC_RELEASE);
  if (queue.save->error_event) event_set(queue.save->error_event, true);
}

void signal_complete(uint64_t handle, uint64_t began) {
  if (!handle) return;
  auto *signal = reinterpret_cast<Signal *>(handle);
  signal->start = began;
  signal->end = ticks();
  // The signal may be gone once it has its value.
  uint64_t mailbox = signal->mailbox;
  uint32_t event = signal->event_id;
  __atomic_fetch_sub(&signal->value, 1, __ATOMIC_ACQ_REL);
  if (!mailbox) return;
  __atomic_store_n(reinterpret_cast<uint64_t *>(mailbox), event, __ATOMIC_RELEASE);
  event_set(event, true);
}

}  // namespace sx::kfd
