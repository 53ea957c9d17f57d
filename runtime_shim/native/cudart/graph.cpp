// Graphs built node by node: every kind goes through the driver's one function for all of them.
#include <cstring>

#include "copy.h"
#include "registry.h"
#include "state.h"

using namespace sx;

namespace {

enum NodeType : int { kKernel, kCopy, kFill, kHost, kChild, kEmpty, kWaitEvent, kRecordEvent, kAllocate = 10, kFree };

struct Place {
  CUgraphNode *out;
  CUgraph graph;
  const CUgraphNode *before;
  size_t count;
};

CUgraphNodeParams of_type(int type) {
  CUgraphNodeParams p;
  memset(&p, 0, sizeof p);
  p.type = type;
  return p;
}

int kernel_params(const cudaKernelNodeParams *from, CUgraphNodeParams *p) {
  *p = of_type(kKernel);
  if (!from) return kInvalidValue;
  CUkernel kernel = nullptr;
  if (int error = kernel_of(from->func, &kernel)) return error;
  CUDA_KERNEL_NODE_PARAMS &k = p->kernel;
  k.func = reinterpret_cast<CUfunction>(kernel);
  k.gridDimX = from->gridDim.x, k.gridDimY = from->gridDim.y, k.gridDimZ = from->gridDim.z;
  k.blockDimX = from->blockDim.x, k.blockDimY = from->blockDim.y, k.blockDimZ = from->blockDim.z;
  k.sharedMemBytes = from->sharedMemBytes;
  k.kernelParams = from->kernelParams;
  k.extra = from->extra;
  return kSuccess;
}

int copy_params(const cudaMemcpy3DParms *from, CUgraphNodeParams *p) {
  *p = of_type(kCopy);
  return box(&p->copy.copyParams, from);
}

int copy_params(void *to, const void *from, size_t count, int kind, CUgraphNodeParams *p) {
  cudaMemcpy3DParms c;
  memset(&c, 0, sizeof c);
  c.srcPtr = {const_cast<void *>(from), count, count, 1};
  c.dstPtr = {to, count, count, 1};
  c.extent = {count, 1, 1};
  c.kind = static_cast<cudaMemcpyKind>(kind);
  return copy_params(&c, p);
}

// A copy to a variable or from it.
int symbol_params(const void *symbol, size_t offset, void *memory, size_t count, int kind, bool to, CUgraphNodeParams *p) {
  CUdeviceptr address = 0;
  size_t size = 0;
  if (int error = address_of(symbol, &address, &size)) return error;
  if (offset > size || count > size - offset) return kInvalidValue;
  void *variable = reinterpret_cast<void *>(address + offset);
  return to ? copy_params(variable, memory, count, kind, p) : copy_params(memory, variable, count, kind, p);
}

int fill_params(const cudaMemsetParams *from, CUgraphNodeParams *p) {
  *p = of_type(kFill);
  if (!from) return kInvalidValue;
  p->fill = {reinterpret_cast<CUdeviceptr>(from->dst), from->pitch, from->value, from->elementSize, from->width, from->height};
  return kSuccess;
}

int host_params(const CUDA_HOST_NODE_PARAMS *from, CUgraphNodeParams *p) {
  *p = of_type(kHost);
  if (!from) return kInvalidValue;
  p->host = *from;
  return kSuccess;
}

int child_params(CUgraph graph, CUgraphNodeParams *p) {
  *p = of_type(kChild);
  p->graph.graph = graph;
  return kSuccess;
}

int event_params(int type, CUevent event, CUgraphNodeParams *p) {
  *p = of_type(type);
  p->event.event = event;
  return kSuccess;
}

int free_params(void *pointer, CUgraphNodeParams *p) {
  *p = of_type(kFree);
  p->free.dptr = reinterpret_cast<CUdeviceptr>(pointer);
  return kSuccess;
}

// The runtime's own form of all kinds.
int any_params(const cudaGraphNodeParams *from, CUgraphNodeParams *p) {
  if (!from) return kInvalidValue;
  if (from->type == kKernel) return kernel_params(&from->kernel, p);
  if (from->type == kCopy) return copy_params(&from->copy.copyParams, p);
  static_assert(sizeof *from == sizeof *p, "the others are the same");
  memcpy(static_cast<void *>(p), from, sizeof *p);
  return kSuccess;
}

template <class Make>
int add(Place at, Make make) {
  return with_context([&] {
    CUgraphNodeParams p;
    if (int error = make(&p)) return error;
    return driver().cuGraphAddNode_v2(at.out, at.graph, at.before, nullptr, at.count, &p);
  });
}

template <class Make>
int set(CUgraphNode node, Make make) {
  return with_context([&] {
    CUgraphNodeParams p;
    if (int error = make(&p)) return error;
    return driver().cuGraphNodeSetParams(node, &p);
  });
}

template <class Make>
int set_in(CUgraphExec exec, CUgraphNode node, Make make) {
  return with_context([&] {
    CUgraphNodeParams p;
    if (int error = make(&p)) return error;
    return driver().cuGraphExecNodeSetParams(exec, node, &p);
  });
}

int add_any(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count, cudaGraphNodeParams *params) {
  return with_context([&] {
    CUgraphNodeParams p;
    if (int error = any_params(params, &p)) return error;
    int error = driver().cuGraphAddNode_v2(out, graph, before, nullptr, count, &p);
    // The address of the allocation.
    if (!error && params->type == kAllocate) memcpy(static_cast<void *>(params), &p, sizeof p);
    return error;
  });
}

int get_kernel(CUgraphNode node, cudaKernelNodeParams *out) {
  return with_context([&] {
    CUDA_KERNEL_NODE_PARAMS k;
    if (!out) return static_cast<int>(kInvalidValue);
    if (int error = driver().cuGraphKernelNodeGetParams_v2(node, &k)) return error;
    out->func = stub_of(reinterpret_cast<CUkernel>(k.func));
    out->gridDim = {k.gridDimX, k.gridDimY, k.gridDimZ};
    out->blockDim = {k.blockDimX, k.blockDimY, k.blockDimZ};
    out->sharedMemBytes = k.sharedMemBytes;
    out->kernelParams = k.kernelParams;
    out->extra = k.extra;
    return static_cast<int>(kSuccess);
  });
}

int get_copy(CUgraphNode node, cudaMemcpy3DParms *out) {
  return with_context([&] {
    CUDA_MEMCPY3D c;
    if (!out) return static_cast<int>(kInvalidValue);
    if (int error = driver().cuGraphMemcpyNodeGetParams(node, &c)) return error;
    size_t element = 1;  // of both sides, as box() counts
    if (CUarray array = c.srcArray ? c.srcArray : c.dstArray)
      if (int error = element_size(array, &element)) return error;
    memset(out, 0, sizeof *out);
    auto address = [](unsigned type, const void *host, CUdeviceptr device) {
      return type == CU_MEMORYTYPE_HOST ? const_cast<void *>(host) : reinterpret_cast<void *>(device);
    };
    out->srcArray = c.srcArray;
    out->srcPos = {c.srcXInBytes / element, c.srcY, c.srcZ};
    out->srcPtr = {address(c.srcMemoryType, c.srcHost, c.srcDevice), c.srcPitch, c.WidthInBytes, c.srcHeight};
    out->dstArray = c.dstArray;
    out->dstPos = {c.dstXInBytes / element, c.dstY, c.dstZ};
    out->dstPtr = {address(c.dstMemoryType, c.dstHost, c.dstDevice), c.dstPitch, c.WidthInBytes, c.dstHeight};
    out->extent = {c.WidthInBytes / element, c.Height, c.Depth};
    out->kind = kCopyDefault;
    return static_cast<int>(kSuccess);
  });
}

}  // namespace

