// Events, and waiting for them across streams.
#include "state.h"
#include "stream.h"

#include <ctime>
#include <unordered_map>

namespace sx {
namespace {

// One recording: an event may be recorded again while a thread waits for an earlier one.
struct Recording {
  bool done = false;
  uint64_t nanoseconds = 0;
  std::condition_variable reached;
};
using RecordingRef = std::shared_ptr<Recording>;

struct Event {
  unsigned flags = 0;
  RecordingRef last;  // null: never recorded
};

using EventTable = std::unordered_map<const void *, std::unique_ptr<Event>>;

// Guarded by stream_mutex().
EventTable &events() {
  static EventTable *const table = new EventTable;
  return *table;
}

Event *find(hipEvent_t handle) {
  auto found = events().find(handle);
  return found == events().end() ? nullptr : found->second.get();
}

uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void reach(const RecordingRef &recording) {
  std::lock_guard<std::mutex> guard(stream_mutex());
  recording->nanoseconds = now();
  recording->done = true;
  recording->reached.notify_all();
}

int create(hipEvent_t *handle, unsigned flags) {
  // The high bits choose fences of real devices.
  if (!handle || flags & 0x0ffffff8u) return hipErrorInvalidValue;
  auto event = std::make_unique<Event>();
  event->flags = flags;
  *handle = reinterpret_cast<hipEvent_t>(event.get());
  std::lock_guard<std::mutex> guard(stream_mutex());
  events()[*handle] = std::move(event);
  return 0;
}

int record(hipEvent_t handle, hipStream_t stream_handle) {
  StreamRef stream;
  if (int error = find_stream(stream_handle, stream)) return error;
  auto recording = std::make_shared<Recording>();
  {
    std::lock_guard<std::mutex> guard(stream_mutex());
    Event *event = find(handle);
    if (!event) return hipErrorInvalidHandle;
    event->last = recording;
  }
  if (stream_idle(stream)) reach(recording);
  else enqueue(stream, [recording] { reach(recording); }, true);
  return 0;
}

int synchronise(hipEvent_t handle) {
  std::unique_lock<std::mutex> lock(stream_mutex());
  Event *event = find(handle);
  if (!event) return hipErrorInvalidHandle;
  RecordingRef recording = event->last;
  if (recording) recording->reached.wait(lock, [&] { return recording->done; });
  return sticky_error();
}

int wait_in_stream(hipStream_t stream_handle, hipEvent_t handle) {
  StreamRef stream;
  if (int error = find_stream(stream_handle, stream)) return error;
  RecordingRef recording;
  {
    std::lock_guard<std::mutex> guard(stream_mutex());
    Event *event = find(handle);
    if (!event) return hipErrorInvalidHandle;
    recording = event->last;
    if (!recording || recording->done) return 0;
  }
  enqueue(stream, [recording] {
    std::unique_lock<std::mutex> lock(stream_mutex());
    recording->reached.wait(lock, [&] { return recording->done; });
  });
  return 0;
}

int elapsed(float *milliseconds, hipEvent_t start_handle, hipEvent_t stop_handle) {
  if (!milliseconds) return hipErrorInvalidValue;
  std::lock_guard<std::mutex> guard(stream_mutex());
  Event *start = find(start_handle), *stop = find(stop_handle);
  if (!start || !stop || !start->last || !stop->last) return hipErrorInvalidHandle;
  if ((start->flags | stop->flags) & hipEventDisableTiming) return hipErrorInvalidHandle;
  if (!start->last->done || !stop->last->done) return hipErrorNotReady;
  int64_t difference = static_cast<int64_t>(stop->last->nanoseconds - start->last->nanoseconds);
  *milliseconds = static_cast<float>(static_cast<double>(difference) * 1e-6);
  return 0;
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipEventCreate(hipEvent_t *event) {
  return call([&] { return create(event, 0); });
}

SX_API hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  return call([&] { return create(event, flags); });
}

SX_API hipError_t hipEventDestroy(hipEvent_t event) {
  return call([&]() -> int {
    std::lock_guard<std::mutex> guard(stream_mutex());
    return events().erase(event) ? 0 : hipErrorInvalidHandle;
  });
}

SX_API hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return call([&] { return record(event, stream); });
}

SX_API hipError_t hipEventSynchronize(hipEvent_t event) {
  return call([&] { return synchronise(event); });
}

SX_API hipError_t hipEventQuery(hipEvent_t handle) {
  return call([&]() -> int {
    std::lock_guard<std::mutex> guard(stream_mutex());
    Event *event = find(handle);
    if (!event) return hipErrorInvalidHandle;
    return !event->last || event->last->done ? sticky_error() : hipErrorNotReady;
  });
}

SX_API hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  return call([&] { return elapsed(milliseconds, start, stop); });
}

SX_API hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned) {
  return call([&] { return wait_in_stream(stream, event); });
}
