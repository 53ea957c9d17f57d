// Launches: parameters become the image of constant bank 0, which HIP takes as one argument.
#include "graph.h"
#include "launch.h"
#include "locks.h"
#include "module.h"
#include "texture.h"
#include "log.h"
#include "unsupported.h"

#include <algorithm>
#include <cstring>

namespace sx {
namespace {

constexpr uint64_t kSharedWindow = 0x0001000000000000ull;  // SX_SHARED_APERTURE_HI in the high word
constexpr unsigned kMaxBlock[3] = {1024, 1024, 64};
constexpr unsigned kMaxGrid[3] = {0x7fffffff, 65535, 65535};
constexpr unsigned kMaxThreads = 1024;

CUresult check_shape(const Kernel &kernel, const Shape &shape) {
  uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (!shape.grid[i] || shape.grid[i] > kMaxGrid[i] || !shape.block[i] || shape.block[i] > kMaxBlock[i])
      return CUDA_ERROR_INVALID_VALUE;
    threads *= shape.block[i];
  }
  if (threads > kMaxThreads || threads > static_cast<unsigned>(kernel.info->threads)) return CUDA_ERROR_INVALID_VALUE;
  if (shape.shared > static_cast<unsigned>(kernel.max_dynamic_shared)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// The parameters from the application's array of pointers, or its packed buffer.
CUresult copy_params(const Kernel &kernel, void **params, void **extra, std::vector<uint8_t> &packed) {
  uint64_t size = kernel.launch.param_size;
  packed.assign(size, 0);
  uint8_t *area = packed.data();
  if (params && extra) return CUDA_ERROR_INVALID_VALUE;
  if (extra) {
    const void *buffer = nullptr;
    size_t bytes = 0;
    for (size_t i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
      else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<size_t *>(extra[i + 1]);
      else return CUDA_ERROR_INVALID_VALUE;
    }
    if (bytes > size) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    if (bytes && !buffer) return CUDA_ERROR_INVALID_VALUE;
    if (bytes) memcpy(area, buffer, bytes);
    return CUDA_SUCCESS;
  }
  const std::vector<ParamInfo> &known = kernel.info->params;
  if (!known.empty() && !params) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].offset > size || known[i].size > size - known[i].offset || !params[i]) return CUDA_ERROR_INVALID_VALUE;
    memcpy(area + known[i].offset, params[i], known[i].size);
  }
  return CUDA_SUCCESS;
}

CUresult fill_value(Kernel &kernel, Device &device, const Shape &shape, const FillInfo &fill, uint64_t &value) {
  static std::atomic<uint64_t> grid_id{1};
  switch (fill.kind) {
    case FillInfo::Kind::BlockX: value = shape.block[0]; break;
    case FillInfo::Kind::BlockY: value = shape.block[1]; break;
    case FillInfo::Kind::BlockZ: value = shape.block[2]; break;
    case FillInfo::Kind::GridX: value = shape.grid[0]; break;
    case FillInfo::Kind::GridY: value = shape.grid[1]; break;
    case FillInfo::Kind::GridZ: value = shape.grid[2]; break;
    case FillInfo::Kind::U32:
    case FillInfo::Kind::U64: value = fill.value; break;
    case FillInfo::Kind::ExplicitCluster: value = fill.value || shape.clusters; break;
    case FillInfo::Kind::SharedWindow: value = kSharedWindow; break;
    case FillInfo::Kind::DynamicShared: value = shape.shared; break;
    case FillInfo::Kind::ReservedShared: value = fill.value + ((uint64_t{shape.shared} + 15) & ~uint64_t{15}); break;
    case FillInfo::Kind::StackTop: {
      // The whole of the scratch grows: HIP has the same limit (cuCtxSetLimit).
      uint64_t stack = current_context()->hip_stack, has = kernel.launch.private_size;
      value = fill.value + (stack > has ? stack - has : 0);
      break;
    }
    case FillInfo::Kind::GridId: value = grid_id++; break;
    case FillInfo::Kind::Multiprocessors: value = static_cast<uint64_t>(device.multiprocessors); break;
    case FillInfo::Kind::Smid: {
      // As semantics/arithmetic/multiprocessor.py says.
      const uint64_t count = static_cast<uint64_t>(device.multiprocessors), one = uint64_t{1} << 32;
      value = count | std::min(one / count, one - 1) << 32;
      break;
    }
    case FillInfo::Kind::Bank2: return kernel.owner->section(device, kernel.info->bank2, value);
    case FillInfo::Kind::Bank3: return kernel.owner->bank(device, ".nv.constant3", value);
    case FillInfo::Kind::Bank4: return kernel.owner->bank(device, ".nv.constant4", value);
    case FillInfo::Kind::Textures: return texture_table(device, value);
    case FillInfo::Kind::Locks: return lock_table(device, value);
  }
  return CUDA_SUCCESS;
}