#define SX_PLACE CUgraphNode *out, CUgraph graph, const CUgraphNode *before, size_t count
// A function that fills in a node's work, for add(), set() and set_in().
#define SX_PARAMS(...) [&](CUgraphNodeParams *p) -> int { return __VA_ARGS__; }

SX_API cudaGraphAddKernelNode(SX_PLACE, const cudaKernelNodeParams *k) {
  return add({out, graph, before, count}, SX_PARAMS(kernel_params(k, p)));
}
SX_API cudaGraphKernelNodeSetParams(CUgraphNode node, const cudaKernelNodeParams *k) {
  return set(node, SX_PARAMS(kernel_params(k, p)));
}
SX_API cudaGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const cudaKernelNodeParams *k) {
  return set_in(exec, node, SX_PARAMS(kernel_params(k, p)));
}
SX_API cudaGraphKernelNodeGetParams(CUgraphNode node, cudaKernelNodeParams *k) { return get_kernel(node, k); }

SX_API cudaGraphAddMemcpyNode(SX_PLACE, const cudaMemcpy3DParms *c) {
  return add({out, graph, before, count}, SX_PARAMS(copy_params(c, p)));
}
SX_API cudaGraphMemcpyNodeSetParams(CUgraphNode node, const cudaMemcpy3DParms *c) {
  return set(node, SX_PARAMS(copy_params(c, p)));
}
SX_API cudaGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const cudaMemcpy3DParms *c) {
  return set_in(exec, node, SX_PARAMS(copy_params(c, p)));
}
SX_API cudaGraphMemcpyNodeGetParams(CUgraphNode node, cudaMemcpy3DParms *c) { return get_copy(node, c); }

