// Graphs that can be launched: a list of work, in an order that the edges allow.
#include "graph_exec.h"

#include "handles.h"
#include "unsupported.h"

#include <algorithm>

namespace sx {
namespace {

constexpr unsigned long long kAutoFree = 1;        // CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
constexpr unsigned long long kDeviceLaunch = 4;    // _DEVICE_LAUNCH: by kernels
constexpr unsigned long long kKnownFlags = 15;

// CUgraphExecUpdateResult.
enum : int { kUpdated = 0, kFailed = 1, kTopologyChanged = 2, kTypeChanged = 3, kNotSupported = 6 };

// The nodes with those of child graphs in their place.
CUresult flatten(const Graph &graph, const std::vector<size_t> &before, Exec &exec) {
  std::vector<GraphNode *> nodes;
  if (!graph.ordered(nodes)) return CUDA_ERROR_INVALID_VALUE;
  std::unordered_map<const GraphNode *, size_t> here;
  for (GraphNode *node : nodes) {
    ExecNode made;
    made.work = node->work;
    made.node = node;
    for (const GraphNode *earlier : node->before) made.before.push_back(here[earlier]);
    std::sort(made.before.begin(), made.before.end());
    if (made.before.empty()) made.before = before;
    if (node->work.child) {
      // The child's own place comes after its nodes, as a predecessor for others.
      size_t begin = exec.nodes.size();
      CUresult result = flatten(*node->work.child, made.before, exec);
      if (result != CUDA_SUCCESS) return result;
      exec.children[node] = {begin, exec.nodes.size()};
    }
    here[node] = exec.nodes.size();
    exec.places[node] = exec.nodes.size();
    exec.nodes.push_back(std::move(made));
  }
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!out || !graph || flags & ~kKnownFlags) return CUDA_ERROR_INVALID_VALUE;
  if (flags & kDeviceLaunch) return refuse("a graph launched from the device");
  auto exec = std::make_unique<Exec>();
  exec->flags = flags;
  CUresult result = flatten(*graph, {}, *exec);
  if (result != CUDA_SUCCESS) return result;
  exec->objects = graph->objects;
  retain_objects(exec->objects);
  *out = reinterpret_cast<CUgraphExec>(exec.get());
  Handles<Exec>::all().add(exec.release());
  return CUDA_SUCCESS;
}

CUresult destroy(CUgraphExec handle) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Exec *exec = find_exec(handle);
  if (!exec || !Handles<Exec>::all().remove(exec)) return CUDA_ERROR_INVALID_VALUE;
  release_objects(exec->objects);
  delete exec;
  return CUDA_SUCCESS;
}

// A launch into a captured stream: its nodes, each after the stream's earlier ones.
CUresult capture_launch(const Exec &exec, CUstream stream) {
  GraphWork work(NodeType::Child);
  work.child = std::make_shared<Graph>();
  work.child->owned = true;
  std::vector<CUgraphNode> made;
  for (const ExecNode &node : exec.nodes) {
    if (node.work.memory) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    std::vector<CUgraphNode> before;
    before.reserve(node.before.size());
    for (size_t earlier : node.before) before.push_back(made[earlier]);
    GraphWork own = node.enabled && node.work.type != NodeType::Child ? node.work : GraphWork(NodeType::Empty);
    made.push_back(handle_of(append(*work.child, before.data(), before.size(), std::move(own))));
  }
  return capture(stream, std::move(work));
}

