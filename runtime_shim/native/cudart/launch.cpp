// Registration, and the ways to launch a kernel.
#include <vector>

#include "per_thread.h"
#include "registry.h"
#include "state.h"

using namespace sx;

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared;
  CUstream stream;
};

// What k<<<...>>> pushed and its host stub has not popped yet; arguments may launch kernels themselves.
struct Pushed {
  std::vector<Configuration> list;
};

int launch(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, CUstream stream) {
  return with_context([&] {
    CUkernel kernel = nullptr;
    if (int error = kernel_of(function, &kernel)) return error;
    if (shared > UINT32_MAX) return static_cast<int>(kInvalidValue);
    return driver().cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                   block.z, static_cast<unsigned>(shared), stream, arguments, nullptr);
  });
}

int launch_cooperative(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                       CUstream stream) {
  return with_context([&] {
    CUkernel kernel = nullptr;
    if (int error = kernel_of(function, &kernel)) return error;
    if (shared > UINT32_MAX) return static_cast<int>(kInvalidValue);
    return driver().cuLaunchCooperativeKernel(reinterpret_cast<CUfunction>(kernel), grid.x, grid.y, grid.z, block.x,
                                              block.y, block.z, static_cast<unsigned>(shared), stream, arguments);
  });
}

int launch_extended(const cudaLaunchConfig_t *config, const void *function, void **arguments, bool own_stream) {
  return with_context([&] {
    if (!config || config->dynamicSmemBytes > UINT32_MAX) return static_cast<int>(kInvalidValue);
    CUkernel kernel = nullptr;
    if (int error = kernel_of(function, &kernel)) return error;
    CUstream stream = own_stream ? per_thread(config->stream) : config->stream;
    CUlaunchConfig c{config->gridDim.x,  config->gridDim.y,  config->gridDim.z,
                     config->blockDim.x, config->blockDim.y, config->blockDim.z,
                     static_cast<unsigned>(config->dynamicSmemBytes), stream, config->attrs, config->numAttrs};
    return driver().cuLaunchKernelEx(&c, reinterpret_cast<CUfunction>(kernel), arguments, nullptr);
  });
}

}  // namespace

SX_API_RETURNS(void **) __cudaRegisterFatBinary(void *wrapper) { return register_module(wrapper); }

SX_API_RETURNS(void) __cudaRegisterFatBinaryEnd(void **handle) { end_registration(handle); }

SX_API_RETURNS(void) __cudaUnregisterFatBinary(void **handle) { unregister_module(handle); }

SX_API_RETURNS(void) __cudaRegisterFunction(void **handle, const char *stub, char *, const char *name, int, uint3 *,
                                            uint3 *, dim3 *, dim3 *, int *) {
  register_function(handle, stub, name);
}

SX_API_RETURNS(void) __cudaRegisterVar(void **handle, char *shadow, char *, const char *name, int, size_t size, int,
                                       int) {
  register_variable(handle, shadow, nullptr, name, size);
}

SX_API_RETURNS(void) __cudaRegisterManagedVar(void **handle, void **pointer, char *, const char *name, int,
                                              size_t size, int, int) {
  register_variable(handle, pointer, pointer, name, size);
}

SX_API_RETURNS(char) __cudaInitModule(void **handle) {
  return with_context([&] { return initialise_managed(handle); }) == kSuccess;
}

SX_API_RETURNS(unsigned) __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, CUstream stream) {
  sx::PerThread<Pushed>::get().list.push_back({grid, block, shared, stream});
  return 0;
}

SX_API __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  std::vector<Configuration> &pushed = sx::PerThread<Pushed>::get().list;
  if (pushed.empty()) return record(kMissingConfiguration);
  const Configuration &c = pushed.back();
  *grid = c.grid;
  *block = c.block;
  *shared = c.shared;
  *static_cast<CUstream *>(stream) = c.stream;
  pushed.pop_back();
  return kSuccess;
}

// The host stub keeps the handle for good, and launches with it even where it got none.  So the handle is our
// own and nothing is loaded here: a kernel that cannot be loaded answers with its own error at every launch.
SX_API __cudaGetKernel(CUkernel *handle, const void *stub) {
  const void *own = handle_of(stub);
  if (!own) return record(kInvalidDeviceFunction);
  *handle = reinterpret_cast<CUkernel>(const_cast<void *>(own));
  return kSuccess;
}

SX_API __cudaLaunchKernel(CUkernel kernel, dim3 grid, dim3 block, void **arguments, size_t shared, CUstream stream) {
  return launch(kernel, grid, block, arguments, shared, stream);
}

SX_API __cudaLaunchKernel_ptsz(CUkernel kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                               CUstream stream) {
  return launch(kernel, grid, block, arguments, shared, per_thread(stream));
}

SX_API cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                        CUstream stream) {
  return launch(function, grid, block, arguments, shared, stream);
}

SX_API cudaLaunchKernel_ptsz(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                             CUstream stream) {
  return launch(function, grid, block, arguments, shared, per_thread(stream));
}

SX_API cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  return launch_extended(config, function, arguments, false);
}

SX_API cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t *config, const void *function, void **arguments) {
  return launch_extended(config, function, arguments, true);
}

SX_API cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                   CUstream stream) {
  return launch_cooperative(function, grid, block, arguments, shared, stream);
}

SX_API cudaLaunchCooperativeKernel_ptsz(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        CUstream stream) {
  return launch_cooperative(function, grid, block, arguments, shared, per_thread(stream));
}

SX_API cudaLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
  return with_context([&] { return driver().cuLaunchHostFunc(stream, function, data); });
}

SX_API cudaLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *data) {
  return cudaLaunchHostFunc(per_thread(stream), function, data);
}
