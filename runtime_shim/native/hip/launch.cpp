// hipModuleLaunchKernel: checks and arguments.
#include "launch.h"

#include "kernarg.h"
#include "limits.h"
#include "state.h"
#include "stream.h"

#include <algorithm>
#include <cstring>

namespace sx {
namespace {

constexpr size_t kPacketSize = 64, kQueueSize = 256;

struct Shape {
  uint32_t grid[3], block[3];
  uint32_t shared;
  bool cooperative;
};

size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

int check_shape(const Function &function, const Shape &shape) {
  uint64_t threads = 1, groups = 1;
  for (int axis = 0; axis < 3; ++axis) {
    if (!shape.grid[axis] || !shape.block[axis]) return hipErrorInvalidValue;
    if (shape.block[axis] > kMaxThreads || shape.grid[axis] > 0x7fffffffu) return hipErrorInvalidValue;
    threads *= shape.block[axis];
    if (groups > UINT64_MAX / 4 / shape.grid[axis]) return hipErrorInvalidValue;
    groups *= shape.grid[axis];
  }
  if (threads > kMaxThreads) return hipErrorInvalidValue;
  const KernelInfo &info = *function.info;
  if (shape.shared > max_lds() || info.group_size > max_lds() - shape.shared) return hipErrorInvalidValue;
  if (threads > info.max_flat_workgroup_size) return hipErrorLaunchOutOfResources;
  if (shape.cooperative) {
    unsigned fit = max_active_groups(info, static_cast<unsigned>(threads), shape.shared);
    if (groups > uint64_t{fit} * config().multiprocessors) return hipErrorCooperativeLaunchTooLarge;
  }
  return 0;
}

void put(uint8_t *segment, const KernelArg &arg, uint64_t value) {
  memcpy(segment + arg.offset, &value, std::min<uint64_t>(arg.size, sizeof value));
}

// Hidden arguments of code object version 5; those that are not named here stay zero.
void fill_hidden(uint8_t *segment, const KernelArg &arg, const Shape &shape, uint32_t dynamic_lds) {
  const std::string &kind = arg.kind;
  static const char axes[] = "xyz";
  for (int axis = 0; axis < 3; ++axis) {
    const char suffix[] = {'_', axes[axis], 0};
    if (kind == std::string("hidden_block_count") + suffix) return put(segment, arg, shape.grid[axis]);
    if (kind == std::string("hidden_group_size") + suffix) return put(segment, arg, shape.block[axis]);
  }
  if (kind == "hidden_grid_dims")
    return put(segment, arg, shape.grid[2] * shape.block[2] > 1 ? 3 : shape.grid[1] * shape.block[1] > 1 ? 2 : 1);
  if (kind == "hidden_dynamic_lds_size") return put(segment, arg, dynamic_lds);
  if (kind == "hidden_private_base") return put(segment, arg, SX_PRIVATE_APERTURE_HI);
  if (kind == "hidden_shared_base") return put(segment, arg, SX_SHARED_APERTURE_HI);
}

// The buffer of `extra`, which is a list of keys with a value each; sizes beyond the segment are an error.
int fill_from_extra(uint8_t *segment, size_t segment_size, void **extra) {
  const void *buffer = nullptr;
  const size_t *size = nullptr;
  for (unsigned i = 0; extra[i] != HIP_LAUNCH_PARAM_END && extra[i] != nullptr; i += 2) {
    if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[i + 1];
    else if (extra[i] == HIP_LAUNCH_PARAM_BUFFER_SIZE) size = static_cast<const size_t *>(extra[i + 1]);
    else return hipErrorInvalidValue;
  }
  if (!buffer || !size || *size > segment_size) return hipErrorInvalidValue;
  memcpy(segment, buffer, *size);
  return 0;
}

int fill_arguments(const KernelInfo &info, uint8_t *segment, const Shape &shape, void **params, void **extra) {
  if (params && extra) return hipErrorInvalidValue;
  if (extra) {
    if (int error = fill_from_extra(segment, info.kernarg_size, extra)) return error;
  }
  size_t index = 0;
  for (const KernelArg &arg : info.args) {
    if (arg.hidden()) {
      fill_hidden(segment, arg, shape, shape.shared);
    } else if (!extra) {
      if (!params || !params[index]) return hipErrorInvalidValue;
      memcpy(segment + arg.offset, params[index++], arg.size);
    }
  }
  return 0;
}

// The dispatch packet of HSA's queue, for kernels that ask for its address.
void fill_packet(uint8_t *packet, const Launch &launch) {
  auto put16 = [packet](unsigned at, uint32_t value) {
    uint16_t narrow = static_cast<uint16_t>(value);
    memcpy(packet + at, &narrow, sizeof narrow);
  };
  auto put32 = [packet](unsigned at, uint32_t value) { memcpy(packet + at, &value, sizeof value); };
  put16(0, 2);  // HSA_PACKET_TYPE_KERNEL_DISPATCH
  put16(2, 3);  // dimensions
  for (unsigned axis = 0; axis < 3; ++axis) {
    put16(4 + 2 * axis, launch.block[axis]);
    put32(12 + 4 * axis, launch.grid[axis] * launch.block[axis]);
  }
  put32(24, static_cast<uint32_t>(launch.scratch_size));
  put32(28, launch.lds_size);
  memcpy(packet + 40, &launch.kernarg, sizeof launch.kernarg);
}

void run_or_drop(Launch &launch) {
  launch.helped = helped_thread();
  if (!sticky_error()) {
    if (int error = run_launch(launch)) set_sticky_error(error);
  }
  kernarg_give(launch.kernarg, launch.kernarg_slot);
}

int launch_kernel(hipFunction_t handle, const Shape &shape, hipStream_t stream_handle, void **params,
                  void **extra) {
  Function *function = nullptr;
  StreamRef stream;
  auto launch = std::make_shared<Launch>();
  launch->module = find_function(handle, function);
  if (!launch->module) return hipErrorInvalidHandle;
  if (int error = find_stream(stream_handle, stream)) return error;
  if (int error = check_shape(*function, shape)) return error;
  if (int error = function_image(*function, launch->counts)) return error;

  const KernelInfo &info = *function->info;
  launch->function = function;
  std::copy(shape.grid, shape.grid + 3, launch->grid);
  std::copy(shape.block, shape.block + 3, launch->block);
  launch->total = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  // Compilers read whole vectors at the end of an array: hardware allocates in larger steps.
  launch->lds_size = round_up(info.group_size + shape.shared, kLdsStep);
  launch->scratch_size = round_up(std::max<uint64_t>(info.private_size, info.dynamic_stack ? stack_limit() : 0), 16);
  launch->cooperative = shape.cooperative;

  size_t packet = round_up(std::max<uint32_t>(info.kernarg_size, 1), 64);
  launch->kernarg = kernarg_take(packet + kPacketSize + kQueueSize, launch->kernarg_slot);
  if (!launch->kernarg) return hipErrorOutOfMemory;
  uint8_t *segment = reinterpret_cast<uint8_t *>(launch->kernarg);
  launch->arguments = segment;
  if (int error = fill_arguments(info, segment, shape, params, extra)) {
    kernarg_give(launch->kernarg, launch->kernarg_slot);
    return error;
  }
  fill_packet(segment + packet, *launch);
  make_templates(*launch, launch->kernarg + packet, launch->kernarg + packet + kPacketSize);
  enqueue(stream, [launch] { run_or_drop(*launch); }, true);
  return 0;
}

}  // namespace
}  // namespace sx

using namespace sx;

SX_API hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                        unsigned by, unsigned bz, unsigned shared, hipStream_t stream,
                                        void **params, void **extra) {
  return call([&] {
    return launch_kernel(f, {{gx, gy, gz}, {bx, by, bz}, shared, false}, stream, params, extra);
  });
}

SX_API hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz,
                                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                                   hipStream_t stream, void **params) {
  return call([&] {
    return launch_kernel(f, {{gx, gy, gz}, {bx, by, bz}, shared, true}, stream, params, nullptr);
  });
}

// Our own, for utilisation as NVML reports it.
extern "C" __attribute__((visibility("default"))) uint64_t sassxlate_emulated_busy(void) { return busy_nanoseconds(); }
