// SPDX-License-Identifier: Apache-2.0
//
// Graphs built node by node, changed, cloned, nested, and captured ones taken apart; checks itself.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

__global__ void add(int *p, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}
__global__ void scale(int *p, int n, int factor) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= factor;
}
__device__ int variable[4];
__global__ void read_variable(int *p) { p[threadIdx.x] = variable[threadIdx.x] + 1; }

static int bad = 0;
#define CHECK(x)                                                                       \
  do {                                                                                 \
    cudaError_t e = (x);                                                               \
    if (e) printf("line %d: %s: %s\n", __LINE__, #x, cudaGetErrorName(e)), exit(1);    \
  } while (0)
#define EXPECT(x)                                          \
  do {                                                     \
    if (!(x)) ++bad, printf("line %d: %s\n", __LINE__, #x); \
  } while (0)

const int N = 1000;
static int *a, *b, host[N];
static int calls = 0;
static void count(void *user) { calls += *static_cast<int *>(user); }

static cudaKernelNodeParams kernel_params(void *f, void **args) {
  cudaKernelNodeParams p = {};
  p.func = f;
  p.gridDim = dim3(8);
  p.blockDim = dim3(128);
  p.kernelParams = args;
  return p;
}

static int all_are(int value) {
  int wrong = 0;
  for (int i = 0; i < N; ++i) wrong += host[i] != value;
  return wrong == 0;
}

static void launch(cudaGraphExec_t exec) {
  CHECK(cudaGraphLaunch(exec, 0));
  CHECK(cudaDeviceSynchronize());
}

static void by_hand() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams fill = {};
  fill.dst = a, fill.value = 5, fill.elementSize = 4, fill.width = N, fill.height = 1;
  cudaGraphNode_t set, plus, times, back, call;
  CHECK(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &fill));
  int n = N, value = 2, factor = 10, one = 1;
  void *plus_args[] = {&a, &n, &value}, *times_args[] = {&a, &n, &factor};
  cudaKernelNodeParams p = kernel_params(reinterpret_cast<void *>(add), plus_args);
  CHECK(cudaGraphAddKernelNode(&plus, graph, &set, 1, &p));
  value = 99;  // the node has its own copy
  p = kernel_params(reinterpret_cast<void *>(scale), times_args);
  CHECK(cudaGraphAddKernelNode(&times, graph, &plus, 1, &p));
  CHECK(cudaGraphAddMemcpyNode1D(&back, graph, &times, 1, host, a, sizeof host, cudaMemcpyDeviceToHost));
  cudaHostNodeParams function = {count, &one};
  CHECK(cudaGraphAddHostNode(&call, graph, &back, 1, &function));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  launch(exec);
  EXPECT(all_are((5 + 2) * 10) && calls == 1);

  // What it is made of.
  size_t nodes = 0, roots = 0, edges = 0, before = 1;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(nodes == 5 && roots == 1 && edges == 4);
  cudaGraphNode_t found;
  CHECK(cudaGraphNodeGetDependencies(back, &found, nullptr, &before));
  EXPECT(before == 1 && found == times);
  cudaGraphNodeType type;
  CHECK(cudaGraphNodeGetType(back, &type));
  EXPECT(type == cudaGraphNodeTypeMemcpy);
  cudaKernelNodeParams asked;
  CHECK(cudaGraphKernelNodeGetParams(plus, &asked));
  EXPECT(asked.func == reinterpret_cast<void *>(add) && asked.gridDim.x == 8 && *static_cast<int *>(asked.kernelParams[2]) == 2);

  // Changes of the instantiated graph leave the graph as it is, and the other way round.
  int other = 1;
  void *other_args[] = {&a, &n, &other};
  p = kernel_params(reinterpret_cast<void *>(add), other_args);
  CHECK(cudaGraphExecKernelNodeSetParams(exec, plus, &p));
  fill.value = 7;
  CHECK(cudaGraphExecMemsetNodeSetParams(exec, set, &fill));
  launch(exec);
  EXPECT(all_are((7 + 1) * 10) && calls == 2);
  CHECK(cudaGraphNodeSetEnabled(exec, times, 0));
  launch(exec);
  EXPECT(all_are(8) && calls == 3);
  CHECK(cudaGraphNodeSetEnabled(exec, times, 1));
  fill.value = 1;
  CHECK(cudaGraphMemsetNodeSetParams(set, &fill));
  launch(exec);
  EXPECT(all_are(80));

  // Updates: the same shape is taken over, another is refused.
  cudaGraphExecUpdateResultInfo info;
  CHECK(cudaGraphExecUpdate(exec, graph, &info));
  launch(exec);
  EXPECT(all_are((1 + 2) * 10) && info.result == cudaGraphExecUpdateSuccess);
  cudaGraph_t clone;
  CHECK(cudaGraphClone(&clone, graph));
  cudaGraphNode_t same;
  CHECK(cudaGraphNodeFindInClone(&same, call, clone));
  CHECK(cudaGraphDestroyNode(same));
  EXPECT(cudaGraphExecUpdate(exec, clone, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  CHECK(cudaGraphGetNodes(clone, nullptr, &nodes));
  EXPECT(nodes == 4);

  // A child graph, and another edge.
  cudaGraph_t outer;
  CHECK(cudaGraphCreate(&outer, 0));
  cudaGraphNode_t child, empty, last;
  CHECK(cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, clone));
  CHECK(cudaGraphDestroy(clone));
  CHECK(cudaGraphAddEmptyNode(&empty, outer, &child, 1));
  p = kernel_params(reinterpret_cast<void *>(add), other_args);
  CHECK(cudaGraphAddKernelNode(&last, outer, nullptr, 0, &p));
  CHECK(cudaGraphAddDependencies(outer, &empty, &last, nullptr, 1));
  cudaGraphExec_t nested;
  CHECK(cudaGraphInstantiate(&nested, outer, 0));
  launch(nested);
  EXPECT(all_are(30));
  CHECK(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(all_are(31));
  CHECK(cudaGraphAddDependencies(outer, &last, &child, nullptr, 1));
  cudaGraphExec_t round;
  EXPECT(cudaGraphInstantiate(&round, outer, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaGraphExecDestroy(nested));
  CHECK(cudaGraphDestroy(outer));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

static void events_and_symbols() {
  cudaGraph_t graph;
  cudaGraphNode_t to, run, from, record;
  cudaEvent_t event;
  static int in[4] = {1, 2, 3, 4}, out[4] = {};
  CHECK(cudaEventCreate(&event));
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNodeToSymbol(&to, graph, nullptr, 0, variable, in, sizeof in, 0, cudaMemcpyHostToDevice));
  void *args[] = {&b};
  cudaGraphNodeParams p = {};
  p.type = cudaGraphNodeTypeKernel;
  p.kernel.func = reinterpret_cast<void *>(read_variable);
  p.kernel.gridDim = dim3(1);
  p.kernel.blockDim = dim3(4);
  p.kernel.kernelParams = args;
  CHECK(cudaGraphAddNode(&run, graph, &to, nullptr, 1, &p));
  CHECK(cudaGraphAddEventRecordNode(&record, graph, &run, 1, event));
  cudaMemcpy3DParms box = {};
  box.srcPtr = make_cudaPitchedPtr(b, 8, 8, 2);
  box.dstPtr = make_cudaPitchedPtr(out, 8, 8, 2);
  box.extent = make_cudaExtent(8, 2, 1);
  box.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaGraphAddMemcpyNode(&from, graph, &record, 1, &box));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  launch(exec);
  CHECK(cudaEventQuery(event));
  for (int i = 0; i < 4; ++i) EXPECT(out[i] == in[i] + 1);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaEventDestroy(event));
}

// Memory that the graph allocates: by a node, and captured.
static void memory() {
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams want = {};
  want.poolProps.allocType = cudaMemAllocationTypePinned;
  want.poolProps.location.type = cudaMemLocationTypeDevice;
  want.bytesize = sizeof host;
  cudaGraphNode_t make, set, plus, back, release;
  CHECK(cudaGraphAddMemAllocNode(&make, graph, nullptr, 0, &want));
  int *mine = static_cast<int *>(want.dptr), n = N, value = 4;
  cudaMemsetParams fill = {};
  fill.dst = mine, fill.elementSize = 4, fill.width = N, fill.height = 1;
  CHECK(cudaGraphAddMemsetNode(&set, graph, &make, 1, &fill));
  void *args[] = {&mine, &n, &value};
  cudaKernelNodeParams p = kernel_params(reinterpret_cast<void *>(add), args);
  CHECK(cudaGraphAddKernelNode(&plus, graph, &set, 1, &p));
  CHECK(cudaGraphAddMemcpyNode1D(&back, graph, &plus, 1, host, mine, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemFreeNode(&release, graph, &back, 1, mine));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 3; ++i) {
    memset(host, 0, sizeof host);
    launch(exec);
    EXPECT(all_are(4));
  }
  size_t used = 1, high = 0;
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &used));
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &high));
  EXPECT(used == 0 && high >= sizeof host);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaDeviceGraphMemTrim(0));

  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  int *late;
  CHECK(cudaMallocAsync(&late, sizeof host, stream));
  CHECK(cudaMemsetAsync(late, 0, sizeof host, stream));
  add<<<8, 128, 0, stream>>>(late, N, 6);
  CHECK(cudaMemcpyAsync(host, late, sizeof host, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, stream));
  // Allocated already: a second launch needs it free.
  EXPECT(cudaGraphLaunch(exec, stream) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK(cudaFreeAsync(late, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(all_are(6));
  CHECK(cudaFree(late));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaGraphLaunch(exec, stream));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(late));
  CHECK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &used));
  EXPECT(used == 0);
  CHECK(cudaStreamDestroy(stream));
}