CUresult build_segment(Kernel &kernel, Device &device, const Shape &shape, const std::vector<uint8_t> &params,
                       std::vector<uint8_t> &segment) {
  segment.assign(kernel.launch.kernarg_size, 0);
  if (!params.empty()) memcpy(segment.data() + kernel.launch.param_base, params.data(), params.size());
  CUresult result = CUDA_SUCCESS;
  for (const FillInfo &fill : kernel.launch.fills) {
    if (result != CUDA_SUCCESS) return result;
    uint64_t value = 0;
    result = fill_value(kernel, device, shape, fill, value);
    memcpy(segment.data() + fill.offset, &value, fill_width(fill.kind));
  }
  return result;
}

CUresult start_segment(Kernel *kernel, hipFunction_t function, const Shape &shape, std::vector<uint8_t> &segment) {
  const unsigned *g = shape.grid, *b = shape.block;
  hipStream_t stream = to_hip(shape.stream);
  if (shape.cooperative) {
    if (!hip().hipModuleLaunchCooperativeKernel) return CUDA_ERROR_NOT_SUPPORTED;
    // It takes no packed buffer; the kernel has one argument, the whole segment.
    void *argument = segment.data();
    return kernel->launched(from_hip(hip().hipModuleLaunchCooperativeKernel(
        function, g[0], g[1], g[2], b[0], b[1], b[2], shape.shared, stream, &argument)));
  }
  size_t size = segment.size();
  void *config[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, segment.data(), HIP_LAUNCH_PARAM_BUFFER_SIZE, &size,
                    HIP_LAUNCH_PARAM_END};
  return kernel->launched(from_hip(hip().hipModuleLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2],
                                                               shape.shared, stream, nullptr, config)));
}

CUresult launch(const void *handle, const Shape &shape, void **params, void **extra) {
  if (Kernel *kernel = find_kernel(handle))
    note("grid %u %u %u block %u %u %u shared %u %s", shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0],
         shape.block[1], shape.block[2], shape.shared, kernel->info->name.c_str());
  KernelCall call;
  CUresult result = prepare(handle, shape, params, extra, call);
  if (result != CUDA_SUCCESS) {
    invalidate_capture(shape.stream);
    return result;
  }
  if (is_capturing(shape.stream)) {
    GraphWork work(NodeType::Kernel);
    work.kernel = std::move(call);
    return capture(shape.stream, std::move(work));
  }
  return start(call, shape.stream);
}

std::string blocks(const unsigned *size) {
  return std::to_string(size[0]) + "x" + std::to_string(size[1]) + "x" + std::to_string(size[2]);
}

