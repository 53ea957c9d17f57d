// The generic address of a parameter (__grid_constant__): debug code adds it to a word of constant bank 0.
#include <cstdio>

struct Table {
  int words[100];
};

__device__ __noinline__ int at(const int *words, int i) { return words[i % 100]; }

__global__ void look_up(int *out, const __grid_constant__ Table table, int step) {
  out[threadIdx.x] = at(table.words, threadIdx.x * step);
}

int main() {
  int *out, bad = 0;
  Table table;
  for (int i = 0; i < 100; ++i) table.words[i] = i * i - 7;
  if (cudaMallocManaged(&out, 64 * sizeof *out)) return 1;
  look_up<<<1, 64>>>(out, table, 3);
  if (cudaDeviceSynchronize()) return 1;
  for (int i = 0; i < 64; ++i) bad += out[i] != table.words[3 * i % 100];
  printf("bad %d\n", bad);
  return bad != 0;
}
