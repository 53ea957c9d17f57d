// SPDX-License-Identifier: Apache-2.0
//
// grid.sync() twice a round, in three launches; checks itself.
#include <cstdio>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(unsigned *a, unsigned *b, int n, int rounds) { auto g = cg::this_grid(); int i = g.thread_rank();
  for (int r = 0; r < rounds; r++) { b[i] = a[(i * 7 + 3) % n] * 3 + r; g.sync(); a[i] = b[(i * 5 + 1) % n] + i; g.sync(); } }
int main() { int n = 12 * 96, rounds = 9; unsigned *a, *b; static unsigned h[1152], x[1152], y[1152]; cudaMalloc(&a, n * 4); cudaMalloc(&b, n * 4); int bad = 0;
 for (int t = 0; t < 3; t++) { for (int i = 0; i < n; i++) h[i] = x[i] = i * 77 + t; cudaMemcpy(a, h, n * 4, cudaMemcpyHostToDevice); void *p[] = {&a, &b, &n, &rounds};
 cudaError_t e = cudaLaunchCooperativeKernel((void *)k, dim3(12), dim3(96), p, 0, 0); if (e) printf("launch %s\n", cudaGetErrorString(e)); cudaMemcpy(h, a, n * 4, cudaMemcpyDeviceToHost);
 for (int r = 0; r < rounds; r++) { for (int i = 0; i < n; i++) y[i] = x[(i * 7 + 3) % n] * 3 + r; for (int i = 0; i < n; i++) x[i] = y[(i * 5 + 1) % n] + i; } for (int i = 0; i < n; i++) bad += h[i] != x[i]; }
 printf("bad %d %s\n", bad, cudaGetErrorString(cudaGetLastError())); return bad != 0; }
