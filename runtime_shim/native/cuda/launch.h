// A launch with packed arguments: started by a stream now, or stored in a graph.
#pragma once
#include "driver.h"

namespace sx {

struct Shape {
  unsigned grid[3], block[3], shared;
  CUstream stream;
  bool cooperative = false;
  bool clusters = false;  // an attribute says how large clusters are: single blocks
};

struct KernelCall {
  const void *kernel = nullptr;  // the handle: the module may be unloaded before a graph is launched
  Shape shape = {};
  std::vector<uint8_t> params;  // the parameter area

  // Pointers to the parameters in `params`, as cuLaunchKernel takes them.
  std::vector<void *> pointers() const;
};

// Checks a launch and packs its parameters, from an array of pointers or a packed buffer.
CUresult prepare(const void *handle, const Shape &shape, void **params, void **extra, KernelCall &call);

// Whether an attribute of a launch is a hint, or freedom that is not taken, so that it may be passed over: access windows,
// policies, priorities, serialization.
bool is_hint(int attribute);

// Starts it in a stream that is not captured.
CUresult start(const KernelCall &call, CUstream stream);

CUresult launch_host(CUhostFn function, void *user, CUstream stream);

// copy.cpp's; with `wait`, they return when it is done.
CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool wait);
CUresult fill(CUdeviceptr dst, size_t pitch, unsigned value, unsigned element, size_t width, size_t height,
              CUstream stream, bool wait);

// stream.cpp's: cuEventRecord, also in a stream that is captured.
CUresult record_event(CUevent event, CUstream stream);

// stream.cpp's: CU_STREAM_MEM_OP_*.
CUresult memory_operation(const CUstreamBatchMemOpParams &operation, CUstream stream);

}  // namespace sx
