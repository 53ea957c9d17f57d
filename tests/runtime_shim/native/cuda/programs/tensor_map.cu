// Tensor maps as the driver's library makes them, and copies of tiles with them.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstring>
// A matrix of 40 x 100 floats, copied tile by tile (32 x 8) through shared memory, times two.
__global__ void twice(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
  __shared__ alignas(1024) float tile[8][32];
  __shared__ alignas(8) uint64_t word;
  uint32_t bar = __cvta_generic_to_shared(&word), at = __cvta_generic_to_shared(tile);
  int x = blockIdx.x * 32, y = blockIdx.y * 8;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(bar) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(at), "l"(&from), "r"(x), "r"(y), "r"(bar) : "memory");
  }
  for (int done = 0; !done;)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.b32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
  for (int i = threadIdx.x; i < 256; i += blockDim.x) ((float *)tile)[i] *= 2;
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2, %3}], [%0];" :: "r"(at), "l"(&to), "r"(x), "r"(y) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
// A parameter by its address.
struct Table { int value[64]; };
__global__ void looked_up(const __grid_constant__ Table table, int *out) {
  const int *at = table.value;
  asm volatile("" : "+l"(at));
  out[threadIdx.x] = at[threadIdx.x] * 3;
}
int main() {
  const int W = 100, H = 40;
  static float h[W * H], g[W * H];
  for (int i = 0; i < W * H; i++) h[i] = i;
  float *a, *b; cudaMalloc(&a, sizeof h); cudaMalloc(&b, sizeof h); cudaMemcpy(a, h, sizeof h, cudaMemcpyHostToDevice); cudaMemset(b, 0, sizeof h);
  void *f = nullptr; cudaDriverEntryPointQueryResult q; cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &q);
  auto encode = (decltype(&cuTensorMapEncodeTiled))f;
  CUtensorMap m[2];
  cuuint64_t dim[2] = {W, H}, stride[1] = {W * 4}; cuuint32_t box[2] = {32, 8}, one[2] = {1, 1}, two[2] = {1, 2};
  for (int i = 0; i < 2; i++) {
    int r = encode(&m[i], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, i ? b : a, dim, stride, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (r) { printf("encode %d\n", r); return 1; }
  }
  CUtensorMap bad;
  stride[0] = 404;
  printf("%d", encode(&bad, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, a, dim, stride, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  stride[0] = 400;
  printf(" %d", encode(&bad, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, a, dim, stride, box, two, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
  printf(" %d\n", encode(&bad, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, a, dim, stride, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA));
  twice<<<dim3(4, 5), 64>>>(m[0], m[1]);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaMemcpy(g, b, sizeof g, cudaMemcpyDeviceToHost);
  int wrong = 0;
  for (int i = 0; i < W * H; i++) wrong += g[i] != 2 * h[i];
  printf("wrong %d\n", wrong);
  Table table;
  for (int i = 0; i < 64; i++) table.value[i] = i * i;
  int *o, found[64]; cudaMalloc(&o, sizeof found);
  looked_up<<<1, 64>>>(table, o); cudaMemcpy(found, o, sizeof found, cudaMemcpyDeviceToHost);
  for (int i = 0; i < 64; i++) wrong += found[i] != 3 * i * i;
  printf("wrong %d\n", wrong);
  return wrong != 0;
}
