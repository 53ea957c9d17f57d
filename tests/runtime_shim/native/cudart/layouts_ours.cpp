// The same sizes as layouts.cpp prints, from the project's own declarations.
#include <cstdio>

#include "runtime_abi.h"

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
}
