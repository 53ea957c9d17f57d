// Waits as CUDA programs do: until the clock has counted so far, in steps.
#include <cstdio>
#include <cuda_runtime.h>

__global__ void wait(long long cycles, long long *out) {
  const long long begin = clock64();
  long long now = begin, last = begin;
  bool backwards = false;
  int steps = 0;
  while (now - begin < cycles) {
    const long long step = clock64();
    while (clock64() - step < 1024) {
    }
    last = now;
    now = clock64();
    backwards |= now < last;
    ++steps;
  }
  out[0] = now - begin;
  out[1] = steps > 1 && !backwards;
  const unsigned early = clock();
  out[2] = static_cast<unsigned>(clock()) - early < 1u << 31;
}

int main() {
  long long *out = nullptr, back[3] = {};
  cudaMalloc(&out, sizeof back);
  wait<<<1, 1>>>(50000000, out);  // 25 ms
  cudaError_t error = cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost);
  printf("%d %d %lld %lld\n", error, back[0] >= 50000000 && back[0] < 5000000000, back[1], back[2]);
}
