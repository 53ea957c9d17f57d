// Events, and waiting for them, as the driver has it: every waiter of an event that is set wakes, and one that no thread
// waited for stays set (auto reset: until somebody does).
#include "card.h"

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

namespace sx::kfd {
namespace {

constexpr uint32_t kEvents = 4096;  // slots of the page that AMD's runtime has for them
constexpr uint32_t kForever = 0xffffffff;

struct Event {
  uint32_t type = 0;
  bool auto_reset = false, set = false;
  uint64_t age = 1;
  unsigned waiters = 0;
  MemoryException fault = {};
};

struct Events {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uint32_t, Event> all;
};

Events &events() {
  static Events *const one = new Events;  // threads of queues outlive static destructors
  return *one;
}

void wake(Event &event) {
  event.set = !event.auto_reset || !event.waiters;
  if (!++event.age) event.age = 2;  // 0 says that no age is known
}

struct Waiter {
  EventData *data;
  Event *event;
  uint64_t age;
  bool active;
};

bool look(std::vector<Waiter> &waiters, bool all) {
  size_t active = 0;
  for (Waiter &waiter : waiters) {
    waiter.active = waiter.active || waiter.event->age != waiter.age;
    active += waiter.active;
  }
  return all ? active == waiters.size() : active > 0;
}

}  // namespace

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

int event_create(CreateEventArgs &args) {
  Events &e = events();
  std::lock_guard<std::mutex> guard(e.mutex);
  uint32_t id = 1;
  for (const auto &event : e.all) {
    if (event.first != id) break;
    ++id;
  }
  if (id >= kEvents) return ENOSPC;
  Event &made = e.all[id];
  made.type = args.type;
  made.auto_reset = args.auto_reset != 0;
  args.event_id = args.slot = args.trigger_data = id;
  args.page_offset = kMapEvents;
  return 0;
}

int event_destroy(uint32_t id) {
  Events &e = events();
  std::unique_lock<std::mutex> lock(e.mutex);
  auto found = e.all.find(id);
  if (found == e.all.end()) return EINVAL;
  wake(found->second);
  e.changed.notify_all();
  e.changed.wait(lock, [&] { return found->second.waiters == 0; });
  e.all.erase(found);
  return 0;
}

int event_set(uint32_t id, bool set) {
  Events &e = events();
  std::lock_guard<std::mutex> guard(e.mutex);
  auto found = e.all.find(id);
  if (found == e.all.end()) return EINVAL;
  if (set) wake(found->second);
  else found->second.set = false;
  e.changed.notify_all();
  return 0;
}

void event_memory_fault(uint64_t address, bool write) {
  Events &e = events();
  std::lock_guard<std::mutex> guard(e.mutex);
  for (auto &[id, event] : e.all) {
    if (event.type != kEventMemory) continue;
    event.fault = {1, write ? 1u : 0u, 0, 0, address & ~uint64_t{4095}, kGpuId, 0};
    wake(event);
  }
  e.changed.notify_all();
}

void event_hardware_exception() {
  Events &e = events();
  std::lock_guard<std::mutex> guard(e.mutex);
  for (auto &[id, event] : e.all)
    if (event.type == kEventHardware) wake(event);
  e.changed.notify_all();
}

int event_wait(WaitArgs &args) {
  auto *data = reinterpret_cast<EventData *>(args.events);
  Events &e = events();
  std::unique_lock<std::mutex> lock(e.mutex);
  std::vector<Waiter> waiters;
  waiters.reserve(args.count);
  for (uint32_t i = 0; i < args.count; ++i) {
    auto found = e.all.find(data[i].event_id);
    if (found == e.all.end()) return EINVAL;
    waiters.push_back({&data[i], &found->second, found->second.age, false});
  }
  for (Waiter &waiter : waiters) {
    Event &event = *waiter.event;
    waiter.active = event.set || (event.type == kEventSignal && waiter.data->last_age && waiter.data->last_age != event.age);
    event.set = event.set && !event.auto_reset;
    ++event.waiters;
  }
  auto done = [&] { return look(waiters, args.all != 0); };
  bool complete = true;
  if (args.timeout == kForever) e.changed.wait(lock, done);
  else complete = e.changed.wait_for(lock, std::chrono::milliseconds(args.timeout), done);
  for (Waiter &waiter : waiters) {
    Event &event = *waiter.event;
    if (event.type == kEventMemory) {
      if (waiter.active) waiter.data->memory = event.fault;
    } else if (event.type == kEventHardware) {
      if (waiter.active) waiter.data->hardware = {0, 0, 1, kGpuId};
    } else if (event.type == kEventSignal) {
      waiter.data->last_age = event.age;
    }
    if (--event.waiters == 0) e.changed.notify_all();
  }
  args.result = complete ? 0 : 1;
  return 0;
}

}  // namespace sx::kfd