SX_API cudaGraphAddMemcpyNode1D(SX_PLACE, void *to, const void *from, size_t n, int kind) {
  return add({out, graph, before, count}, SX_PARAMS(copy_params(to, from, n, kind, p)));
}
SX_API cudaGraphMemcpyNodeSetParams1D(CUgraphNode node, void *to, const void *from, size_t n, int kind) {
  return set(node, SX_PARAMS(copy_params(to, from, n, kind, p)));
}
SX_API cudaGraphExecMemcpyNodeSetParams1D(CUgraphExec exec, CUgraphNode node, void *to, const void *from, size_t n,
                                          int kind) {
  return set_in(exec, node, SX_PARAMS(copy_params(to, from, n, kind, p)));
}

SX_API cudaGraphAddMemcpyNodeToSymbol(SX_PLACE, const void *symbol, const void *from, size_t n, size_t offset, int kind) {
  return add({out, graph, before, count}, SX_PARAMS(symbol_params(symbol, offset, const_cast<void *>(from), n, kind, true, p)));
}
SX_API cudaGraphMemcpyNodeSetParamsToSymbol(CUgraphNode node, const void *symbol, const void *from, size_t n,
                                            size_t offset, int kind) {
  return set(node, SX_PARAMS(symbol_params(symbol, offset, const_cast<void *>(from), n, kind, true, p)));
}
SX_API cudaGraphExecMemcpyNodeSetParamsToSymbol(CUgraphExec exec, CUgraphNode node, const void *symbol,
                                                const void *from, size_t n, size_t offset, int kind) {
  return set_in(exec, node, SX_PARAMS(symbol_params(symbol, offset, const_cast<void *>(from), n, kind, true, p)));
}
SX_API cudaGraphAddMemcpyNodeFromSymbol(SX_PLACE, void *to, const void *symbol, size_t n, size_t offset, int kind) {
  return add({out, graph, before, count}, SX_PARAMS(symbol_params(symbol, offset, to, n, kind, false, p)));
}
SX_API cudaGraphMemcpyNodeSetParamsFromSymbol(CUgraphNode node, void *to, const void *symbol, size_t n, size_t offset,
                                              int kind) {
  return set(node, SX_PARAMS(symbol_params(symbol, offset, to, n, kind, false, p)));
}
SX_API cudaGraphExecMemcpyNodeSetParamsFromSymbol(CUgraphExec exec, CUgraphNode node, void *to, const void *symbol,
                                                  size_t n, size_t offset, int kind) {
  return set_in(exec, node, SX_PARAMS(symbol_params(symbol, offset, to, n, kind, false, p)));
}

