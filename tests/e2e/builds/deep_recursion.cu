// A recursion that needs more stack than the default limit: cudaLimitStackSize gives it, once it is set.
#include <cstdio>

__device__ int sum(int depth, volatile int *seen) {
  int here[8];
  for (int i = 0; i < 8; ++i) here[i] = depth * (i + 1);
  if (depth == 0) return 0;
  const int below = sum(depth - 1, seen);
  int own = 0;
  for (int i = 0; i < 8; ++i) own += here[(i + *seen) & 7];
  return below + own;
}

__global__ void deep(int *out, int *seen) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = sum(100 + i % 7, seen);
}

static int wrong(const int *out, int n) {
  int bad = 0;
  for (int i = 0; i < n; ++i) {
    const int depth = 100 + i % 7;
    bad += out[i] != 36 * depth * (depth + 1) / 2;
  }
  return bad;
}

int main() {
  const int n = 128;
  int *out, *seen;
  size_t limit = 0;
  if (cudaMallocManaged(&out, n * sizeof *out) || cudaMallocManaged(&seen, sizeof *seen)) return 1;
  *seen = 5;
  cudaDeviceSetLimit(cudaLimitStackSize, 16000);
  cudaDeviceGetLimit(&limit, cudaLimitStackSize);
  deep<<<2, n / 2>>>(out, seen);
  int error = cudaDeviceSynchronize();
  int bad = error != 0 || limit != 16000 || wrong(out, n);
  // A launch that was prepared with the greater limit has it, whatever is set after.
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  deep<<<2, n / 2, 0, stream>>>(out, seen);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaDeviceSetLimit(cudaLimitStackSize, 2048);
  for (int i = 0; i < n; ++i) out[i] = 0;
  cudaGraphLaunch(ready, stream);
  error = cudaStreamSynchronize(stream);
  bad += error != 0 || wrong(out, n);
  printf("bad %d\n", bad);
  return bad;
}
