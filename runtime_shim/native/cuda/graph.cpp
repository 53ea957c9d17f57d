#include "graph.h"

#include "handles.h"

#include <algorithm>
#include <unordered_map>

namespace sx {
namespace {

struct Graph {
  std::vector<GraphNode> nodes;
  CUstream origin = nullptr;
  unsigned long long id = 0;
};

std::mutex g_mutex;
std::atomic<int> g_captures{0};  // so that nobody looks where nothing is captured

std::unordered_map<CUstream, Graph *> &streams() {
  static auto *all = new std::unordered_map<CUstream, Graph *>;
  return *all;
}
std::unordered_map<CUevent, Graph *> &events() {
  static auto *all = new std::unordered_map<CUevent, Graph *>;
  return *all;
}

// Under the mutex.
Graph *graph_of(CUstream stream) {
  auto found = streams().find(stream);
  return found == streams().end() ? nullptr : found->second;
}

CUresult begin(CUstream stream) {
  if (!stream || stream == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::lock_guard<std::mutex> guard(g_mutex);
  if (graph_of(stream)) return CUDA_ERROR_ILLEGAL_STATE;
  static unsigned long long next = 1;
  auto *graph = new Graph;
  graph->origin = stream;
  graph->id = next++;
  streams()[stream] = graph;
  ++g_captures;
  return CUDA_SUCCESS;
}

CUresult end(CUstream stream, CUgraph *out) {
  std::lock_guard<std::mutex> guard(g_mutex);
  Graph *graph = graph_of(stream);
  if (!graph) return CUDA_ERROR_ILLEGAL_STATE;
  if (graph->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  auto &all = streams();
  for (auto i = all.begin(); i != all.end();) i = i->second == graph ? all.erase(i) : std::next(i);
  auto &known = events();
  for (auto i = known.begin(); i != known.end();) i = i->second == graph ? known.erase(i) : std::next(i);
  --g_captures;
  if (!out) {
    delete graph;
    return CUDA_ERROR_INVALID_VALUE;
  }
  Handles<Graph>::all().add(graph);
  *out = reinterpret_cast<CUgraph>(graph);
  return CUDA_SUCCESS;
}

CUresult create(CUgraph *out, unsigned flags) {
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  auto *graph = new Graph;
  Handles<Graph>::all().add(graph);
  *out = reinterpret_cast<CUgraph>(graph);
  return CUDA_SUCCESS;
}

// A graph that can be launched is the graph as it was: later changes of that one do not reach it.
struct Exec {
  std::vector<GraphNode> nodes;
};

CUresult instantiate(CUgraphExec *out, CUgraph handle) {
  Graph *graph = Handles<Graph>::all().find(handle);
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  auto *exec = new Exec{graph->nodes};
  Handles<Exec>::all().add(exec);
  *out = reinterpret_cast<CUgraphExec>(exec);
  return CUDA_SUCCESS;
}

CUresult launch_graph(CUgraphExec handle, CUstream stream) {
  Exec *exec = Handles<Exec>::all().find(handle);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  for (const GraphNode &node : exec->nodes) {
    CUresult result = node(stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

template <typename T, typename H>
CUresult destroy(H handle) {
  T *object = Handles<T>::all().find(handle);
  if (!object || !Handles<T>::all().remove(object)) return CUDA_ERROR_INVALID_VALUE;
  delete object;
  return CUDA_SUCCESS;
}

// 0 none, 1 active; other results of the calls that ask are optional.
CUresult capture_info(CUstream stream, int *status, cuuint64_t *id, CUgraph *graph, size_t *dependencies) {
  if (!status) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(g_mutex);
  Graph *found = g_captures ? graph_of(stream) : nullptr;
  *status = found ? 1 : 0;
  if (id && found) *id = found->id;
  if (graph) *graph = reinterpret_cast<CUgraph>(found);
  if (dependencies) *dependencies = 0;
  return CUDA_SUCCESS;
}

}  // namespace

bool is_capturing(CUstream stream) {
  if (!g_captures.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> guard(g_mutex);
  return graph_of(stream) != nullptr;
}

bool captured(CUstream stream, GraphNode node) {
  if (!g_captures.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> guard(g_mutex);
  Graph *graph = graph_of(stream);
  if (graph) graph->nodes.push_back(std::move(node));
  return graph != nullptr;
}

bool captured_record(CUevent event, CUstream stream, CUresult &result) {
  if (!g_captures.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> guard(g_mutex);
  Graph *graph = graph_of(stream);
  if (!graph) {
    events().erase(event);
    return false;
  }
  events()[event] = graph;
  result = CUDA_SUCCESS;
  return true;
}

bool captured_wait(CUstream stream, CUevent event, CUresult &result) {
  if (!g_captures.load(std::memory_order_relaxed)) return false;
  std::lock_guard<std::mutex> guard(g_mutex);
  Graph *mine = graph_of(stream);
  auto found = events().find(event);
  Graph *theirs = found == events().end() ? nullptr : found->second;
  if (!mine && !theirs) return false;
  // A stream that waits for captured work is captured from here on.
  if (!mine) streams()[stream] = theirs;
  result = !theirs ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION
           : mine && mine != theirs ? CUDA_ERROR_STREAM_CAPTURE_MERGE
                                    : CUDA_SUCCESS;
  return true;
}

}  // namespace sx

using namespace sx;

SX_API cuStreamBeginCapture_v2(CUstream stream, int mode) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    return mode < 0 || mode > 2 ? CUDA_ERROR_INVALID_VALUE : begin(stream);
  });
}

SX_API cuStreamBeginCapture_v2_ptsz(CUstream stream, int mode) {
  return cuStreamBeginCapture_v2(stream ? stream : CU_STREAM_PER_THREAD, mode);
}

SX_API cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  return enter<Need::Context>(__func__, [&] { return end(stream, graph); });
}

SX_API cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph) {
  return cuStreamEndCapture(stream ? stream : CU_STREAM_PER_THREAD, graph);
}

#define SX_CAPTURE(name, params, ...)                                                        \
  SX_API name params {                                                                       \
    return enter<Need::Context>(__func__, [&] { return __VA_ARGS__; });                      \
  }                                                                                          \
  SX_API name##_ptsz params {                                                                \
    if (!s) s = CU_STREAM_PER_THREAD;                                                        \
    return enter<Need::Context>(__func__, [&] { return __VA_ARGS__; });                      \
  }

SX_CAPTURE(cuStreamIsCapturing, (CUstream s, int *status), capture_info(s, status, nullptr, nullptr, nullptr))
SX_CAPTURE(cuStreamGetCaptureInfo, (CUstream s, int *status, cuuint64_t *id),
           capture_info(s, status, id, nullptr, nullptr))
SX_CAPTURE(cuStreamGetCaptureInfo_v2,
           (CUstream s, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **, size_t *n),
           capture_info(s, status, id, graph, n))
SX_CAPTURE(cuStreamGetCaptureInfo_v3,
           (CUstream s, int *status, cuuint64_t *id, CUgraph *graph, const CUgraphNode **, const void **, size_t *n),
           capture_info(s, status, id, graph, n))

SX_API cuGraphCreate(CUgraph *graph, unsigned flags) {
  return enter<Need::Init>(__func__, [&] { return create(graph, flags); });
}

SX_API cuGraphDestroy(CUgraph graph) {
  return enter<Need::Init>(__func__, [&] { return destroy<Graph>(graph); });
}

SX_API cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long) {
  return enter<Need::Init>(__func__, [&] { return instantiate(exec, graph); });
}

SX_API cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *, char *log, size_t size) {
  return enter<Need::Init>(__func__, [&] {
    if (log && size) *log = 0;
    return instantiate(exec, graph);
  });
}

SX_API cuGraphExecDestroy(CUgraphExec exec) {
  return enter<Need::Init>(__func__, [&] { return destroy<Exec>(exec); });
}

SX_CAPTURE(cuGraphLaunch, (CUgraphExec exec, CUstream s), launch_graph(exec, s))
SX_CAPTURE(cuGraphUpload, (CUgraphExec exec, CUstream s),
           (void(s), Handles<Exec>::all().find(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE))