CUresult launch_graph(CUgraphExec handle, CUstream stream) {
  std::vector<GraphWork> todo;
  {
    std::lock_guard<std::recursive_mutex> guard(graph_mutex());
    Exec *exec = find_exec(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    if (is_capturing(stream)) return capture_launch(*exec, stream);
    for (const ExecNode &node : exec->nodes)
      if (node.work.memory && !use_graph_memory(node.work.memory) && !(exec->flags & kAutoFree))
        return CUDA_ERROR_INVALID_VALUE;  // allocated by an earlier launch, and not freed yet
    for (const ExecNode &node : exec->nodes)
      if (node.enabled) todo.push_back(node.work);
  }
  // Without the lock: the device may lag, and a host function may build graphs.
  for (const GraphWork &work : todo) {
    CUresult result = perform(work, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult upload(CUgraphExec handle) { return find_exec(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo &info) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Exec *exec = find_exec(handle);
  Graph *graph = find_graph(graph_handle);
  info = {kFailed, nullptr, nullptr};
  if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
  Exec fresh;
  if (flatten(*graph, {}, fresh) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  if (fresh.nodes.size() != exec->nodes.size()) return info.result = kTopologyChanged, CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  for (size_t i = 0; i < fresh.nodes.size(); ++i) {
    const ExecNode &now = fresh.nodes[i], &then = exec->nodes[i];
    info.result = now.work.type != then.work.type ? kTypeChanged
                  : now.before != then.before     ? kTopologyChanged
                  : now.work.memory               ? kNotSupported
                                                  : kUpdated;
    if (info.result == kUpdated) continue;
    info.errorNode = handle_of(const_cast<GraphNode *>(now.node));
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  info.result = kUpdated;
  for (size_t i = 0; i < fresh.nodes.size(); ++i) exec->nodes[i].work = std::move(fresh.nodes[i].work);
  // From now on the nodes of both graphs name the places.
  exec->places.insert(fresh.places.begin(), fresh.places.end());
  exec->children.insert(fresh.children.begin(), fresh.children.end());
  std::swap(exec->objects, fresh.objects);
  exec->objects = graph->objects;
  retain_objects(exec->objects);
  release_objects(fresh.objects);
  return CUDA_SUCCESS;
}

CUresult set_enabled(CUgraphExec handle, CUgraphNode node, bool enabled) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  ExecNode *found = find_place(handle, node);
  if (!found || found->work.type > NodeType::Fill) return CUDA_ERROR_INVALID_VALUE;
  found->enabled = enabled;
  return CUDA_SUCCESS;
}

}  // namespace

Exec *find_exec(CUgraphExec handle) { return Handles<Exec>::all().find(handle); }

ExecNode *find_place(CUgraphExec handle, CUgraphNode node) {
  Exec *exec = find_exec(handle);
  if (!exec) return nullptr;
  auto found = exec->places.find(reinterpret_cast<const GraphNode *>(node));
  return found == exec->places.end() ? nullptr : &exec->nodes[found->second];
}

CUresult set_child(CUgraphExec handle, CUgraphNode node, CUgraph graph_handle) {
  Exec *exec = find_exec(handle);
  Graph *graph = find_graph(graph_handle);
  if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
  auto found = exec->children.find(reinterpret_cast<const GraphNode *>(node));
  if (found == exec->children.end()) return CUDA_ERROR_INVALID_VALUE;
  Exec fresh;
  CUresult result = flatten(*graph, {}, fresh);
  if (result != CUDA_SUCCESS) return result;
  auto [begin, end] = found->second;
  if (fresh.nodes.size() != end - begin) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < fresh.nodes.size(); ++i)
    if (fresh.nodes[i].work.type != exec->nodes[begin + i].work.type) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < fresh.nodes.size(); ++i) exec->nodes[begin + i].work = std::move(fresh.nodes[i].work);
  return CUDA_SUCCESS;
}

CUresult perform(const GraphWork &work, CUstream stream) {
  switch (work.type) {
    case NodeType::Kernel: return start(work.kernel, stream);
    case NodeType::Copy: return copy_3d(&work.copy, stream, false);
    case NodeType::Fill: {
      const CUDA_MEMSET_NODE_PARAMS &f = work.fill;
      return fill(f.dst, f.pitch, f.value, f.elementSize, f.width, f.height, stream, false);
    }
    case NodeType::Host: return launch_host(work.host.fn, work.host.userData, stream);
    case NodeType::WaitEvent: return SX_HIP(hipStreamWaitEvent, to_hip(stream), to_hip(work.event), 0);
    case NodeType::RecordEvent: return from_hip(hip().hipEventRecord(to_hip(work.event), to_hip(stream)));
    case NodeType::Operations:
      for (const CUstreamBatchMemOpParams &operation : work.operations) {
        CUresult result = memory_operation(operation, stream);
        if (result != CUDA_SUCCESS) return result;
      }
      return CUDA_SUCCESS;
    case NodeType::Free: return free_graph_memory(work.address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case NodeType::Child:
    case NodeType::Empty:
    case NodeType::Allocate: return CUDA_SUCCESS;
  }
  return CUDA_ERROR_UNKNOWN;
}

}  // namespace sx

using namespace sx;

#define SX_EXEC(name, params, ...)                                         \
  SX_API name params {                                                     \
    return enter<Need::Init>(__func__, [&]() -> CUresult { __VA_ARGS__ }); \
  }

SX_EXEC(cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, unsigned long long flags),
        return instantiate(exec, graph, flags);)
SX_EXEC(cuGraphInstantiate_v2, (CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size), {
  if (log && size) *log = 0;
  if (node) *node = nullptr;
  return instantiate(exec, graph, 0);
})
SX_EXEC(cuGraphInstantiate, (CUgraphExec *exec, CUgraph graph, CUgraphNode *node, char *log, size_t size), {
  if (log && size) *log = 0;
  if (node) *node = nullptr;
  return instantiate(exec, graph, 0);
})
SX_EXEC(cuGraphInstantiateWithParams, (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), {
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = instantiate(exec, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out = result == CUDA_SUCCESS ? 0 : 1;
  return result;
})
SX_API cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params) {
  return cuGraphInstantiateWithParams(exec, graph, params);
}
SX_EXEC(cuGraphExecGetFlags, (CUgraphExec handle, cuuint64_t *flags), {
  Exec *exec = find_exec(handle);
  if (!exec || !flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
})
SX_EXEC(cuGraphExecDestroy, (CUgraphExec exec), return destroy(exec);)
SX_EXEC(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info), {
  CUgraphExecUpdateResultInfo own;
  return update(exec, graph, info ? *info : own);
})
SX_EXEC(cuGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphNode *node, int *why), {
  CUgraphExecUpdateResultInfo info;
  CUresult result = update(exec, graph, info);
  if (node) *node = info.errorNode;
  if (why) *why = info.result;
  return result;
})
SX_EXEC(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled),
        return set_enabled(exec, node, enabled != 0);)
SX_EXEC(cuGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned *enabled), {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  ExecNode *found = find_place(exec, node);
  if (!found || !enabled) return CUDA_ERROR_INVALID_VALUE;
  *enabled = found->enabled;
  return CUDA_SUCCESS;
})

SX_API cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return enter<Need::Context>(__func__, [&] { return launch_graph(exec, stream); });
}
SX_API cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return cuGraphLaunch(exec, stream ? stream : CU_STREAM_PER_THREAD);
}
SX_API cuGraphUpload(CUgraphExec exec, CUstream) {
  return enter<Need::Context>(__func__, [&] { return upload(exec); });
}
SX_API cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream) { return cuGraphUpload(exec, stream); }