// Captured graphs: their nodes and edges, changes while capturing, capture into a graph that exists.
static void captured() {
  cudaStream_t one, two;
  cudaEvent_t fork, join;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  cudaGraph_t graph, inner;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(a, 0, sizeof host, one));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(two, fork, 0));
  CHECK(cudaMemsetAsync(b, 0, sizeof host, two));
  CHECK(cudaEventRecord(join, two));
  add<<<8, 128, 0, one>>>(a, N, 3);
  CHECK(cudaStreamWaitEvent(one, join, 0));
  cudaStreamCaptureStatus status;
  const cudaGraphNode_t *last = nullptr;
  size_t lasts = 0;
  CHECK(cudaStreamGetCaptureInfo(one, &status, nullptr, &inner, &last, nullptr, &lasts));
  EXPECT(status == cudaStreamCaptureStatusActive && lasts == 2);
  // A node by hand in the middle of the capture.
  int n = N, value = 30;
  void *args[] = {&a, &n, &value};
  cudaKernelNodeParams p = kernel_params(reinterpret_cast<void *>(add), args);
  cudaGraphNode_t extra;
  CHECK(cudaGraphAddKernelNode(&extra, inner, last, lasts, &p));
  CHECK(cudaStreamUpdateCaptureDependencies(one, &extra, nullptr, 1, cudaStreamSetCaptureDependencies));
  CHECK(cudaMemcpyAsync(host, a, sizeof host, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamEndCapture(one, &graph));
  EXPECT(graph == inner);
  size_t nodes = 0, edges = 0;
  CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT(nodes == 5 && edges == 5);
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  launch(exec);
  EXPECT(all_are(33));

  // More into the same graph, then the launch of one graph captured into another.
  std::vector<cudaGraphNode_t> list(nodes);
  CHECK(cudaGraphGetNodes(graph, list.data(), &nodes));
  CHECK(cudaStreamBeginCaptureToGraph(one, graph, &list[4], nullptr, 1, cudaStreamCaptureModeGlobal));
  scale<<<8, 128, 0, one>>>(a, N, 2);
  CHECK(cudaStreamEndCapture(one, &inner));
  EXPECT(inner == graph);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  cudaGraph_t outer;
  cudaGraphExec_t outer_exec;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed));
  CHECK(cudaGraphLaunch(exec, one));
  CHECK(cudaMemcpyAsync(host, a, sizeof host, cudaMemcpyDeviceToHost, one));
  CHECK(cudaStreamEndCapture(one, &outer));
  CHECK(cudaGraphGetNodes(outer, nullptr, &nodes));
  EXPECT(nodes == 2);
  CHECK(cudaGraphInstantiate(&outer_exec, outer, 0));
  launch(outer_exec);
  EXPECT(all_are(66));

  // Work of another stream that nobody waits for.
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(two, fork, 0));
  add<<<8, 128, 0, two>>>(a, N, 3);
  EXPECT(cudaStreamEndCapture(one, &inner) == cudaErrorStreamCaptureUnjoined && inner == nullptr);
  cudaGetLastError();
  CHECK(cudaGraphExecDestroy(outer_exec));
  CHECK(cudaGraphDestroy(outer));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(one));
  CHECK(cudaStreamDestroy(two));
}

