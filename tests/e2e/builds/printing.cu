#include <cassert>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
// What a kernel prints is what it says at that moment: strings that change, in any memory, of lanes that are apart.
__constant__ char fixed[] = "constant %d";
__device__ char common[64] = "first";
__device__ int wrong;

__device__ void name(char *to, int lane) {  // "" to "xxxxxx", then the lane
  int n = lane % 7;
  for (int i = 0; i < n; ++i) to[i] = 'x';
  to[n] = 'a' + lane % 26, to[n + 1] = 0;
}
// Each lane as often as its number says, with strings of its own; some call in one branch, some in the other.
__global__ void apart(int rounds) {
  __shared__ char shared[32][16];
  char own[16], form[32];
  int lane = threadIdx.x;
  for (int i = 0; i < lane % rounds; ++i) {
    name(own, lane + i);
    name(shared[lane], lane * 3 + i);
    int n;
    if ((lane ^ i) & 1) {
      n = printf("A %d %d [%s] [%.2s] %5.1f%%\n", lane, i, own, shared[lane], lane * .5) - 5;
    } else {
      const char *text = "B %d %d <%*s>\n";
      for (n = 0; (form[n] = text[n]); ++n) {}
      n = printf(form, lane, i, lane % 5, shared[lane]) - 3;
    }
    if (n) atomicAdd(&wrong, 1);
    own[0] = shared[lane][0] = form[0] = '!';
  }
}
__global__ void changing() {
  for (int i = 0; i < 3; ++i) {
    printf("%s ", common);
    common[i] = 'A' + i;
  }
  char format[16];
  for (int i = 0; i < 12; ++i) format[i] = fixed[i];
  printf(format, 7);
  printf(fixed, 8);
  if (printf("\n") || printf("%%") || printf(nullptr, 1) != -1 || printf("%s\n", (char *)nullptr) != 1) atomicAdd(&wrong, 1);
}
__global__ void long_text(char *text, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) text[i] = 'a' + i % 23;
  __syncthreads();
  if (threadIdx.x % 8 == 3) printf("%d %s\n", threadIdx.x, text + threadIdx.x);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) text[i] = '-';
}
__global__ void two(int stream, int rounds) {
  char own[8] = "s0";
  own[1] += stream;
  for (int i = 0; i < rounds; ++i) printf("%s %d %d\n", own, i, threadIdx.x);
}
__global__ void all(int limit) {
  char *text = (char *)malloc(16);
  name(text, threadIdx.x);
  printf("malloc %d %s\n", threadIdx.x, text);
  free(text);
  assert(threadIdx.x < limit);
}
__global__ void flood(int n) {
  for (int i = 0; i < n; ++i) printf("flood %d %d %s\n", i, threadIdx.x, "and some more text, so that it takes room");
}
__global__ void say(const char *text) { printf("said %s\n", text); }

int main(int argc, char **argv) {
  if (argc > 1) {  // more than the queue holds, and then some more
    flood<<<16, 64>>>(1000);
    printf("%d\n", cudaDeviceSynchronize());
    fflush(stdout);
    for (int i = 0; i < 2; ++i) {
      char *text;
      cudaMalloc(&text, 8);
      cudaMemcpy(text, i ? "again" : "once", 6, cudaMemcpyHostToDevice);
      say<<<1, 1>>>(text);
      cudaFree(text);
      printf("%d\n", cudaDeviceSynchronize());
    }
    return 0;
  }
  apart<<<2, 32>>>(9);
  changing<<<1, 1>>>();
  const int n = 3000;
  char *text;
  cudaMalloc(&text, n);
  cudaMemset(text, 0, n);
  long_text<<<1, 32>>>(text, n - 1);
  cudaStream_t streams[2];
  for (int i = 0; i < 2; ++i) cudaStreamCreate(&streams[i]);
  for (int i = 0; i < 2; ++i) two<<<1, 33, 0, streams[i]>>>(i, 20);
  int status = cudaDeviceSynchronize(), bad = -1;
  cudaMemcpyFromSymbol(&bad, wrong, sizeof bad);
  all<<<1, 8>>>(6);
  printf("%d, %d wrong, assert %d\n", status, bad, cudaDeviceSynchronize());
  return 0;
}
