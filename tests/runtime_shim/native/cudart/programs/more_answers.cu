// Answers to arguments that are wrong, beside those of answers.cu.  more_answers.txt is what an H100 printed, with
// NVIDIA's runtime 13.0 and driver 580.
#include <cstdio>

#include <cuda_runtime.h>

#define P(name, ...) printf("%s: %d\n", name, static_cast<int>(__VA_ARGS__)), cudaGetLastError()

int main() {
  void *memory;
  cudaMalloc(&memory, 4096);
  cudaEvent_t event;
  cudaEventCreate(&event);
  char bus[4];
  P("ev ipc w/ timing", cudaEventCreateWithFlags(&event, cudaEventInterprocess));
  P("record ext", cudaEventRecordWithFlags(event, 0, cudaEventRecordExternal));
  P("hostalloc flags", cudaHostAlloc(&memory, 16, 0x80));
  P("enable self", cudaDeviceEnablePeerAccess(0, 0));
  P("enable flags", cudaDeviceEnablePeerAccess(0, 1));
  P("enable bad", cudaDeviceEnablePeerAccess(77, 0));
  P("disable self", cudaDeviceDisablePeerAccess(0));
  P("set cache bad", cudaDeviceSetCacheConfig(static_cast<cudaFuncCache>(9)));
  P("busid short", cudaDeviceGetPCIBusId(bus, 4, 0));
  P("tex destroy 0", cudaDestroyTextureObject(0));
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphCreate(&graph, 0);
  cudaMemsetParams params{};
  params.dst = memory;
  params.elementSize = 4;
  params.height = 1;
  P("memset w0", cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = 77;
  cudaMemPool_t pool;
  P("pool bad dev", cudaMemPoolCreate(&pool, &props));
  P("peer bad dev", cudaMemcpyPeer(memory, 0, memory, 77, 16));
}
