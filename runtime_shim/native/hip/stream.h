// Streams: queues of operations, each worked off in order by a thread of the library.
//
// One mutex guards all queues and events: what must be ordered is small, and the default stream's rules
// look at every stream.
#pragma once
#include "hip.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace sx {

struct Stream;
using StreamRef = std::shared_ptr<Stream>;

// All operations of `stream` up to `sequence`.
struct Mark {
  StreamRef stream;
  uint64_t sequence;
};

struct Operation {
  uint64_t sequence = 0;
  std::vector<Mark> after;  // what must have ended before, in other streams
  std::function<void()> run;
  bool lendable = false;  // may run on a thread of the application that waits for it
};

constexpr int kGreatestPriority = -5;  // an H200's; no work is done earlier for it

struct Stream {
  unsigned flags = 0;
  int priority = 0;
  bool blocking = true;  // orders itself with the legacy default stream
  bool legacy = false;
  uint64_t enqueued = 0, completed = 0;  // sequence numbers
  bool running = false;                  // some thread works the queue off
  std::deque<Operation> queue;
  std::condition_variable progress;      // `completed` has grown
};

std::mutex &stream_mutex();

// The stream of a handle (0 and 1: legacy, 2: the calling thread's): 0 or hipErrorInvalidHandle.
int find_stream(hipStream_t handle, StreamRef &stream);

// Appends an operation.  It runs on a thread of the library, or, if it is `lendable`, on one that waits for it.
void enqueue(const StreamRef &stream, std::function<void()> run, bool lendable = false);
// Runs an operation in the stream's order and returns when it has ended; on the calling thread where
// nothing is before it.
void run_in_order(const StreamRef &stream, const std::function<void()> &run);

// Waits for everything enqueued so far in the stream (for the legacy stream: in all blocking streams).
void wait_stream(const StreamRef &stream);
bool stream_idle(const StreamRef &stream);
void wait_all_streams();
// Invalidates the handles of all created streams (hipDeviceReset).
void streams_reset();

// True on a thread that runs a callback of the application, which may not call the library.
bool in_callback();
// True on a thread of the application that runs the first of what it waits for: a thread of the library is about to help
// with that.
bool helped_thread();

}  // namespace sx
