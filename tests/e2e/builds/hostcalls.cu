#include <cstdio>
#include <cassert>
__device__ int failures;
struct Node { Node *next; int value; };
__global__ void say(int n, const char *text, double d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    int count = printf("%d: %s %5.2f %lld %c%% [%-6u|%04x]\n", i, i & 1 ? "odd" : "even", d * i, (1ll << 40) + i, 'a' + i, i * 3, i * 17);
    if (count != 7) atomicAdd(&failures, 1);
    if (i == 2) printf("plain\n");
  }
}
__global__ void build(Node **lists, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Node *head = nullptr;
  for (int round = 0; round < 3; ++round) {
    for (int k = 0; k <= i % n; ++k) {
      Node *node = (Node *)malloc(sizeof(Node) + 8 * (k & 7));
      if (!node) { atomicAdd(&failures, 1); return; }
      node->next = head;
      node->value = i * 100 + k;
      head = node;
    }
    if (round < 2)
      while (head) { Node *next = head->next; free(head); head = next; }
  }
  lists[i] = head;
}
__global__ void sum(Node **lists, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, total = 0;
  for (Node *p = lists[i]; p;) { total += p->value; Node *next = p->next; free(p); p = next; }
  out[i] = total;
}
__global__ void check(int limit) { assert(threadIdx.x < limit); }
int main() {
  const int N = 256;
  say<<<2, 4>>>(7, "x", 0.5);
  cudaDeviceSynchronize();
  Node **lists; int *out, host[N];
  cudaMalloc(&lists, N * sizeof *lists); cudaMalloc(&out, N * sizeof(int));
  build<<<N / 64, 64>>>(lists, 9);
  sum<<<N / 64, 64>>>(lists, out);
  cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost);
  int bad = 0;
  for (int i = 0; i < N; ++i) { int t = 0; for (int k = 0; k <= i % 9; ++k) t += i * 100 + k; bad += t != host[i]; }
  int f = -1; cudaMemcpyFromSymbol(&f, failures, sizeof f);
  printf("lists wrong = %d, failures = %d\n", bad, f);
  check<<<1, 4>>>(2);
  cudaError_t e = cudaDeviceSynchronize();
  printf("assert: %s\n", cudaGetErrorName(e));
  printf("after: %s\n", cudaGetErrorName(cudaMalloc(&out, 4)));
  return bad || f;
}
