// What copies and the graphs' copies have in common.
#pragma once
#include "runtime_abi.h"

namespace sx {

// A box of memory or of an array as the driver describes it; 1 or 21 if it is none.
int box(CUDA_MEMCPY3D *c, const cudaMemcpy3DParms *p);

// The bytes of an array's element.
int element_size(CUarray array, size_t *size);

}  // namespace sx
