// %smid and %nsmid: one number for a block, below that of multiprocessors, each its own where there are as many as
// blocks; and isspacep.param, whose bounds are words of constant bank 0.
#include <cstdio>
#include <vector>

static __device__ unsigned smid() {
  unsigned v;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(v));
  return v;
}
static __device__ unsigned nsmid() {
  unsigned v;
  asm volatile("mov.u32 %0, %%nsmid;" : "=r"(v));
  return v;
}

__global__ void look(unsigned *out) {
  __shared__ unsigned first;
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (threadIdx.x == 0) first = smid();
  __syncthreads();
  if (smid() != first) atomicAdd(&out[3 * block + 2], 1);
  if (threadIdx.x == 0) {
    out[3 * block] = first;
    out[3 * block + 1] = nsmid();
  }
}

// A branch on the number is taken by whole blocks.
__global__ void only(unsigned *out, unsigned which) {
  if (smid() == which) atomicAdd(out, __ballot_sync(~0u, 1) == ~0u);
}

__global__ void inside(unsigned *out, const int *heap, const __grid_constant__ int4 given) {
  __shared__ int s;
  int l = given.x;
  const void *all[] = {&given, &given.w, reinterpret_cast<const char *>(&given) + 15, &s, &l, heap, out};
  for (int i = 0; i < 7; ++i) out[i] = __isGridConstant(all[i]);
}

int main() {
  int count = 0, bad = 0;
  unsigned *out;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  if (cudaMallocManaged(&out, 1 << 16)) return 1;
  const unsigned n = count;
  for (dim3 grid : {dim3(n), dim3(7, 5, 3), dim3(3 * n + 1), dim3(1)}) {
    const unsigned blocks = grid.x * grid.y * grid.z;
    cudaMemset(out, 0, 12 * blocks);
    look<<<grid, 96>>>(out);
    if (cudaDeviceSynchronize()) return 1;
    std::vector<unsigned> blocks_of(n);
    for (unsigned i = 0; i < blocks; ++i) {
      bad += out[3 * i] >= n || out[3 * i + 1] != n || out[3 * i + 2];
      if (out[3 * i] < n) ++blocks_of[out[3 * i]];
    }
    for (unsigned m : blocks_of) bad += m > (blocks + n - 1) / n;
  }
  *out = 0;
  only<<<2 * n, 64>>>(out, n - 1);
  if (cudaDeviceSynchronize()) return 1;
  bad += *out != 2 * 64;
  inside<<<1, 1>>>(out, nullptr, int4{1, 2, 3, 4});
  if (cudaDeviceSynchronize()) return 1;
  for (int i = 0; i < 7; ++i) bad += out[i] != (i < 3);
  printf("bad %d\n", bad);
  return bad != 0;
}
