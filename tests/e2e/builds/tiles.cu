// Tiles of several warps: cooperative groups keep them in shared memory that the launcher reserves
// (%reserved_smem_offset_1), and a block's own shared memory must not change by it.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cstdio>
namespace cg = cooperative_groups;

constexpr int kThreads = 256;

__global__ void tiles(unsigned *out) {
  __shared__ unsigned own[kThreads];
  extern __shared__ unsigned more[];
  unsigned t = threadIdx.x;
  own[t] = t * 3;
  more[t] = t * 5;
  cg::thread_block block = cg::this_thread_block();
  block.sync();
  auto wide = cg::tiled_partition<128>(block);
  auto middle = cg::tiled_partition<64>(block);
  auto narrow = cg::tiled_partition<16>(block);
  unsigned sum = cg::reduce(wide, t, cg::plus<unsigned>());
  unsigned scan = cg::inclusive_scan(middle, t & 7, cg::plus<unsigned>());
  unsigned all = cg::reduce(narrow, t, cg::bit_or<unsigned>());
  unsigned far = middle.shfl(t, 37);
  block.sync();
  unsigned kept = own[(t + 77) % kThreads] + more[(t + 99) % kThreads];
  unsigned *o = out + t * 5;
  o[0] = sum, o[1] = scan, o[2] = all, o[3] = far, o[4] = kept;
}

// A block without shared memory of its own.
__global__ void alone(unsigned *out) {
  auto wide = cg::tiled_partition<128>(cg::this_thread_block());
  out[threadIdx.x] = cg::reduce(wide, threadIdx.x, cg::plus<unsigned>());
}

int main() {
  unsigned *out = nullptr;
  static unsigned got[kThreads * 5];
  if (cudaMalloc(&out, sizeof got) != cudaSuccess) return 2;
  tiles<<<1, kThreads, kThreads * sizeof(unsigned)>>>(out);
  cudaError_t error = cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost);
  if (error != cudaSuccess) return std::printf("error %d\n", static_cast<int>(error)), 1;
  int wrong = 0;
  for (unsigned t = 0; t < kThreads; t++) {
    unsigned first = t & ~127u, sum = 0, scan = 0, all = 0;
    for (unsigned k = first; k < first + 128; k++) sum += k;
    for (unsigned k = t & ~63u; k <= t; k++) scan += k & 7;
    for (unsigned k = t & ~15u; k <= (t | 15u); k++) all |= k;
    unsigned want[] = {sum, scan, all, (t & ~63u) + 37, (t + 77) % kThreads * 3 + (t + 99) % kThreads * 5};
    for (int k = 0; k < 5; k++) wrong += got[t * 5 + k] != want[k];
  }
  alone<<<1, kThreads>>>(out);
  wrong += cudaMemcpy(got, out, kThreads * sizeof(unsigned), cudaMemcpyDeviceToHost) != cudaSuccess;
  wrong += got[0] != 8128 || got[kThreads - 1] != 24512;
  std::printf("bad %d\n", wrong);
  return wrong != 0;
}
