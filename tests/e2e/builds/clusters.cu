// What code reads of clusters where each is a single block: all special registers of PTX, and
// whether the kernel or the launch gave a size.  The numbers are those of an H100.
#include <cstdio>
#include <cuda_runtime.h>

constexpr int kWords = 16;

#define READ(name) { unsigned v; asm volatile("mov.u32 %0, %%" #name ";" : "=r"(v)); *out++ = v; }

__device__ void read_all(unsigned *out) {
  out += kWords * (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
  READ(cluster_nctaid.x) READ(cluster_nctaid.y) READ(cluster_nctaid.z)
  READ(clusterid.x) READ(clusterid.y) READ(clusterid.z)
  READ(nclusterid.x) READ(nclusterid.y) READ(nclusterid.z)
  READ(cluster_ctaid.x) READ(cluster_ctaid.y) READ(cluster_ctaid.z)
  READ(cluster_ctarank) READ(cluster_nctarank)
  unsigned named;
  asm volatile("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(named));
  *out = named;
}

__global__ void plain(unsigned *out) { read_all(out); }
__global__ void __cluster_dims__(1, 1, 1) named(unsigned *out) { read_all(out); }

static const dim3 kGrid(3, 2, 2);
static unsigned *device;

static int wrong(unsigned explicit_cluster) {
  unsigned words[12 * kWords];
  if (cudaDeviceSynchronize() != cudaSuccess) return 1000;
  cudaMemcpy(words, device, sizeof words, cudaMemcpyDeviceToHost);
  cudaMemset(device, 0xee, sizeof words);
  int bad = 0;
  for (unsigned b = 0; b < 12; ++b) {
    const unsigned want[15] = {1, 1, 1, b % 3, b / 3 % 2, b / 6, 3, 2, 2, 0, 0, 0, 0, 1, explicit_cluster};
    for (int i = 0; i < 15; ++i) bad += words[b * kWords + i] != want[i];
  }
  return bad;
}

int main() {
  cudaMalloc(&device, 12 * kWords * 4);
  plain<<<kGrid, 1>>>(device);
  int bad = wrong(0);
  named<<<kGrid, 1>>>(device);
  bad += wrong(1);
  cudaLaunchConfig_t config = {};
  config.gridDim = kGrid;
  config.blockDim = 1;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  bad += cudaLaunchKernelEx(&config, plain, device) != cudaSuccess;
  bad += wrong(1);
  printf("bad %d\n", bad);
}
