#include "stream.h"

#include "launch.h"
#include "log.h"
#include "moment.h"
#include "per_thread.h"
#include "state.h"
#include "threads.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>

namespace sx {
namespace {

// Lives as long as the process: threads still wait here while static objects are destroyed.
struct Streams {
  std::mutex mutex;
  std::condition_variable ready_changed;
  std::deque<StreamRef> ready;  // running, but without a thread yet
  unsigned idle = 0;            // threads that wait for a stream
  unsigned watching = 0;        // of these, those that look at `called`, and need not be woken
  std::atomic<unsigned> called{0};  // times that a stream became ready
  // Streams that a waiting thread has taken from the thread that was to run them, which helps with their launches then.
  std::atomic<unsigned> lent{0};
  std::unordered_map<const void *, StreamRef> created;
  std::vector<std::weak_ptr<Stream>> per_thread;
  StreamRef legacy;

  Streams() : legacy(std::make_shared<Stream>()) { legacy->legacy = true; }
};

Streams &streams() {
  static Streams *const instance = new Streams;
  return *instance;
}

thread_local bool t_in_callback = false;
thread_local bool t_lent = false;    // runs operations of a stream that it waits for
thread_local bool t_helped = false;  // and this one is the first, for which a thread was woken

template <class Visit>
void for_each(Streams &s, Visit visit) {
  visit(s.legacy);
  for (auto &entry : s.created) visit(entry.second);
  for (auto &weak : s.per_thread)
    if (StreamRef stream = weak.lock()) visit(stream);
}

void add_mark(std::vector<Mark> &marks, const StreamRef &stream) {
  if (stream->completed < stream->enqueued) marks.push_back({stream, stream->enqueued});
}

// What a new operation of `stream` has to wait for besides its predecessors: the legacy default stream
// waits for every blocking stream, and every blocking stream for it.
std::vector<Mark> predecessors(Streams &s, const StreamRef &stream) {
  std::vector<Mark> marks;
  if (stream->legacy) {
    for_each(s, [&](const StreamRef &other) {
      if (other->blocking && !other->legacy) add_mark(marks, other);
    });
  } else if (stream->blocking) {
    add_mark(marks, s.legacy);
  }
  return marks;
}

void wait_marks(const std::vector<Mark> &marks, std::unique_lock<std::mutex> &lock) {
  for (const Mark &mark : marks)
    mark.stream->progress.wait(lock, [&] { return mark.stream->completed >= mark.sequence; });
}

void complete(Stream &stream, uint64_t sequence) {
  stream.completed = sequence;
  stream.progress.notify_all();
}

// Runs the stream's first operation.  Called and left with the lock held.
void run_next(const StreamRef &stream, std::unique_lock<std::mutex> &lock) noexcept {
  Operation operation = std::move(stream->queue.front());
  stream->queue.pop_front();
  wait_marks(operation.after, lock);
  lock.unlock();
  operation.run();
  operation.run = nullptr;  // its captures are destroyed before its end is visible
  lock.lock();
  complete(*stream, operation.sequence);
}

// Runs the stream's operations until there are none.  Called and left with the lock held.
void work_off(const StreamRef &stream, std::unique_lock<std::mutex> &lock) {
  while (!stream->queue.empty()) run_next(stream, lock);
  stream->running = false;
}

// Waits until a stream is ready or one was lent.  Called and left with the lock held.
void await_call(Streams &s, Moment &moment, bool helped, std::unique_lock<std::mutex> &lock) {
  auto come = [&s] { return !s.ready.empty() || s.lent.load(std::memory_order_relaxed); };
  ++s.idle;
  if (!come() && config().threads > 1) {
    ++s.watching;
    const unsigned before = s.called.load(std::memory_order_relaxed);
    lock.unlock();
    moment.pass([&] { return s.called.load(std::memory_order_acquire) != before; });
    lock.lock();
    --s.watching;
  }
  // Where the last launch was waited for at once, this one is, most likely.
  if (helped && !s.ready.empty() && !s.lent.load(std::memory_order_relaxed)) {
    lock.unlock();
    Moment::within(std::chrono::microseconds(5), [&] { return s.lent.load(std::memory_order_acquire) != 0; });
    lock.lock();
  }
  s.ready_changed.wait(lock, come);
  --s.idle;
}

void runner() {
  Streams &s = streams();
  Moment moment;
  bool helped = false;
  std::unique_lock<std::mutex> lock(s.mutex);
  for (;;) {
    await_call(s, moment, helped, lock);
    helped = s.lent.load(std::memory_order_relaxed) != 0;
    if (helped) {
      s.lent.fetch_sub(1, std::memory_order_relaxed);
      lock.unlock();
      help_with_launches();
      lock.lock();
      continue;
    }
    StreamRef stream = std::move(s.ready.front());
    s.ready.pop_front();
    work_off(stream, lock);
  }
}

// Finds a thread for the stream, whose queue is not empty; where the system allows none, the calling thread works it
// off before it continues, or nothing would ever run.  Called and left with the lock held.
void dispatch(Streams &s, const StreamRef &stream, std::unique_lock<std::mutex> &lock) {
  stream->running = true;
  s.ready.push_back(stream);
  s.called.fetch_add(1, std::memory_order_release);
  const size_t wanted = s.ready.size() + s.lent.load(std::memory_order_relaxed);  // threads
  if (s.idle >= wanted) {
    if (s.watching < wanted) s.ready_changed.notify_one();
  } else if (!start_thread("sx-stream", runner)) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) log_line("SX0655: cannot start a thread for a stream; its work runs synchronously");
    s.ready.pop_back();
    work_off(stream, lock);
  }
}

