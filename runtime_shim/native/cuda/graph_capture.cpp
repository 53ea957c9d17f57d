// Capture: operations of a stream become nodes of a graph.
#include "graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace sx {
namespace {

// CU_STREAM_CAPTURE_MODE_*
enum : int { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

thread_local int g_mode = kGlobal;  // of the calling thread; its address names the thread

struct Capture {
  Graph *graph = nullptr;
  const void *origin = nullptr;
  unsigned long long id = 0;
  bool given = false;  // into a graph of the application's
  bool invalid = false;  // a call that was to be captured failed
  int mode = kGlobal;
  const void *thread = nullptr;  // that began it
};

// The predecessors of a stream's next node, or of one that waits for an event.
struct Position {
  std::shared_ptr<Capture> capture;
  std::vector<GraphNode *> last;
  bool blocking = true;  // of a stream: it waits for the legacy stream, and that for it
};

std::atomic<int> g_captures{0};  // so that the lock is skipped if nothing is captured

std::unordered_map<const void *, Position> &streams() {
  static auto *all = new std::unordered_map<const void *, Position>;
  return *all;
}
std::unordered_map<CUevent, Position> &events() {
  static auto *all = new std::unordered_map<CUevent, Position>;
  return *all;
}

// A thread's own default stream has the same handle in each thread.
const void *key_of(CUstream stream) {
  static thread_local char own;
  return stream == CU_STREAM_PER_THREAD ? static_cast<const void *>(&own) : stream;
}

Position *position_of(CUstream stream) {
  auto found = streams().find(key_of(stream));
  return found == streams().end() ? nullptr : &found->second;
}

// Of captures that have ended: they say nothing until they are recorded again.
std::unordered_set<CUevent> &stale() {
  static auto *all = new std::unordered_set<CUevent>;
  return *all;
}
std::atomic<size_t> g_stale{0};

bool waits_for_legacy(CUstream stream) {
  unsigned flags = 0;
  if (stream == CU_STREAM_PER_THREAD || !hip().hipStreamGetFlags) return true;
  return hip().hipStreamGetFlags(to_hip(stream), &flags) != hipSuccess || !(flags & 1);
}

// Whether using the stream would make a capture depend on the legacy stream.
bool is_implicit(CUstream stream) {
  if (stream && stream != CU_STREAM_LEGACY) return false;
  for (const auto &[key, position] : streams())
    if (position.blocking) return true;
  return false;
}

CUresult implicit() {
  for (auto &[key, position] : streams())
    if (position.blocking) position.capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

bool nothing() { return !g_captures.load(std::memory_order_relaxed); }

void merge(std::vector<GraphNode *> &into, const std::vector<GraphNode *> &more) {
  for (GraphNode *node : more)
    if (!std::count(into.begin(), into.end(), node)) into.push_back(node);
}

CUresult begin(CUstream stream, int mode, Graph *graph, const CUgraphNode *before, size_t count) {
  if (mode < 0 || mode > 2) return CUDA_ERROR_INVALID_VALUE;
  if (!stream || stream == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  if (position_of(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  static unsigned long long next = 1;
  Position position;
  for (size_t i = 0; i < count; ++i) {
    GraphNode *node = before ? find_node(before[i]) : nullptr;
    if (!node || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    merge(position.last, {node});
  }
  position.capture = std::make_shared<Capture>();
  position.capture->given = graph != nullptr;
  position.capture->graph = graph ? graph : new Graph;
  position.capture->origin = key_of(stream);
  position.capture->id = next++;
  position.capture->mode = mode;
  position.capture->thread = &g_mode;
  position.blocking = waits_for_legacy(stream);
  streams()[key_of(stream)] = std::move(position);
  ++g_captures;
  return CUDA_SUCCESS;
}

// `last` and all its predecessors.
std::unordered_set<const GraphNode *> reached(const std::vector<GraphNode *> &last) {
  std::unordered_set<const GraphNode *> all;
  std::vector<const GraphNode *> open(last.begin(), last.end());
  while (!open.empty()) {
    const GraphNode *node = open.back();
    open.pop_back();
    if (all.insert(node).second) open.insert(open.end(), node->before.begin(), node->before.end());
  }
  return all;
}

CUresult end(CUstream stream, CUgraph *out) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *position = position_of(stream);
  if (!position) return CUDA_ERROR_ILLEGAL_STATE;
  std::shared_ptr<Capture> capture = position->capture;
  if (capture->origin != key_of(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  auto joined = reached(position->last);
  CUresult result = out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  auto &all = streams();
  for (auto i = all.begin(); i != all.end();) {
    if (i->second.capture != capture) {
      ++i;
      continue;
    }
    for (const GraphNode *node : i->second.last)
      if (!capture->invalid && !joined.count(node)) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    i = all.erase(i);
  }
  auto &known = events();
  for (auto i = known.begin(); i != known.end();) {
    if (i->second.capture != capture) {
      ++i;
      continue;
    }
    stale().insert(i->first);
    i = known.erase(i);
  }
  g_stale = stale().size();
  --g_captures;
  if (result != CUDA_SUCCESS && !capture->given) delete capture->graph;
  if (out) *out = result == CUDA_SUCCESS ? handle_of(capture->graph) : nullptr;
  return result;
}

// 0 none, 1 active, 2 invalidated; the other results are optional.
CUresult capture_info(CUstream stream, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes,
                      const void **edges, size_t *count) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *found = nothing() ? nullptr : position_of(stream);
  *status = !found ? 0 : found->capture->invalid ? 2 : 1;
  if (id && found) *id = found->capture->id;
  if (graph) *graph = found ? handle_of(found->capture->graph) : nullptr;
  // They stay where they are until the stream is used again.
  static_assert(sizeof(GraphNode *) == sizeof(CUgraphNode), "an array of one is an array of the other");
  if (nodes) *nodes = found ? reinterpret_cast<const CUgraphNode *>(found->last.data()) : nullptr;
  if (edges) *edges = nullptr;
  if (count) *count = found ? found->last.size() : 0;
  return CUDA_SUCCESS;
}

CUresult update(CUstream stream, const CUgraphNode *nodes, size_t count, unsigned flags) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *position = position_of(stream);
  if (!position) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags > 1 || (count && !nodes)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> given;
  for (size_t i = 0; i < count; ++i) {
    GraphNode *node = find_node(nodes[i]);
    if (!node || node->graph != position->capture->graph) return CUDA_ERROR_INVALID_VALUE;
    given.push_back(node);
  }
  if (flags == 1) position->last.clear();  // 0 adds, 1 sets
  merge(position->last, given);
  return CUDA_SUCCESS;
}

}  // namespace

bool is_capturing(CUstream stream) {
  if (nothing()) return false;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  return position_of(stream) != nullptr || is_implicit(stream);
}

CUresult capture(CUstream stream, GraphWork work) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *position = position_of(stream);
  if (!position) return is_implicit(stream) ? implicit() : CUDA_ERROR_ILLEGAL_STATE;
  if (position->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  GraphNode *node = append(*position->capture->graph, nullptr, 0, std::move(work));
  node->before = position->last;
  position->last = {node};
  return CUDA_SUCCESS;
}

void invalidate_capture(CUstream stream) {
  if (nothing()) return;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  if (Position *position = position_of(stream)) position->capture->invalid = true;
}

CUresult refused_in_capture(CUstream stream) {
  if (nothing()) return CUDA_SUCCESS;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *position = position_of(stream);
  if (!position) return is_implicit(stream) ? implicit() : CUDA_SUCCESS;
  position->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool is_captured(CUevent event) {
  if (nothing()) return false;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  return events().count(event) != 0;
}

CUresult refused_as_captured(CUevent event) {
  if (nothing() && !g_stale) return CUDA_SUCCESS;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  if (stale().count(event)) return CUDA_ERROR_INVALID_VALUE;
  auto found = events().find(event);
  if (found == events().end()) return CUDA_SUCCESS;
  found->second.capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}

void forget_event(CUevent event) {
  if (nothing() && !g_stale) return;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  events().erase(event);
  stale().erase(event);
  g_stale = stale().size();
}

CUresult unsafe_in_capture() {
  if (nothing() || g_mode == kRelaxed) return CUDA_SUCCESS;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  CUresult result = CUDA_SUCCESS;
  for (auto &[key, position] : streams()) {
    Capture &capture = *position.capture;
    const bool own = capture.thread == &g_mode;
    if (own ? capture.mode == kRelaxed : capture.mode != kGlobal || g_mode != kGlobal) continue;
    capture.invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult device_in_capture() {
  if (nothing()) return CUDA_SUCCESS;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  for (auto &[key, position] : streams()) position.capture->invalid = true;
  return streams().empty() ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

bool captured_record(CUevent event, CUstream stream, CUresult &result) {
  if (nothing() && !g_stale) return false;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *position = position_of(stream);
  if (!position && is_implicit(stream)) return result = implicit(), true;
  forget_event(event);
  if (!position) return false;
  events()[event] = *position;
  result = CUDA_SUCCESS;
  return true;
}

bool captured_wait(CUstream stream, CUevent event, CUresult &result) {
  if (nothing()) return false;
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Position *mine = position_of(stream);
  auto found = events().find(event);
  bool theirs = found != events().end();
  if (!mine && is_implicit(stream)) return result = implicit(), true;
  if (!mine && !theirs) return false;
  result = CUDA_SUCCESS;
  if (!theirs) {
    result = stale().count(event) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (stale().count(event)) mine->capture->invalid = true;
  }
  // A stream that waits for captured work is captured from here on.
  else if (!mine) {
    Position &joined = streams()[key_of(stream)] = found->second;
    joined.blocking = waits_for_legacy(stream);
  }
  else if (mine->capture != found->second.capture) result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
  else merge(mine->last, found->second.last);
  return true;
}

}  // namespace sx

using namespace sx;

#define SX_CAPTURE(name, params, ...)                                                        \
  SX_API name params {                                                                       \
    return enter<Need::Context>(__func__, [&]() -> CUresult { return __VA_ARGS__; });        \
  }                                                                                          \
  SX_API name##_ptsz params {                                                                \
    if (!s) s = CU_STREAM_PER_THREAD;                                                        \
    return enter<Need::Context>(__func__, [&]() -> CUresult { return __VA_ARGS__; });        \
  }

SX_CAPTURE(cuStreamBeginCapture_v2, (CUstream s, int mode), begin(s, mode, nullptr, nullptr, 0))
SX_CAPTURE(cuStreamBeginCaptureToGraph,
           (CUstream s, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *, size_t count, int mode),
           find_graph(graph) ? begin(s, mode, find_graph(graph), nodes, count) : CUDA_ERROR_INVALID_VALUE)
SX_CAPTURE(cuStreamEndCapture, (CUstream s, CUgraph *graph), end(s, graph))
SX_CAPTURE(cuStreamIsCapturing, (CUstream s, int *status),
           capture_info(s, status, nullptr, nullptr, nullptr, nullptr, nullptr))
SX_CAPTURE(cuStreamGetCaptureInfo, (CUstream s, int *status, cuuint64_t *id),
           capture_info(s, status, id, nullptr, nullptr, nullptr, nullptr))
SX_CAPTURE(cuStreamGetCaptureInfo_v2,
           (CUstream s, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *n),
           capture_info(s, status, id, graph, nodes, nullptr, n))
SX_CAPTURE(cuStreamGetCaptureInfo_v3,
           (CUstream s, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **nodes, const void **edges,
            size_t *n),
           capture_info(s, status, id, graph, nodes, edges, n))
SX_CAPTURE(cuStreamUpdateCaptureDependencies, (CUstream s, CUgraphNode *nodes, size_t count, unsigned flags),
           update(s, nodes, count, flags))
SX_CAPTURE(cuStreamUpdateCaptureDependencies_v2,
           (CUstream s, CUgraphNode *nodes, const CUgraphEdgeData *, size_t count, unsigned flags),
           update(s, nodes, count, flags))

SX_API cuThreadExchangeStreamCaptureMode(int *mode) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!mode || *mode < kGlobal || *mode > kRelaxed) return CUDA_ERROR_INVALID_VALUE;
    std::swap(*mode, g_mode);
    return CUDA_SUCCESS;
  });
}
