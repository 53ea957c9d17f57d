#include "graph.h"

#include "handles.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <unordered_set>

namespace sx {
namespace {

std::atomic<unsigned long long> g_next_id{1};

CUresult destroy_graph(CUgraph handle) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!graph || graph->owned) return CUDA_ERROR_INVALID_VALUE;
  delete graph;
  return CUDA_SUCCESS;
}

CUresult clone(CUgraph *out, CUgraph handle) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *from = find_graph(handle);
  if (!out || !from) return CUDA_ERROR_INVALID_VALUE;
  for (const auto &node : from->nodes)
    if (node->work.memory) return CUDA_ERROR_NOT_SUPPORTED;  // CUDA: not of graphs that allocate
  auto *to = new Graph;
  copy_graph(*from, *to);
  *out = handle_of(to);
  return CUDA_SUCCESS;
}

// Fills the application's array: `count` is its size on input and the number of items on output.
template <typename Get>
CUresult give(size_t total, size_t *count, bool asked, Get get) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (asked)
    for (size_t i = 0; i < *count && i < total; ++i) get(i);
  if (asked && *count < total) return CUDA_ERROR_INVALID_VALUE;
  *count = total;
  return CUDA_SUCCESS;
}

CUresult give_nodes(const std::vector<GraphNode *> &nodes, CUgraphNode *out, CUgraphEdgeData *data, size_t *count) {
  return give(nodes.size(), count, out != nullptr, [&](size_t i) {
    out[i] = handle_of(nodes[i]);
    if (data) data[i] = {};
  });
}

CUresult get_nodes(CUgraph handle, CUgraphNode *out, size_t *count, bool roots) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode *> found;
  for (const auto &node : graph->nodes)
    if (!roots || node->before.empty()) found.push_back(node.get());
  return give_nodes(found, out, nullptr, count);
}

CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::pair<GraphNode *, GraphNode *>> edges;
  for (const auto &node : graph->nodes)
    for (GraphNode *earlier : node->before) edges.emplace_back(earlier, node.get());
  return give(edges.size(), count, from && to, [&](size_t i) {
    from[i] = handle_of(edges[i].first);
    to[i] = handle_of(edges[i].second);
    if (data) data[i] = {};
  });
}

CUresult get_neighbours(CUgraphNode handle, CUgraphNode *out, CUgraphEdgeData *data, size_t *count, bool earlier) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  GraphNode *node = find_node(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  if (earlier) return give_nodes(node->before, out, data, count);
  std::vector<GraphNode *> found;
  for (const auto &other : node->graph->nodes)
    if (std::count(other->before.begin(), other->before.end(), node)) found.push_back(other.get());
  return give_nodes(found, out, data, count);
}

CUresult change_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, size_t count, bool add) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!graph || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    GraphNode *earlier = find_node(from[i]), *later = find_node(to[i]);
    if (!earlier || !later || earlier == later || earlier->graph != graph || later->graph != graph)
      return CUDA_ERROR_INVALID_VALUE;
    bool known = std::count(later->before.begin(), later->before.end(), earlier) != 0;
    if (known == add) return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    GraphNode *earlier = find_node(from[i]), *later = find_node(to[i]);
    auto &list = later->before;
    if (add) list.push_back(earlier);
    else list.erase(std::find(list.begin(), list.end(), earlier));
  }
  return CUDA_SUCCESS;
}

CUresult find_in_clone(CUgraphNode *out, CUgraphNode original, CUgraph clone) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(clone);
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  for (const auto &node : graph->nodes)
    if (handle_of(const_cast<GraphNode *>(node->original)) == original) return *out = handle_of(node.get()), CUDA_SUCCESS;
  return CUDA_ERROR_INVALID_VALUE;
}

// Nodes and edges as Graphviz reads them.
CUresult print_dot(CUgraph handle, const char *path) {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!graph || !path) return CUDA_ERROR_INVALID_VALUE;
  static const char *const names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY", "EVENT_WAIT", "EVENT_RECORD",
                                      "", "", "MEM_ALLOC", "MEM_FREE", "BATCH_MEM_OP"};
  FILE *file = fopen(path, "we");
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  std::unordered_map<const GraphNode *, size_t> number;
  fprintf(file, "digraph graph_%llu {\n", graph->id);
  for (const auto &node : graph->nodes) {
    size_t n = number.emplace(node.get(), number.size()).first->second;
    fprintf(file, "  node_%zu [label=\"%zu %s\"];\n", n, n, names[static_cast<int>(node->work.type)]);
  }
  for (const auto &node : graph->nodes)
    for (const GraphNode *earlier : node->before)
      fprintf(file, "  node_%zu -> node_%zu;\n", number[earlier], number[node.get()]);
  fprintf(file, "}\n");
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace

std::recursive_mutex &graph_mutex() {
  static auto *const mutex = new std::recursive_mutex;
  return *mutex;
}

Graph *find_graph(CUgraph handle) { return Handles<Graph>::all().find(handle); }
GraphNode *find_node(CUgraphNode handle) { return Handles<GraphNode>::all().find(handle); }

Graph::Graph() : id(g_next_id++) { Handles<Graph>::all().add(this); }

Graph::~Graph() {
  Handles<Graph>::all().remove(this);
  for (const auto &node : nodes) Handles<GraphNode>::all().remove(node.get());
  release_objects(objects);
}

