// Graphs built node by node, and changes of a node's work, in a graph or in an instantiated one.
#include "graph_exec.h"
#include "unsupported.h"

#include <cstring>

namespace sx {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS *p, bool first_version, GraphWork &work) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  const void *kernel = p->func;
  if (!kernel && !first_version) kernel = p->kern;
  Shape shape = {{p->gridDimX, p->gridDimY, p->gridDimZ}, {p->blockDimX, p->blockDimY, p->blockDimZ},
                 p->sharedMemBytes, nullptr};
  work.type = NodeType::Kernel;
  return prepare(kernel, shape, p->kernelParams, p->extra, work.kernel);
}

CUresult copy_work(const CUDA_MEMCPY3D *p, GraphWork &work) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  work.type = NodeType::Copy;
  work.copy = *p;
  return CUDA_SUCCESS;
}

CUresult fill_work(const CUDA_MEMSET_NODE_PARAMS *p, GraphWork &work) {
  if (!p || !p->dst || !p->width || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
    return CUDA_ERROR_INVALID_VALUE;
  if (p->height > 1 && p->pitch < p->width * p->elementSize) return CUDA_ERROR_INVALID_VALUE;
  work.type = NodeType::Fill;
  work.fill = *p;
  return CUDA_SUCCESS;
}

CUresult host_work(const CUDA_HOST_NODE_PARAMS *p, GraphWork &work) {
  if (!p || !p->fn) return CUDA_ERROR_INVALID_VALUE;
  work.type = NodeType::Host;
  work.host = *p;
  return CUDA_SUCCESS;
}

CUresult event_work(NodeType type, CUevent event, GraphWork &work) {
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  work.type = type;
  work.event = event;
  return CUDA_SUCCESS;
}

CUresult child_work(CUgraph handle, GraphWork &work) {
  Graph *graph = find_graph(handle);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  for (const auto &node : graph->nodes)
    if (node->work.memory || node->work.type == NodeType::Free) return CUDA_ERROR_NOT_SUPPORTED;
  work.type = NodeType::Child;
  work.child = std::make_shared<Graph>();
  work.child->owned = true;
  copy_graph(*graph, *work.child);
  return CUDA_SUCCESS;
}

CUresult allocate_work(CUDA_MEM_ALLOC_NODE_PARAMS *p, GraphWork &work) {
  if (!p || !p->bytesize || p->poolProps.allocType != 1 || p->poolProps.location.type != 1) return CUDA_ERROR_INVALID_VALUE;
  if (p->poolProps.handleTypes) return refuse("graph memory shared between processes");
  Device *device = find_device(p->poolProps.location.id);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  work.type = NodeType::Allocate;
  work.memory = GraphMemory::make(*device, p->bytesize);
  if (!work.memory) return CUDA_ERROR_OUT_OF_MEMORY;
  p->dptr = work.memory->address;
  return CUDA_SUCCESS;
}

CUresult free_work(CUdeviceptr address, GraphWork &work) {
  if (!address) return CUDA_ERROR_INVALID_VALUE;
  work.type = NodeType::Free;
  work.address = address;
  return CUDA_SUCCESS;
}

CUresult operations_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p, GraphWork &work) {
  if (!p || !p->count || !p->paramArray) return CUDA_ERROR_INVALID_VALUE;
  work.type = NodeType::Operations;
  work.operations.assign(p->paramArray, p->paramArray + p->count);
  return CUDA_SUCCESS;
}

// The work in cuGraphAddNode's parameters; allocations write their address there.
CUresult any_work(CUgraphNodeParams *p, GraphWork &work) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  switch (static_cast<NodeType>(p->type)) {
    case NodeType::Kernel: return kernel_work(&p->kernel, false, work);
    case NodeType::Copy: return copy_work(&p->copy.copyParams, work);
    case NodeType::Fill: return fill_work(&p->fill, work);
    case NodeType::Host: return host_work(&p->host, work);
    case NodeType::Child: return child_work(p->graph.graph, work);
    case NodeType::Empty: return CUDA_SUCCESS;
    case NodeType::WaitEvent:
    case NodeType::RecordEvent: return event_work(static_cast<NodeType>(p->type), p->event.event, work);
    case NodeType::Allocate: return allocate_work(&p->alloc, work);
    case NodeType::Free: return free_work(p->free.dptr, work);
    case NodeType::Operations: return operations_work(&p->operations, work);
  }
  return refuse("a conditional graph node, or a node of external semaphores");
}

template <typename Make>
CUresult add(CUgraphNode *out, CUgraph handle, const CUgraphNode *before, size_t count, Make make) {
  Lock guard(graph_mutex());
  Graph *graph = find_graph(handle);
  if (!out || !graph) return CUDA_ERROR_INVALID_VALUE;
  GraphWork work;
  CUresult result = make(work);
  if (result != CUDA_SUCCESS) return result;
  GraphNode *node = append(*graph, before, count, std::move(work));
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(node);
  return CUDA_SUCCESS;
}