SX_API cudaGraphAddMemsetNode(SX_PLACE, const cudaMemsetParams *m) {
  return add({out, graph, before, count}, SX_PARAMS(fill_params(m, p)));
}
SX_API cudaGraphMemsetNodeSetParams(CUgraphNode node, const cudaMemsetParams *m) { return set(node, SX_PARAMS(fill_params(m, p))); }
SX_API cudaGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const cudaMemsetParams *m) {
  return set_in(exec, node, SX_PARAMS(fill_params(m, p)));
}
SX_API cudaGraphMemsetNodeGetParams(CUgraphNode node, cudaMemsetParams *m) {
  static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "they are the same");
  return with_context([&] { return driver().cuGraphMemsetNodeGetParams(node, reinterpret_cast<CUDA_MEMSET_NODE_PARAMS *>(m)); });
}

SX_API cudaGraphAddHostNode(SX_PLACE, const CUDA_HOST_NODE_PARAMS *h) {
  return add({out, graph, before, count}, SX_PARAMS(host_params(h, p)));
}
SX_API cudaGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *h) { return set(node, SX_PARAMS(host_params(h, p))); }
SX_API cudaGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *h) {
  return set_in(exec, node, SX_PARAMS(host_params(h, p)));
}

SX_API cudaGraphAddChildGraphNode(SX_PLACE, CUgraph child) {
  return add({out, graph, before, count}, SX_PARAMS(child_params(child, p)));
}
SX_API cudaGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child) {
  return set_in(exec, node, SX_PARAMS(child_params(child, p)));
}
SX_API cudaGraphAddEmptyNode(SX_PLACE) {
  return add({out, graph, before, count}, SX_PARAMS((*p = of_type(kEmpty), static_cast<int>(kSuccess))));
}

SX_API cudaGraphAddEventRecordNode(SX_PLACE, CUevent event) {
  return add({out, graph, before, count}, SX_PARAMS(event_params(kRecordEvent, event, p)));
}
SX_API cudaGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return set(node, SX_PARAMS(event_params(kRecordEvent, event, p)));
}
SX_API cudaGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return set_in(exec, node, SX_PARAMS(event_params(kRecordEvent, event, p)));
}
SX_API cudaGraphAddEventWaitNode(SX_PLACE, CUevent event) {
  return add({out, graph, before, count}, SX_PARAMS(event_params(kWaitEvent, event, p)));
}
SX_API cudaGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return set(node, SX_PARAMS(event_params(kWaitEvent, event, p)));
}
SX_API cudaGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return set_in(exec, node, SX_PARAMS(event_params(kWaitEvent, event, p)));
}

SX_API cudaGraphAddMemAllocNode(SX_PLACE, CUDA_MEM_ALLOC_NODE_PARAMS *a) {
  return with_context([&] {
    if (!a) return static_cast<int>(kInvalidValue);
    CUgraphNodeParams p = of_type(kAllocate);
    p.alloc = *a;
    int error = driver().cuGraphAddNode_v2(out, graph, before, nullptr, count, &p);
    if (!error) a->dptr = p.alloc.dptr;
    return error;
  });
}
SX_API cudaGraphAddMemFreeNode(SX_PLACE, void *pointer) {
  return add({out, graph, before, count}, SX_PARAMS(free_params(pointer, p)));
}

SX_API cudaGraphNodeSetParams(CUgraphNode node, cudaGraphNodeParams *n) { return set(node, SX_PARAMS(any_params(n, p))); }
SX_API cudaGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, cudaGraphNodeParams *n) {
  return set_in(exec, node, SX_PARAMS(any_params(n, p)));
}

