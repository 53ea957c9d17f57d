// Graphs by capture: kernels, copies, fills, a second stream that joins, a host function; launched many times.
#include <cstdio>

__global__ void add(int *p, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += value;
}
static int calls = 0;
static void count(void *) { ++calls; }
#define CHECK(x) do { cudaError_t e = (x); if (e) { printf("%s: %s\n", #x, cudaGetErrorName(e)); return 1; } } while (0)

int main() {
  const int N = 1000;
  int *a, *b, host[2 * N], bad = 0;
  CHECK(cudaMalloc(&a, N * 4));
  CHECK(cudaMalloc(&b, N * 4));
  CHECK(cudaMemset(b, 0, N * 4));
  cudaStream_t one, two;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking));
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK(cudaMemsetAsync(a, 0, N * 4, one));
  CHECK(cudaEventRecord(fork, one));
  CHECK(cudaStreamWaitEvent(two, fork, 0));
  add<<<8, 128, 0, two>>>(b, N, 3);
  CHECK(cudaGetLastError());
  cudaStreamCaptureStatus status;
  CHECK(cudaStreamIsCapturing(two, &status));
  bad += status != cudaStreamCaptureStatusActive;
  CHECK(cudaEventRecord(join, two));
  add<<<8, 128, 0, one>>>(a, N, 7);
  CHECK(cudaStreamWaitEvent(one, join, 0));
  CHECK(cudaMemcpyAsync(host, a, N * 4, cudaMemcpyDeviceToHost, one));
  CHECK(cudaMemcpyAsync(host + N, b, N * 4, cudaMemcpyDeviceToHost, one));
  CHECK(cudaLaunchHostFunc(one, count, nullptr));
  CHECK(cudaStreamEndCapture(one, &graph));
  bad += calls != 0;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  for (int round = 1; round <= 5; ++round) {
    CHECK(cudaGraphLaunch(exec, two));
    CHECK(cudaStreamSynchronize(two));
    for (int i = 0; i < N; ++i) bad += host[i] != 7 || host[N + i] != 3 * round;
    bad += calls != round;
  }
  CHECK(cudaGraphExecDestroy(exec));
  printf("bad %d \n", bad);
  return bad != 0;
}