// Attributes change how a launch is scheduled, or what it means; the latter must not be passed over.
CUresult read_attributes(const void *handle, const CUlaunchConfig &config, Shape &shape, std::vector<CUevent> &events) {
  if (config.numAttrs && !config.attrs) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute &attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        shape.cooperative = attribute.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION: {
        const unsigned *c = attribute.value.cluster;
        if (c[0] > 1 || c[1] > 1 || c[2] > 1) {
          Kernel *kernel = find_kernel(handle);
          if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
          return kernel->refuse_launch(CUDA_ERROR_NOT_SUPPORTED, "SX0717", "a launch with a cluster of " + blocks(c) + " blocks");
        }
        shape.clusters |= attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && c[0];
        break;
      }
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        // Recorded when the kernel has ended: later than it might be, never too early.
        events.push_back(attribute.value.event.event);
        break;
      case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
        if (attribute.value.updatable.updatable) return refuse("a device-updatable graph node");
        break;
      default:
        if (!is_hint(attribute.id)) return refuse("a launch attribute that is not known here");
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

bool is_hint(int attribute) {
  switch (attribute) {
    case CU_LAUNCH_ATTRIBUTE_IGNORE:
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING: return true;
    default: return false;
  }
}

std::vector<void *> KernelCall::pointers() const {
  std::vector<void *> all;
  if (Kernel *known = find_kernel(kernel))
    for (const ParamInfo &param : known->info->params) all.push_back(const_cast<uint8_t *>(params.data()) + param.offset);
  return all;
}

CUresult prepare(const void *handle, const Shape &shape, void **params, void **extra, KernelCall &call) {
  Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = check_shape(*kernel, shape);
  if (result != CUDA_SUCCESS) return result;
  hipFunction_t function;
  result = kernel->load(current_device(), function);
  if (result != CUDA_SUCCESS) return result;
  // Registers for so many threads: asked here, because AMD's library answers with an error that stays.
  const unsigned *b = shape.block;
  const uint64_t threads = uint64_t{b[0]} * b[1] * b[2], most = kernel->launch.max_threads;
  if (threads > most) {
    // Programs that never ask for errors take for granted what NVIDIA's registers suffice for.
    if (threads > static_cast<uint64_t>(threads_on_nvidia(*kernel->info))) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    return kernel->refuse_launch(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "SX0774",
                                 "a block of " + std::to_string(threads) + " threads; the translation's registers suffice for " +
                                     std::to_string(most));
  }
  call.kernel = handle;
  call.shape = shape;
  return copy_params(*kernel, params, extra, call.params);
}

CUresult start(const KernelCall &call, CUstream stream) {
  Kernel *kernel = find_kernel(call.kernel);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  Device &device = current_device();
  hipFunction_t function;
  CUresult result = kernel->load(device, function);
  if (result != CUDA_SUCCESS) return result;
  if (kernel->launch.heap) result = kernel->owner->give_heap(device);
  if (result != CUDA_SUCCESS) return result;
  std::vector<uint8_t> segment;
  result = build_segment(*kernel, device, call.shape, call.params, segment);
  if (result != CUDA_SUCCESS) return result;
  kernel->say_what_differs();
  Shape shape = call.shape;
  shape.stream = stream;
  return start_segment(kernel, function, shape, segment);
}

CUresult launch_host(CUhostFn function, void *user, CUstream stream) {
  return SX_HIP(hipLaunchHostFunc, to_hip(stream), function, user);
}

}  // namespace sx

using namespace sx;

SX_API cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
  return enter<Need::Context>(__func__, [&] {
    return launch(function, Shape{{gx, gy, gz}, {bx, by, bz}, shared, stream}, params, extra);
  });
}

SX_API cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!config) return CUDA_ERROR_INVALID_VALUE;
    Shape shape = {{config->gridDimX, config->gridDimY, config->gridDimZ},
                   {config->blockDimX, config->blockDimY, config->blockDimZ},
                   config->sharedMemBytes,
                   config->hStream};
    std::vector<CUevent> events;
    CUresult result = read_attributes(function, *config, shape, events);
    if (result == CUDA_SUCCESS) result = launch(function, shape, params, extra);
    for (CUevent event : events)
      if (result == CUDA_SUCCESS && event) result = record_event(event, shape.stream);
    return result;
  });
}

SX_API cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                 unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params) {
  return enter<Need::Context>(__func__, [&] {
    return launch(function, Shape{{gx, gy, gz}, {bx, by, bz}, shared, stream, true}, params, nullptr);
  });
}

SX_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (!is_capturing(stream)) return launch_host(function, user, stream);
    GraphWork work(NodeType::Host);
    work.host = {function, user};
    return capture(stream, std::move(work));
  });
}

SX_API cuLaunchKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                           unsigned bz, unsigned shared, CUstream stream, void **params, void **extra) {
  return cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream ? stream : CU_STREAM_PER_THREAD, params,
                        extra);
}

SX_API cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params, void **extra) {
  if (!config || config->hStream) return cuLaunchKernelEx(config, function, params, extra);
  CUlaunchConfig own = *config;
  own.hStream = CU_STREAM_PER_THREAD;
  return cuLaunchKernelEx(&own, function, params, extra);
}

SX_API cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                      unsigned by, unsigned bz, unsigned shared, CUstream stream, void **params) {
  return cuLaunchCooperativeKernel(function, gx, gy, gz, bx, by, bz, shared, stream ? stream : CU_STREAM_PER_THREAD,
                                   params);
}

SX_API cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void *user) {
  return cuLaunchHostFunc(stream ? stream : CU_STREAM_PER_THREAD, function, user);
}
