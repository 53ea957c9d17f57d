// Races that NVIDIA's GPUs win.  The first two: between two barriers each thread reads what its left neighbour's thread
// held before, and writes its own value.  Thread 32 reads what thread 31, of another warp, writes.  There all
// warps of a block have loaded before the first store is done; a warp that runs to the barrier alone has not.
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 256, kSteps = 20;

__global__ void in_shared(int *out) {
  __shared__ int value[kThreads];
  int t = threadIdx.x;
  value[t] = t;
  __syncthreads();
  for (int step = 0; step < kSteps; ++step) {
    int left = value[(t + kThreads - 1) % kThreads];
    value[t] = left + 3;
    __syncthreads();
  }
  out[t] = value[t];
}

__global__ void in_global(volatile int *value) {
  int t = threadIdx.x;
  value[t] = t;
  __syncthreads();
  for (int step = 0; step < kSteps; ++step) {
    int left = value[(t + kThreads - 1) % kThreads];
    value[t] = left + 3;
    __syncthreads();
  }
}

// All warps add to the same 32 elements: each reads an element before any of them writes it.
__global__ void sums(volatile int *value) {
  int lane = threadIdx.x % 32;
  for (int step = 0; step < kSteps; ++step) value[lane] += step;
}

static int wrong(const int *d) {
  int host[kThreads], bad = 0;
  if (cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) exit(2);
  for (int t = 0; t < kThreads; ++t) bad += host[t] != (t + kThreads * kSteps - kSteps) % kThreads + 3 * kSteps;
  return bad;
}

int main() {
  int *d;
  if (cudaMalloc(&d, kThreads * sizeof(int)) != cudaSuccess) return 2;
  in_shared<<<1, kThreads>>>(d);
  int shared = wrong(d);
  in_global<<<1, kThreads>>>(d);
  int global = wrong(d);
  if (cudaMemset(d, 0, 32 * sizeof(int)) != cudaSuccess) return 2;
  sums<<<1, kThreads>>>(d);
  int host[32], bad = 0;
  if (cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess) return 2;
  for (int value : host) bad += value != kSteps * (kSteps - 1) / 2;
  printf("shared %d wrong, global %d wrong, sums %d wrong\n", shared, global, bad);
  puts(shared || global || bad ? "FAIL" : "PASS");
  return shared || global || bad;
}