// Whether a waiting thread may run the stream's operations up to a mark's: launches that no thread has begun with.
bool lendable(const Stream &stream, uint64_t sequence) {
  constexpr size_t kMost = 16;  // of more, a thread will have begun with the first meanwhile
  if (stream.queue.size() > kMost) return false;
  for (const Operation &operation : stream.queue) {
    if (operation.sequence > sequence) break;
    if (!operation.lendable) return false;
    for (const Mark &mark : operation.after)
      if (mark.stream->completed < mark.sequence) return false;
  }
  return true;
}

// Before a thread of the application waits: what it waits for runs on it, if no other thread has begun with that.  So none
// has to be woken at the launch's end, and the one that was woken at its beginning helps.  With the lock held.
void lend(Streams &s, const Mark &mark, std::unique_lock<std::mutex> &lock) {
  const StreamRef &stream = mark.stream;
  if (stream->completed >= mark.sequence || !lendable(*stream, mark.sequence)) return;
  auto found = std::find(s.ready.begin(), s.ready.end(), stream);
  if (found == s.ready.end()) return;
  s.ready.erase(found);
  s.lent.fetch_add(1, std::memory_order_release);
  t_lent = t_helped = true;
  while (stream->completed < mark.sequence) {
    run_next(stream, lock);
    t_helped = false;  // the woken thread may have gone, and others ask for their workers
  }
  t_lent = false;
  if (stream->queue.empty()) stream->running = false;
  else dispatch(s, stream, lock);
}

// As wait_marks, for a thread of the application.
void await(Streams &s, const std::vector<Mark> &marks, std::unique_lock<std::mutex> &lock) {
  for (const Mark &mark : marks) lend(s, mark, lock);
  wait_marks(marks, lock);
}

StreamRef thread_stream() {
  struct Own {
    StreamRef stream;
  };
  StreamRef &stream = PerThread<Own>::get().stream;
  if (!stream) {
    stream = std::make_shared<Stream>();
    std::lock_guard<std::mutex> guard(streams().mutex);
    auto &list = streams().per_thread;
    for (size_t i = 0; i < list.size();)
      if (list[i].expired()) list.erase(list.begin() + static_cast<ptrdiff_t>(i));
      else ++i;
    list.push_back(stream);
  }
  return stream;
}

}  // namespace

std::mutex &stream_mutex() { return streams().mutex; }

// Also on a thread that runs a launch while it waits: what calls then is a handler of a signal.
bool in_callback() { return t_in_callback || t_lent; }

bool helped_thread() { return t_helped; }

int find_stream(hipStream_t handle, StreamRef &stream) {
  Streams &s = streams();
  if (handle == nullptr || handle == hipStreamLegacy) {
    stream = s.legacy;
  } else if (handle == hipStreamPerThread) {
    stream = thread_stream();
  } else {
    std::lock_guard<std::mutex> guard(s.mutex);
    auto found = s.created.find(handle);
    if (found == s.created.end()) return hipErrorInvalidHandle;
    stream = found->second;
  }
  return 0;
}

void enqueue(const StreamRef &stream, std::function<void()> run, bool lendable) {
  Streams &s = streams();
  std::unique_lock<std::mutex> lock(s.mutex);
  Operation operation;
  operation.after = predecessors(s, stream);
  operation.run = std::move(run);
  operation.lendable = lendable;
  operation.sequence = ++stream->enqueued;
  stream->queue.push_back(std::move(operation));
  if (!stream->running) dispatch(s, stream, lock);
}

void run_in_order(const StreamRef &stream, const std::function<void()> &run) {
  Streams &s = streams();
  std::unique_lock<std::mutex> lock(s.mutex);
  std::vector<Mark> after = predecessors(s, stream);
  uint64_t sequence = ++stream->enqueued;
  if (!stream->running && after.empty()) {
    stream->running = true;
    lock.unlock();
    run();
    lock.lock();
    complete(*stream, sequence);
    if (stream->queue.empty()) stream->running = false;
    else dispatch(s, stream, lock);
    return;
  }
  Operation operation;
  operation.after = std::move(after);
  operation.run = run;
  operation.sequence = sequence;
  operation.lendable = true;
  stream->queue.push_back(std::move(operation));
  if (!stream->running) dispatch(s, stream, lock);
  await(s, {{stream, sequence}}, lock);
}