static void objects() {
  static int destroyed = 0;
  cudaUserObject_t object;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaUserObjectCreate(&object, &destroyed, [](void *p) { ++*static_cast<int *>(p); }, 1, cudaUserObjectNoDestructorSync));
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  EXPECT(destroyed == 0);
  CHECK(cudaGraphExecDestroy(exec));
  EXPECT(destroyed == 1);
}

// What a copy node of an array is asked for is what it was given: positions count the array's elements.
static void array_copy() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float4>();
  std::vector<float4> in(128), out(128, make_float4(0, 0, 0, 0));
  for (int i = 0; i < 128; ++i) in[i] = make_float4(i, i, i, i);
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, 16, 8));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, in.data(), 256, 256, 8, cudaMemcpyHostToDevice));
  cudaMemcpy3DParms box = {};
  box.srcArray = array;
  box.srcPos = make_cudaPos(3, 1, 0);
  box.dstPtr = make_cudaPitchedPtr(out.data(), 256, 16, 8);
  box.dstPos = make_cudaPos(2, 2, 0);
  box.extent = make_cudaExtent(5, 4, 1);
  box.kind = cudaMemcpyDeviceToHost;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &box));
  CHECK(cudaGraphMemcpyNodeGetParams(node, &box));
  EXPECT(box.srcPos.x == 3 && box.dstPos.x == 2 && box.extent.width == 5);
  box.dstPos.y = 3;
  CHECK(cudaGraphMemcpyNodeSetParams(node, &box));
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  launch(exec);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 16; ++x) {
      const bool inside = x >= 2 && x < 7 && y >= 3 && y < 7;
      EXPECT(out[y * 16 + x].x == (inside ? in[(y - 2) * 16 + x + 1].x : 0));
    }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFreeArray(array));
}