// Calls passed to the driver unchanged.
#define SX_SAME(name, parameters, call)                     \
  SX_API name parameters {                                  \
    return with_context([&] { return driver().call; });     \
  }

SX_SAME(cudaGraphHostNodeGetParams, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *p), cuGraphHostNodeGetParams(node, p))
SX_SAME(cudaGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *p), cuGraphChildGraphNodeGetGraph(node, p))
SX_SAME(cudaGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent *p), cuGraphEventRecordNodeGetEvent(node, p))
SX_SAME(cudaGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent *p), cuGraphEventWaitNodeGetEvent(node, p))
SX_SAME(cudaGraphMemAllocNodeGetParams, (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *p), cuGraphMemAllocNodeGetParams(node, p))
SX_SAME(cudaGraphMemFreeNodeGetParams, (CUgraphNode node, CUdeviceptr *p), cuGraphMemFreeNodeGetParams(node, p))
SX_SAME(cudaGraphKernelNodeSetAttribute, (CUgraphNode node, int id, const void *value), cuGraphKernelNodeSetAttribute(node, id, value))
SX_SAME(cudaGraphKernelNodeGetAttribute, (CUgraphNode node, int id, void *value), cuGraphKernelNodeGetAttribute(node, id, value))
SX_SAME(cudaGraphKernelNodeCopyAttributes, (CUgraphNode to, CUgraphNode from), cuGraphKernelNodeCopyAttributes(to, from))
SX_SAME(cudaGraphClone, (CUgraph *out, CUgraph graph), cuGraphClone(out, graph))
SX_SAME(cudaGraphNodeFindInClone, (CUgraphNode *out, CUgraphNode node, CUgraph graph), cuGraphNodeFindInClone(out, node, graph))
SX_SAME(cudaGraphNodeGetType, (CUgraphNode node, int *type), cuGraphNodeGetType(node, type))
SX_SAME(cudaGraphGetNodes, (CUgraph graph, CUgraphNode *out, size_t *count), cuGraphGetNodes(graph, out, count))
SX_SAME(cudaGraphGetRootNodes, (CUgraph graph, CUgraphNode *out, size_t *count), cuGraphGetRootNodes(graph, out, count))
SX_SAME(cudaGraphDestroyNode, (CUgraphNode node), cuGraphDestroyNode(node))
SX_SAME(cudaGraphDebugDotPrint, (CUgraph graph, const char *path, unsigned flags), cuGraphDebugDotPrint(graph, path, flags))
SX_SAME(cudaGraphInstantiateWithParams, (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p), cuGraphInstantiateWithParams(exec, graph, p))
SX_SAME(cudaGraphInstantiateWithParams_ptsz, (CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *p), cuGraphInstantiateWithParams(exec, graph, p))
SX_SAME(cudaGraphExecGetFlags, (CUgraphExec exec, uint64_t *flags), cuGraphExecGetFlags(exec, flags))
#if SX_CUDART_MAJOR >= 12
SX_SAME(cudaGraphExecUpdate, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info), cuGraphExecUpdate_v2(exec, graph, info))
#else
SX_API cudaGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *at_fault, int *result) {
  CUgraphExecUpdateResultInfo info{};
  int error = with_context([&] { return driver().cuGraphExecUpdate_v2(exec, graph, &info); });
  if (at_fault) *at_fault = info.errorNode;
  if (result) *result = static_cast<int>(info.result);
  return error;
}
#endif
SX_SAME(cudaGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned enabled), cuGraphNodeSetEnabled(exec, node, enabled))
SX_SAME(cudaGraphNodeGetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned *enabled), cuGraphNodeGetEnabled(exec, node, enabled))
SX_SAME(cudaUserObjectCreate, (CUuserObject *out, void *data, CUhostFn destroy, unsigned count, unsigned flags), cuUserObjectCreate(out, data, destroy, count, flags))
SX_SAME(cudaUserObjectRetain, (CUuserObject object, unsigned count), cuUserObjectRetain(object, count))
SX_SAME(cudaUserObjectRelease, (CUuserObject object, unsigned count), cuUserObjectRelease(object, count))
SX_SAME(cudaGraphRetainUserObject, (CUgraph graph, CUuserObject object, unsigned count, unsigned flags), cuGraphRetainUserObject(graph, object, count, flags))
SX_SAME(cudaGraphReleaseUserObject, (CUgraph graph, CUuserObject object, unsigned count), cuGraphReleaseUserObject(graph, object, count))