// A kernel keeps its attributes.
CUresult replace(GraphWork &old, GraphWork fresh) {
  if (old.type != fresh.type || old.memory || old.child) return CUDA_ERROR_INVALID_VALUE;
  fresh.attributes = old.attributes;
  fresh.kernel.shape.cooperative = old.kernel.shape.cooperative;
  old = std::move(fresh);
  return CUDA_SUCCESS;
}

template <typename Make>
CUresult set(CUgraphNode handle, Make make) {
  Lock guard(graph_mutex());
  GraphNode *node = find_node(handle);
  GraphWork work;
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = make(work);
  return result == CUDA_SUCCESS ? replace(node->work, std::move(work)) : result;
}

template <typename Make>
CUresult set_in(CUgraphExec exec, CUgraphNode handle, Make make) {
  Lock guard(graph_mutex());
  ExecNode *place = find_place(exec, handle);
  GraphWork work;
  if (!place) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = make(work);
  return result == CUDA_SUCCESS ? replace(place->work, std::move(work)) : result;
}

template <typename Get>
CUresult get(CUgraphNode handle, NodeType type, const void *out, Get body) {
  Lock guard(graph_mutex());
  GraphNode *node = find_node(handle);
  if (!node || !out || node->work.type != type) return CUDA_ERROR_INVALID_VALUE;
  body(*node);
  return CUDA_SUCCESS;
}

CUresult get_kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *out, bool first_version) {
  return get(handle, NodeType::Kernel, out, [&](GraphNode &node) {
    const KernelCall &call = node.work.kernel;
    const Shape &shape = call.shape;
    node.pointers = call.pointers();
    CUDA_KERNEL_NODE_PARAMS p = {};
    p.func = reinterpret_cast<CUfunction>(const_cast<void *>(call.kernel));
    p.gridDimX = shape.grid[0], p.gridDimY = shape.grid[1], p.gridDimZ = shape.grid[2];
    p.blockDimX = shape.block[0], p.blockDimY = shape.block[1], p.blockDimZ = shape.block[2];
    p.sharedMemBytes = shape.shared;
    p.kernelParams = node.pointers.data();
    memcpy(out, &p, first_version ? offsetof(CUDA_KERNEL_NODE_PARAMS, kern) : sizeof p);
  });
}

CUresult set_attribute(CUgraphNode handle, int id, const void *value) {
  CUlaunchAttribute attribute = {};
  if (!value || id <= 0) return CUDA_ERROR_INVALID_VALUE;
  memcpy(attribute.value.bytes, value, sizeof attribute.value.bytes);
  const unsigned *cluster = attribute.value.cluster;
  const bool clusters = id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION || id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
  if (clusters && (cluster[0] > 1 || cluster[1] > 1 || cluster[2] > 1)) return refuse("a graph kernel node with clusters");
  const bool updatable = id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  if (updatable && attribute.value.updatable.updatable) return refuse("a device-updatable graph node");
  if (!clusters && !updatable && id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE && !is_hint(id))
    return refuse("an attribute of a graph kernel node that is not known here");
  return get(handle, NodeType::Kernel, value, [&](GraphNode &node) {
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) node.work.kernel.shape.cooperative = attribute.value.cooperative != 0;
    node.work.attributes[id].assign(attribute.value.bytes, attribute.value.bytes + sizeof attribute.value.bytes);
  });
}

CUresult get_attribute(CUgraphNode handle, int id, void *value) {
  return get(handle, NodeType::Kernel, value, [&](GraphNode &node) {
    CUlaunchAttribute attribute = {};
    attribute.value.cooperative = id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && node.work.kernel.shape.cooperative;
    auto found = node.work.attributes.find(id);
    memcpy(value, found == node.work.attributes.end() ? attribute.value.bytes : found->second.data(),
           sizeof attribute.value.bytes);
  });
}

CUresult copy_attributes(CUgraphNode to, CUgraphNode from) {
  return get(to, NodeType::Kernel, to, [&](GraphNode &target) {
    if (GraphNode *source = find_node(from)) {
      target.work.attributes = source->work.attributes;
      target.work.kernel.shape.cooperative = source->work.kernel.shape.cooperative;
    }
  });
}

}  // namespace
}  // namespace sx

using namespace sx;

#define SX_NODE(name, params, ...)                                                     \
  SX_API name params {                                                                 \
    return enter<Need::Context>(__func__, [&]() -> CUresult { return __VA_ARGS__; });  \
  }
