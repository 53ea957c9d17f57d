// SPDX-License-Identifier: Apache-2.0
//
// Functions called directly and through a table of pointers, variables, constants; checks itself.
#include <cstdio>
typedef unsigned (*Fn)(unsigned, unsigned);
__device__ unsigned counter; __device__ unsigned weights[4] = {3, 5, 7, 11}; __constant__ unsigned shift = 2;
__device__ __noinline__ unsigned fa(unsigned x, unsigned y) { atomicAdd(&counter, 1u); return x * weights[y & 3]; }
__device__ __noinline__ unsigned fb(unsigned x, unsigned y) { return (x ^ y) >> shift; }
__device__ Fn table[2] = {fa, fb};
__global__ void k(unsigned *out, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { unsigned x = i * 77; for (int j = 0; j < 3; j++) x = table[(x >> j) & 1](x, i + j); out[i] = x; } }
__global__ void k2(unsigned *out) { out[threadIdx.x] = fa(threadIdx.x, 1) + (table[1])(threadIdx.x, 9); }
int main() { unsigned *d, h[256], c; cudaMalloc(&d, 1024); k<<<2, 128>>>(d, 256); cudaMemcpy(h, d, 1024, cudaMemcpyDeviceToHost); cudaMemcpyFromSymbol(&c, counter, 4);
 unsigned W[4] = {3, 5, 7, 11}, cc = 0; int bad = 0;
 for (unsigned i = 0; i < 256; i++) { unsigned x = i * 77; for (int j = 0; j < 3; j++) { unsigned y = i + j; if ((x >> j) & 1) x = (x ^ y) >> 2; else { cc++; x = x * W[y & 3]; } } bad += x != h[i]; }
 k2<<<1, 32>>>(d); cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); for (unsigned i = 0; i < 32; i++) bad += h[i] != i * 5 + ((i ^ 9) >> 2);
 printf("bad %d count %u of %u %s\n", bad, c, cc, cudaGetErrorString(cudaGetLastError())); return bad || c != cc; }