#define SX_CAPTURE(name, parameters, call)                   \
  SX_SAME(name, parameters, call)                            \
  SX_API name##_ptsz parameters {                            \
    stream = per_thread(stream);                             \
    return with_context([&] { return driver().call; });      \
  }

SX_CAPTURE(cudaStreamBeginCaptureToGraph,
           (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count, int mode),
           cuStreamBeginCaptureToGraph(stream, graph, nodes, data, count, mode))

// From 13 on, the names without a suffix are those that take edge data.
#define SX_EDGES_SAME(name, parameters, call) SX_SAME(name, parameters, call)
#define SX_EDGES_CAPTURE(name, parameters, call) SX_CAPTURE(name, parameters, call)
#if SX_CUDART_MAJOR >= 13
#define SX_EDGES(name) name
#else
#define SX_EDGES(name) name##_v2
SX_SAME(cudaGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count), cuGraphGetEdges_v2(graph, from, to, nullptr, count))
SX_SAME(cudaGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *out, size_t *count), cuGraphNodeGetDependencies_v2(node, out, nullptr, count))
SX_SAME(cudaGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *out, size_t *count), cuGraphNodeGetDependentNodes_v2(node, out, nullptr, count))
SX_SAME(cudaGraphAddDependencies, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count), cuGraphAddDependencies_v2(graph, from, to, nullptr, count))
SX_SAME(cudaGraphRemoveDependencies, (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count), cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count))
SX_CAPTURE(cudaStreamUpdateCaptureDependencies, (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags),
           cuStreamUpdateCaptureDependencies_v2(stream, nodes, nullptr, count, flags))
SX_API cudaGraphAddNode(SX_PLACE, cudaGraphNodeParams *p) { return add_any(out, graph, before, count, p); }
#endif
SX_EDGES_SAME(SX_EDGES(cudaGraphGetEdges), (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count), cuGraphGetEdges_v2(graph, from, to, data, count))
SX_EDGES_SAME(SX_EDGES(cudaGraphNodeGetDependencies), (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *count), cuGraphNodeGetDependencies_v2(node, out, data, count))
SX_EDGES_SAME(SX_EDGES(cudaGraphNodeGetDependentNodes), (CUgraphNode node, CUgraphNode *out, CUgraphEdgeData *data, size_t *count), cuGraphNodeGetDependentNodes_v2(node, out, data, count))
SX_EDGES_SAME(SX_EDGES(cudaGraphAddDependencies), (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count), cuGraphAddDependencies_v2(graph, from, to, data, count))
SX_EDGES_SAME(SX_EDGES(cudaGraphRemoveDependencies), (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count), cuGraphRemoveDependencies_v2(graph, from, to, data, count))
SX_EDGES_CAPTURE(SX_EDGES(cudaStreamUpdateCaptureDependencies), (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count, unsigned flags),
                 cuStreamUpdateCaptureDependencies_v2(stream, nodes, data, count, flags))
SX_API SX_EDGES(cudaGraphAddNode)(CUgraphNode *out, CUgraph graph, const CUgraphNode *before, const CUgraphEdgeData *, size_t count, cudaGraphNodeParams *p) {
  return add_any(out, graph, before, count, p);
}
