// Graphs: nodes with their parameters and predecessors.  A launch executes them one after the other in
// an order that the edges allow, without overlap.
#pragma once
#include "launch.h"

#include <map>
#include <memory>

namespace sx {

struct Graph;
struct GraphNode;

// CU_GRAPH_NODE_TYPE_*.
enum class NodeType : int {
  Kernel = 0, Copy = 1, Fill = 2, Host = 3, Child = 4, Empty = 5, WaitEvent = 6, RecordEvent = 7, Allocate = 10,
  Free = 11, Operations = 12,
};

// Memory that a graph allocates.  Its address is fixed when the node is created; a launch only marks it as in use.
struct GraphMemory {
  Device *device = nullptr;
  unsigned generation = 0;
  CUdeviceptr address = 0;
  size_t size = 0;

  // Null if there is no memory.
  static std::shared_ptr<GraphMemory> make(Device &device, size_t size);
  ~GraphMemory();
};

// The work of a node.
struct GraphWork {
  NodeType type = NodeType::Empty;
  KernelCall kernel;
  std::map<int, std::vector<char>> attributes;  // of a kernel's node, by CU_LAUNCH_ATTRIBUTE_*
  CUDA_MEMCPY3D copy = {};
  CUDA_MEMSET_NODE_PARAMS fill = {};
  CUDA_HOST_NODE_PARAMS host = {};
  CUevent event = nullptr;
  CUdeviceptr address = 0;              // that is freed
  std::shared_ptr<GraphMemory> memory;  // that is allocated
  std::vector<CUstreamBatchMemOpParams> operations;
  std::shared_ptr<Graph> child;

  GraphWork() = default;
  explicit GraphWork(NodeType kind) : type(kind) {}
};

struct GraphNode {
  Graph *graph = nullptr;
  GraphWork work;
  std::vector<GraphNode *> before;
  const GraphNode *original = nullptr;  // of a clone
  std::vector<void *> pointers;         // what cuGraphKernelNodeGetParams points to
};

// Objects of the application that a graph keeps.
struct UserObject;

struct Graph {
  std::vector<std::unique_ptr<GraphNode>> nodes;  // in the order of their making
  std::map<UserObject *, unsigned> objects;
  const Graph *original = nullptr;  // of a clone
  unsigned long long id = 0;
  bool owned = false;  // by a node: the application may look at it, not destroy it

  Graph();
  ~Graph();
  // The nodes in topological order; false if they form a cycle.
  bool ordered(std::vector<GraphNode *> &out) const;
};

// All of this is under one lock: graphs are built by one thread after another.
std::recursive_mutex &graph_mutex();

Graph *find_graph(CUgraph handle);
GraphNode *find_node(CUgraphNode handle);
inline CUgraph handle_of(Graph *graph) { return reinterpret_cast<CUgraph>(graph); }
inline CUgraphNode handle_of(GraphNode *node) { return reinterpret_cast<CUgraphNode>(node); }

// Copies the nodes into an empty graph.
void copy_graph(const Graph &from, Graph &to);
// Appends a node.  Null if one of `before` is not of this graph.
GraphNode *append(Graph &graph, const CUgraphNode *before, size_t count, GraphWork work);
void remove_node(GraphNode *node);

void retain_objects(const std::map<UserObject *, unsigned> &objects);
void release_objects(const std::map<UserObject *, unsigned> &objects);

// Whether an operation of `stream` is not to be executed: the stream is captured, or it is the legacy stream, and a
// stream is captured that waits for that one.  capture() puts `work` into the stream's graph; the legacy stream has
// none: 906, and the captures are invalid.
bool is_capturing(CUstream stream);
CUresult capture(CUstream stream, GraphWork work);
// A call failed that `stream` was to capture: its graph would lack a node, so that none is made (901).
void invalidate_capture(CUstream stream);
// A call that cannot be captured: if the stream is (900), or the event is one of captured work (907) or of a capture that
// ended (1), there is none.  The capture is invalid from then on.
CUresult refused_in_capture(CUstream stream);
CUresult refused_as_captured(CUevent event);
// Whether an event is one of captured work; the capture goes on.
bool is_captured(CUevent event);
// A handle that may come again.
void forget_event(CUevent event);
// A call that CUDA calls unsafe while there are captures, as it might wait or make others wait: 900 where the mode of one
// of them, and the thread's, forbid it.  One that waits for all streams is forbidden by each.
CUresult unsafe_in_capture();
CUresult device_in_capture();

// An event that is recorded in a capturing stream, or waited for by one.  False: nothing is captured here, proceed.
bool captured_record(CUevent event, CUstream stream, CUresult &result);
bool captured_wait(CUstream stream, CUevent event, CUresult &result);

// Graphs' allocations in a captured stream; False: nothing is captured here.
bool captured_allocate(CUdeviceptr *out, size_t size, CUstream stream, CUresult &result);
bool captured_free(CUdeviceptr address, CUstream stream, CUresult &result);
// Whether `address` was memory of a graph; it is in use no longer.
bool free_graph_memory(CUdeviceptr address);
// Marks a graph's memory as in use; false if it already is.
bool use_graph_memory(const std::shared_ptr<GraphMemory> &memory);

// Executes a node's work, in a stream that is not captured.
CUresult perform(const GraphWork &work, CUstream stream);

}  // namespace sx