// A query or a wait while a stream is captured is refused, and the capture is invalid (CUDA C++ Programming Guide,
// "Prohibited and Unhandled Operations", "Invalidation").
static void prohibited() {
  cudaStream_t stream;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&event));
  for (int call = 0; call < 4; ++call) {
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<8, 128, 0, stream>>>(a, N, 1);
    CHECK(cudaEventRecord(event, stream));
    const cudaError_t got = call == 0   ? cudaStreamSynchronize(stream)
                            : call == 1 ? cudaStreamQuery(stream)
                            : call == 2 ? cudaEventSynchronize(event)
                                        : cudaEventQuery(event);
    EXPECT(got == (call < 2 ? cudaErrorStreamCaptureUnsupported : cudaErrorCapturedEvent));
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(stream, &status));
    EXPECT(status == cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph;
    EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated && !graph);
    cudaGetLastError();
    CHECK(cudaStreamSynchronize(stream));
    // Of a capture that has ended it says nothing (an H100's answer), until it is recorded again.
    EXPECT(cudaEventSynchronize(event) == cudaErrorInvalidValue);
    cudaGetLastError();
    CHECK(cudaEventRecord(event, stream));
    CHECK(cudaEventSynchronize(event));
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(stream));
}

int main() {
  CHECK(cudaMalloc(&a, sizeof host));
  CHECK(cudaMalloc(&b, sizeof host));
  by_hand();
  events_and_symbols();
  memory();
  captured();
  objects();
  array_copy();
  prohibited();
  printf("bad %d\n", bad);
  return bad != 0;
}
