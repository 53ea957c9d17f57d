// The sizes of the structures that cross the runtime's border, as NVIDIA's headers have them.
#include <cstddef>
#include <cstdio>

#include <cuda.h>
#include <cuda_runtime_api.h>

#define SIZE(type) printf(#type " %zu\n", sizeof(type))

int main() {
  SIZE(cudaPointerAttributes);
  SIZE(cudaFuncAttributes);
  SIZE(cudaLaunchConfig_t);
  SIZE(cudaMemcpy3DParms);
  SIZE(cudaKernelNodeParams);
  SIZE(cudaMemsetParams);
  SIZE(cudaMemLocation);
  SIZE(cudaChannelFormatDesc);
  SIZE(CUDA_MEMCPY2D);
  SIZE(CUDA_MEMCPY3D);
  SIZE(CUDA_MEMSET_NODE_PARAMS);
  SIZE(CUDA_KERNEL_NODE_PARAMS);
  SIZE(CUDA_HOST_NODE_PARAMS);
  SIZE(CUDA_ARRAY3D_DESCRIPTOR);
  SIZE(CUlaunchConfig);
  SIZE(CUlaunchAttribute);
  SIZE(CUmemLocation);
#define SX_PROPERTY(name, ...) PLACES(name)
#define PLACES(name) printf("prop." #name " %zu\n", offsetof(cudaDeviceProp, name));
#include "places.inc"
}