void wait_stream(const StreamRef &stream) {
  Streams &s = streams();
  std::unique_lock<std::mutex> lock(s.mutex);
  std::vector<Mark> marks;
  add_mark(marks, stream);
  if (stream->legacy)
    for (Mark &mark : predecessors(s, stream)) marks.push_back(std::move(mark));
  await(s, marks, lock);
}

bool stream_idle(const StreamRef &stream) {
  Streams &s = streams();
  std::lock_guard<std::mutex> guard(s.mutex);
  return stream->completed == stream->enqueued && (!stream->legacy || predecessors(s, stream).empty());
}

void wait_all_streams() {
  Streams &s = streams();
  std::unique_lock<std::mutex> lock(s.mutex);
  std::vector<Mark> marks;
  for_each(s, [&](const StreamRef &stream) { add_mark(marks, stream); });
  await(s, marks, lock);
}

void streams_reset() {
  Streams &s = streams();
  std::unordered_map<const void *, StreamRef> gone;
  std::lock_guard<std::mutex> guard(s.mutex);
  gone.swap(s.created);
}

namespace {

int create_stream(hipStream_t *handle, unsigned flags, int priority) {
  if (!handle || flags & ~unsigned{hipStreamNonBlocking}) return hipErrorInvalidValue;
  StreamRef stream = std::make_shared<Stream>();
  stream->flags = flags;
  stream->priority = priority;
  stream->blocking = !(flags & hipStreamNonBlocking);
  std::lock_guard<std::mutex> guard(streams().mutex);
  streams().created[stream.get()] = stream;
  *handle = reinterpret_cast<hipStream_t>(stream.get());
  return 0;
}

int destroy_stream(hipStream_t handle) {
  // Operations that are still queued keep the stream alive and run to their end.
  StreamRef gone;
  std::lock_guard<std::mutex> guard(streams().mutex);
  auto found = streams().created.find(handle);
  if (found == streams().created.end()) return hipErrorInvalidHandle;
  gone = std::move(found->second);
  streams().created.erase(found);
  return 0;
}

template <class Body>
void run_callback(Body body) {
  t_in_callback = true;
  body();
  t_in_callback = false;
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipStreamCreate(hipStream_t *stream) {
  return call([&] { return create_stream(stream, 0, 0); });
}

SX_API hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned flags) {
  return call([&] { return create_stream(stream, flags, 0); });
}

SX_API hipError_t hipStreamCreateWithPriority(hipStream_t *stream, unsigned flags, int priority) {
  return call([&] { return create_stream(stream, flags, std::clamp(priority, kGreatestPriority, 0)); });
}

SX_API hipError_t hipStreamDestroy(hipStream_t stream) {
  return call([&] { return destroy_stream(stream); });
}

SX_API hipError_t hipStreamSynchronize(hipStream_t handle) {
  return call([&] {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    wait_stream(stream);
    return sticky_error();
  });
}

SX_API hipError_t hipStreamQuery(hipStream_t handle) {
  return call([&]() -> int {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    return stream_idle(stream) ? sticky_error() : hipErrorNotReady;
  });
}

SX_API hipError_t hipStreamGetFlags(hipStream_t handle, unsigned *flags) {
  return call([&]() -> int {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    if (!flags) return hipErrorInvalidValue;
    *flags = stream->flags;
    return 0;
  });
}

SX_API hipError_t hipStreamGetPriority(hipStream_t handle, int *priority) {
  return call([&]() -> int {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    if (!priority) return hipErrorInvalidValue;
    *priority = stream->priority;
    return 0;
  });
}

SX_API hipError_t hipStreamAddCallback(hipStream_t handle, hipStreamCallback_t callback, void *user,
                                       unsigned flags) {
  return call([&]() -> int {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    if (!callback || flags) return hipErrorInvalidValue;
    // CUDA calls it after an error too, with that error as its argument.
    enqueue(stream, [=] { run_callback([&] { callback(handle, sticky_error(), user); }); });
    return 0;
  });
}

SX_API hipError_t hipLaunchHostFunc(hipStream_t handle, hipHostFn_t function, void *user) {
  return call([&]() -> int {
    StreamRef stream;
    if (int error = find_stream(handle, stream)) return error;
    if (!function) return hipErrorInvalidValue;
    enqueue(stream, [=] {
      if (!sticky_error()) run_callback([&] { function(user); });
    });
    return 0;
  });
}
