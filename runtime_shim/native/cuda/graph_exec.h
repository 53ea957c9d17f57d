// The parts of an instantiated graph.
#pragma once
#include "graph.h"

#include <unordered_map>

namespace sx {

struct ExecNode {
  GraphWork work;
  const GraphNode *node = nullptr;
  std::vector<size_t> before;
  bool enabled = true;
};

// A snapshot of a graph: later changes of the graph do not affect it, except through nodes' addresses, which are places.
struct Exec {
  std::vector<ExecNode> nodes;
  std::unordered_map<const GraphNode *, size_t> places;
  std::unordered_map<const GraphNode *, std::pair<size_t, size_t>> children;  // from, to
  std::map<UserObject *, unsigned> objects;
  unsigned long long flags = 0;
};

Exec *find_exec(CUgraphExec handle);
// The place of a node; null if it has none.
ExecNode *find_place(CUgraphExec exec, CUgraphNode node);
// Replaces the work of a child graph's node, by nodes of the same kinds.
CUresult set_child(CUgraphExec exec, CUgraphNode node, CUgraph graph);

}  // namespace sx