// A function that makes a node's work, for add(), set() and set_in().
#define SX_WORK(...) [&](GraphWork &w) -> CUresult { return __VA_ARGS__; }
#define SX_PLACE CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count

SX_NODE(cuGraphAddKernelNode, (SX_PLACE, const CUDA_KERNEL_NODE_PARAMS *p), add(out, graph, before, count, SX_WORK(kernel_work(p, true, w))))
SX_NODE(cuGraphAddKernelNode_v2, (SX_PLACE, const CUDA_KERNEL_NODE_PARAMS *p), add(out, graph, before, count, SX_WORK(kernel_work(p, false, w))))
SX_NODE(cuGraphAddMemcpyNode, (SX_PLACE, const CUDA_MEMCPY3D *p, CUcontext), add(out, graph, before, count, SX_WORK(copy_work(p, w))))
SX_NODE(cuGraphAddMemsetNode, (SX_PLACE, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext), add(out, graph, before, count, SX_WORK(fill_work(p, w))))
SX_NODE(cuGraphAddHostNode, (SX_PLACE, const CUDA_HOST_NODE_PARAMS *p), add(out, graph, before, count, SX_WORK(host_work(p, w))))
SX_NODE(cuGraphAddChildGraphNode, (SX_PLACE, CUgraph child), add(out, graph, before, count, SX_WORK(child_work(child, w))))
SX_NODE(cuGraphAddEmptyNode, (SX_PLACE), add(out, graph, before, count, [](GraphWork &) -> CUresult { return CUDA_SUCCESS; }))
SX_NODE(cuGraphAddEventRecordNode, (SX_PLACE, CUevent e), add(out, graph, before, count, SX_WORK(event_work(NodeType::RecordEvent, e, w))))
SX_NODE(cuGraphAddEventWaitNode, (SX_PLACE, CUevent e), add(out, graph, before, count, SX_WORK(event_work(NodeType::WaitEvent, e, w))))
SX_NODE(cuGraphAddMemAllocNode, (SX_PLACE, CUDA_MEM_ALLOC_NODE_PARAMS *p), add(out, graph, before, count, SX_WORK(allocate_work(p, w))))
SX_NODE(cuGraphAddMemFreeNode, (SX_PLACE, CUdeviceptr p), add(out, graph, before, count, SX_WORK(free_work(p, w))))
SX_NODE(cuGraphAddBatchMemOpNode, (SX_PLACE, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), add(out, graph, before, count, SX_WORK(operations_work(p, w))))
SX_NODE(cuGraphAddNode, (SX_PLACE, CUgraphNodeParams *p), add(out, graph, before, count, SX_WORK(any_work(p, w))))
SX_NODE(cuGraphAddNode_v2, (CUgraphNode *out, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *, size_t count, CUgraphNodeParams *p),
        add(out, graph, before, count, SX_WORK(any_work(p, w))))

SX_NODE(cuGraphKernelNodeSetParams, (CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p), set(n, SX_WORK(kernel_work(p, true, w))))
SX_NODE(cuGraphKernelNodeSetParams_v2, (CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p), set(n, SX_WORK(kernel_work(p, false, w))))
SX_NODE(cuGraphMemcpyNodeSetParams, (CUgraphNode n, const CUDA_MEMCPY3D *p), set(n, SX_WORK(copy_work(p, w))))
SX_NODE(cuGraphMemsetNodeSetParams, (CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p), set(n, SX_WORK(fill_work(p, w))))
SX_NODE(cuGraphHostNodeSetParams, (CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p), set(n, SX_WORK(host_work(p, w))))
SX_NODE(cuGraphEventRecordNodeSetEvent, (CUgraphNode n, CUevent e), set(n, SX_WORK(event_work(NodeType::RecordEvent, e, w))))
SX_NODE(cuGraphEventWaitNodeSetEvent, (CUgraphNode n, CUevent e), set(n, SX_WORK(event_work(NodeType::WaitEvent, e, w))))
SX_NODE(cuGraphBatchMemOpNodeSetParams, (CUgraphNode n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), set(n, SX_WORK(operations_work(p, w))))
SX_NODE(cuGraphNodeSetParams, (CUgraphNode n, CUgraphNodeParams *p), set(n, SX_WORK(any_work(p, w))))

