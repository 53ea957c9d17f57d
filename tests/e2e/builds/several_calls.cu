#include <cassert>
#include <cstdio>
// Kernels that call more than one of the driver's functions, lanes together and apart.
__device__ unsigned bad;
struct Node { Node *next; unsigned value, tag; };

__global__ void say_and_stop(int n) {
  printf("before %d\n", n);
  assert(n == 0);
}
__global__ void say_and_take(unsigned long long *out) {
  int count = printf("%s %d\n", "taking", 100);
  char *p = (char *)malloc(100);
  if (p) for (int i = 0; i < 100; ++i) p[i] = (char)i;
  out[0] = (unsigned long long)p;
  out[1] = count;
  if (p) { out[2] = p[99]; free(p); }
}
__global__ void take_and_give(int rounds, int *good) {
  int n = 0;
  for (int i = 0; i < rounds; ++i) {
    int *p = (int *)malloc(500);
    if (!p) break;
    *p = i;
    n += *(volatile int *)p == i;
    free(p);
  }
  *good = n;
}
// Each lane calls another function, or none, in each round.
__global__ void mixed(int rounds, unsigned seed, int limit) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x, state = seed + 0x9E3779B9u * (i + 1);
  Node *head = nullptr;
  unsigned held = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    state = state * 1664525u + 1013904223u;
    switch (state >> 28) {
      case 0: case 1: case 2: case 3: {
        Node *node = (Node *)malloc(sizeof(Node) + (state >> 8 & 127));
        if (!node) { atomicAdd(&bad, 1u); break; }
        *node = {head, state, i};
        head = node;
        held += state;
        break;
      }
      case 4: case 5: case 6:
        if (head) {
          Node *next = head->next;
          if (head->tag != i) atomicAdd(&bad, 1u);
          held -= head->value;
          free(head);
          head = next;
        }
        break;
      case 7:
        if (printf("lane %u round %d\n", i, r) != 2) atomicAdd(&bad, 1u);
        break;
      case 8: assert((int)i < limit); break;
      case 9: free(nullptr); break;
    }
  }
  while (head) {
    Node *next = head->next;
    if (head->tag != i) atomicAdd(&bad, 1u);
    held -= head->value;
    free(head);
    head = next;
  }
  if (held) atomicAdd(&bad, 1u);
}
static int mistakes() {
  unsigned n = ~0u;
  cudaMemcpyFromSymbol(&n, bad, sizeof n);
  return (int)n;
}
int main() {
  unsigned long long *out, host[3] = {};
  int *good, n = -1;
  cudaMalloc(&out, sizeof host);
  cudaMalloc(&good, sizeof n);
  say_and_take<<<1, 1>>>(out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  printf("pointer %d, conversions %llu, last byte %llu\n", host[0] > 4096 && host[0] % 16 == 0, host[1], host[2]);
  take_and_give<<<1, 1>>>(100000, good);
  cudaMemcpy(&n, good, sizeof n, cudaMemcpyDeviceToHost);
  printf("blocks %d of 100000\n", n);
  for (int threads : {1, 32, 45, 96}) mixed<<<2, threads>>>(24, threads, 1 << 30);
  printf("mixed: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  printf("mistakes %d\n", mistakes());
  say_and_stop<<<1, 1>>>(7);
  printf("assert: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}