bool Graph::ordered(std::vector<GraphNode *> &out) const {
  std::unordered_set<const GraphNode *> done;
  // Mostly they are in order already, and one round is enough.
  for (bool progress = true; progress && out.size() < nodes.size();) {
    progress = false;
    for (const auto &node : nodes) {
      if (done.count(node.get())) continue;
      bool ready = std::all_of(node->before.begin(), node->before.end(),
                               [&](const GraphNode *earlier) { return done.count(earlier) != 0; });
      if (!ready) continue;
      done.insert(node.get());
      out.push_back(node.get());
      progress = true;
    }
  }
  return out.size() == nodes.size();
}

void copy_graph(const Graph &from, Graph &to) {
  std::unordered_map<const GraphNode *, GraphNode *> copies;
  to.original = &from;
  for (const auto &node : from.nodes) {
    auto copy = std::make_unique<GraphNode>();
    copy->graph = &to;
    copy->work = node->work;
    copy->original = node.get();
    if (node->work.child) {
      copy->work.child = std::make_shared<Graph>();
      copy->work.child->owned = true;
      copy_graph(*node->work.child, *copy->work.child);
    }
    copies[node.get()] = copy.get();
    Handles<GraphNode>::all().add(copy.get());
    to.nodes.push_back(std::move(copy));
  }
  for (const auto &node : from.nodes)
    for (GraphNode *earlier : node->before) copies[node.get()]->before.push_back(copies[earlier]);
  to.objects = from.objects;
  retain_objects(to.objects);
}

GraphNode *append(Graph &graph, const CUgraphNode *before, size_t count, GraphWork work) {
  if (count && !before) return nullptr;
  auto node = std::make_unique<GraphNode>();
  for (size_t i = 0; i < count; ++i) {
    GraphNode *earlier = find_node(before[i]);
    if (!earlier || earlier->graph != &graph) return nullptr;
    if (!std::count(node->before.begin(), node->before.end(), earlier)) node->before.push_back(earlier);
  }
  node->graph = &graph;
  node->work = std::move(work);
  Handles<GraphNode>::all().add(node.get());
  graph.nodes.push_back(std::move(node));
  return graph.nodes.back().get();
}

void remove_node(GraphNode *node) {
  Graph &graph = *node->graph;
  Handles<GraphNode>::all().remove(node);
  for (const auto &other : graph.nodes) {
    auto &list = other->before;
    list.erase(std::remove(list.begin(), list.end(), node), list.end());
  }
  graph.nodes.erase(std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                 [&](const auto &other) { return other.get() == node; }));
}

}  // namespace sx

using namespace sx;

#define SX_GRAPH(name, params, ...)                                        \
  SX_API name params {                                                     \
    return enter<Need::Init>(__func__, [&]() -> CUresult { __VA_ARGS__ }); \
  }

SX_GRAPH(cuGraphCreate, (CUgraph *graph, unsigned flags), {
  if (!graph || flags) return CUDA_ERROR_INVALID_VALUE;
  *graph = handle_of(new Graph);
  return CUDA_SUCCESS;
})
SX_GRAPH(cuGraphDestroy, (CUgraph graph), return destroy_graph(graph);)
SX_GRAPH(cuGraphClone, (CUgraph *out, CUgraph graph), return clone(out, graph);)
SX_GRAPH(cuGraphNodeFindInClone, (CUgraphNode *out, CUgraphNode original, CUgraph graph),
         return find_in_clone(out, original, graph);)
SX_GRAPH(cuGraphNodeGetType, (CUgraphNode handle, int *type), {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  GraphNode *node = find_node(handle);
  if (!node || !type) return CUDA_ERROR_INVALID_VALUE;
  *type = static_cast<int>(node->work.type);
  return CUDA_SUCCESS;
})
SX_GRAPH(cuGraphGetNodes, (CUgraph graph, CUgraphNode *out, size_t *count), return get_nodes(graph, out, count, false);)
SX_GRAPH(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *out, size_t *count), return get_nodes(graph, out, count, true);)
SX_GRAPH(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count),
         return get_edges(graph, from, to, nullptr, count);)
SX_GRAPH(cuGraphGetEdges_v2, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count),
         return get_edges(graph, from, to, data, count);)
SX_GRAPH(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *out, size_t *count),
         return get_neighbours(node, out, nullptr, count, true);)
SX_GRAPH(cuGraphNodeGetDependencies_v2, (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *count),
         return get_neighbours(node, out, data, count, true);)
SX_GRAPH(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *out, size_t *count),
         return get_neighbours(node, out, nullptr, count, false);)
SX_GRAPH(cuGraphNodeGetDependentNodes_v2, (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *count),
         return get_neighbours(node, out, data, count, false);)
SX_GRAPH(cuGraphAddDependencies, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
         return change_edges(graph, from, to, count, true);)
// Edge data beyond the order grants freedom that is not used here.
SX_GRAPH(cuGraphAddDependencies_v2,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *, size_t count),
         return change_edges(graph, from, to, count, true);)
SX_GRAPH(cuGraphRemoveDependencies, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
         return change_edges(graph, from, to, count, false);)
SX_GRAPH(cuGraphRemoveDependencies_v2,
         (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *, size_t count),
         return change_edges(graph, from, to, count, false);)
SX_GRAPH(cuGraphDestroyNode, (CUgraphNode handle), {
  std::lock_guard<std::recursive_mutex> guard(graph_mutex());
  GraphNode *node = find_node(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  remove_node(node);
  return CUDA_SUCCESS;
})
SX_GRAPH(cuGraphDebugDotPrint, (CUgraph graph, const char *path, unsigned), return print_dot(graph, path);)