SX_NODE(cuGraphExecKernelNodeSetParams, (CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p), set_in(x, n, SX_WORK(kernel_work(p, true, w))))
SX_NODE(cuGraphExecKernelNodeSetParams_v2, (CUgraphExec x, CUgraphNode n, const CUDA_KERNEL_NODE_PARAMS *p), set_in(x, n, SX_WORK(kernel_work(p, false, w))))
SX_NODE(cuGraphExecMemcpyNodeSetParams, (CUgraphExec x, CUgraphNode n, const CUDA_MEMCPY3D *p, CUcontext), set_in(x, n, SX_WORK(copy_work(p, w))))
SX_NODE(cuGraphExecMemsetNodeSetParams, (CUgraphExec x, CUgraphNode n, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext), set_in(x, n, SX_WORK(fill_work(p, w))))
SX_NODE(cuGraphExecHostNodeSetParams, (CUgraphExec x, CUgraphNode n, const CUDA_HOST_NODE_PARAMS *p), set_in(x, n, SX_WORK(host_work(p, w))))
SX_NODE(cuGraphExecEventRecordNodeSetEvent, (CUgraphExec x, CUgraphNode n, CUevent e), set_in(x, n, SX_WORK(event_work(NodeType::RecordEvent, e, w))))
SX_NODE(cuGraphExecEventWaitNodeSetEvent, (CUgraphExec x, CUgraphNode n, CUevent e), set_in(x, n, SX_WORK(event_work(NodeType::WaitEvent, e, w))))
SX_NODE(cuGraphExecBatchMemOpNodeSetParams, (CUgraphExec x, CUgraphNode n, const CUDA_BATCH_MEM_OP_NODE_PARAMS *p), set_in(x, n, SX_WORK(operations_work(p, w))))
SX_NODE(cuGraphExecNodeSetParams, (CUgraphExec x, CUgraphNode n, CUgraphNodeParams *p),
        p && p->type == static_cast<int>(NodeType::Child) ? (Lock(graph_mutex()), set_child(x, n, p->graph.graph)) : set_in(x, n, SX_WORK(any_work(p, w))))
SX_NODE(cuGraphExecChildGraphNodeSetParams, (CUgraphExec x, CUgraphNode n, CUgraph child), (Lock(graph_mutex()), set_child(x, n, child)))

SX_NODE(cuGraphKernelNodeGetParams, (CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p), get_kernel(n, p, true))
SX_NODE(cuGraphKernelNodeGetParams_v2, (CUgraphNode n, CUDA_KERNEL_NODE_PARAMS *p), get_kernel(n, p, false))
SX_NODE(cuGraphMemcpyNodeGetParams, (CUgraphNode n, CUDA_MEMCPY3D *p), get(n, NodeType::Copy, p, [&](GraphNode &node) { *p = node.work.copy; }))
SX_NODE(cuGraphMemsetNodeGetParams, (CUgraphNode n, CUDA_MEMSET_NODE_PARAMS *p), get(n, NodeType::Fill, p, [&](GraphNode &node) { *p = node.work.fill; }))
SX_NODE(cuGraphHostNodeGetParams, (CUgraphNode n, CUDA_HOST_NODE_PARAMS *p), get(n, NodeType::Host, p, [&](GraphNode &node) { *p = node.work.host; }))
SX_NODE(cuGraphChildGraphNodeGetGraph, (CUgraphNode n, CUgraph *p), get(n, NodeType::Child, p, [&](GraphNode &node) { *p = handle_of(node.work.child.get()); }))
SX_NODE(cuGraphEventRecordNodeGetEvent, (CUgraphNode n, CUevent *p), get(n, NodeType::RecordEvent, p, [&](GraphNode &node) { *p = node.work.event; }))
SX_NODE(cuGraphEventWaitNodeGetEvent, (CUgraphNode n, CUevent *p), get(n, NodeType::WaitEvent, p, [&](GraphNode &node) { *p = node.work.event; }))
SX_NODE(cuGraphMemFreeNodeGetParams, (CUgraphNode n, CUdeviceptr *p), get(n, NodeType::Free, p, [&](GraphNode &node) { *p = node.work.address; }))
SX_NODE(cuGraphMemAllocNodeGetParams, (CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS *p), get(n, NodeType::Allocate, p, [&](GraphNode &node) {
  *p = {};
  p->poolProps.allocType = 1;
  p->poolProps.location = {1, node.work.memory->device->ordinal};
  p->bytesize = node.work.memory->size;
  p->dptr = node.work.memory->address;
}))
SX_NODE(cuGraphBatchMemOpNodeGetParams, (CUgraphNode n, CUDA_BATCH_MEM_OP_NODE_PARAMS *p), get(n, NodeType::Operations, p, [&](GraphNode &node) {
  *p = {};
  p->count = static_cast<unsigned>(node.work.operations.size());
  p->paramArray = node.work.operations.data();
}))
SX_NODE(cuGraphKernelNodeSetAttribute, (CUgraphNode n, int id, const void *value), set_attribute(n, id, value))
SX_NODE(cuGraphKernelNodeGetAttribute, (CUgraphNode n, int id, void *value), get_attribute(n, id, value))
SX_NODE(cuGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from), copy_attributes(to, from))
