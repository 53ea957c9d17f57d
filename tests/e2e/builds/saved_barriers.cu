// Lanes of a warp contend for one lock inside a region, in code that saves convergence barriers in registers.
#include <cstdio>

struct State {
  int lock, made, deep;
  unsigned long long slot;
};

// A recursion: its regions around calls keep barriers in registers.
__device__ __noinline__ int depth(State *s, int n) {
  if (n <= 0) return 0;
  int below = depth(s, n - 1);
  if (below & 1) below += atomicAdd(&s->deep, 0);
  return below + 1;
}

__global__ void contend(State *s, int *out, int lanes) {
  int lane = threadIdx.x;
  int found = depth(s, lane & 3);
  if (lane < lanes) {
    volatile unsigned long long *slot = &s->slot;
    if (*slot == 0) {
      while (atomicExch(&s->lock, 1) == 1) {
      }
      __threadfence();
      if (*slot == 0) {
        atomicAdd(&s->made, 1);
        *slot = 1;
      }
      __threadfence();
      atomicExch(&s->lock, 0);
    }
    found += 100;
  }
  __syncwarp();
  out[lane] = found;
}

int main() {
  int bad = 0;
  State *s;
  int *out, host[32];
  for (int lanes : {1, 2, 8, 32}) {
    cudaMalloc(&s, sizeof(State));
    cudaMalloc(&out, sizeof host);
    cudaMemset(s, 0, sizeof(State));
    contend<<<1, 32>>>(s, out, lanes);
    cudaError_t error = cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
    State end = {};
    cudaMemcpy(&end, s, sizeof end, cudaMemcpyDeviceToHost);
    bool good = error == cudaSuccess && end.made == 1 && end.lock == 0;
    for (int i = 0; i < 32; ++i) good = good && host[i] == (i & 3) + 100 * (i < lanes);
    bad += !good;
  }
  printf("bad %d\n", bad);
}
