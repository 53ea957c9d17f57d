// hipModuleLaunchKernel: checks, arguments, and the initial state of the waves.
#include "launch.h"

#include "kernarg.h"
#include "limits.h"
#include "log.h"
#include "memory.h"
#include "record.h"
#include "state.h"
#include "stream.h"
#include "strict.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace sx {
namespace {

// Enable bits of user SGPRs in the kernel descriptor's properties, and what each takes (rdna3.md 4.2, LLVM's
// AMDGPUUsage): the order is that of the registers.
constexpr unsigned kDispatchPtr = 1, kQueuePtr = 2, kKernargPtr = 3, kDispatchId = 4, kPrivateSize = 6;
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
  if (shape.shared > kMaxLds || info.group_size > kMaxLds - shape.shared) return hipErrorInvalidValue;
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

// User SGPRs by the enable bits, then the workgroup ids where the descriptor's count puts them.
void place_sgprs(Launch &launch, const KernelInfo &info, uint64_t packet, uint64_t queue, SxWave &wave) {
  unsigned at = 0;
  auto pair = [&](uint64_t value) {
    wave.sgpr[at++] = static_cast<uint32_t>(value);
    wave.sgpr[at++] = static_cast<uint32_t>(value >> 32);
  };
  auto enabled = [&](unsigned bit) { return info.properties >> bit & 1; };
  if (enabled(kDispatchPtr)) pair(packet);
  if (enabled(kQueuePtr)) pair(queue);
  if (enabled(kKernargPtr)) pair(launch.kernarg);
  if (enabled(kDispatchId)) pair(0);
  if (enabled(kPrivateSize)) wave.sgpr[at++] = static_cast<uint32_t>(launch.scratch_size);
  unsigned system = info.rsrc2 >> 1 & 31;
  for (unsigned axis = 0; axis < 3; ++axis) {
    launch.group_id_register[axis] = info.rsrc2 >> (7 + axis) & 1 ? system++ : kNoRegister;
  }
}

void make_templates(Launch &launch, const KernelInfo &info, uint64_t packet, uint64_t queue) {
  unsigned threads = launch.block[0] * launch.block[1] * launch.block[2];
  // rsrc2[12:11]: which of x, y and z v0 holds.
  unsigned dimensions = (info.rsrc2 >> 11 & 3) + 1;
  SxWave wave;
  memset(&wave, 0, sizeof wave);
  if (config().strict) strict_fill(wave.sgpr, sizeof wave.sgpr, 0x5095);
  place_sgprs(launch, info, packet, queue, wave);
  wave.lds_size = launch.lds_size;
  wave.scratch_size = launch.scratch_size;
  wave.fuel = config().fuel;
  wave.counts = launch.counts.blocks();
  wave.strict_seed = config().strict ? strict_wave_seed() : 0;
  uint64_t text = info.entry_vaddr;
  launch.module->code->elf.section_address(".text", text);
  wave.code_base = launch.module->load_base + text;
  launch.templates.assign((threads + 31) / 32, wave);
  for (unsigned i = 0; i < launch.templates.size(); ++i) {
    SxWave &w = launch.templates[i];
    unsigned lanes = std::min(32u, threads - i * 32);
    if (config().strict) strict_fill(w.v0, sizeof w.v0, 0x6095 + i);
    w.exec = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      unsigned flat = i * 32 + lane;
      unsigned x = flat % launch.block[0], y = flat / launch.block[0] % launch.block[1];
      unsigned z = flat / launch.block[0] / launch.block[1];
      w.v0[lane] = x | (dimensions > 1 ? y << 10 : 0) | (dimensions > 2 ? z << 20 : 0);
    }
  }
}

// Adds to the number in the file SASSXLATE_INSTRUCTIONS, if set: the work of a killed process
// is included, and that of several processes adds up.
void tally(uint64_t executed) {
  static uint64_t *const number = []() -> uint64_t * {
    std::string path = env_string("SASSXLATE_INSTRUCTIONS");
    int fd = path.empty() ? -1 : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return nullptr;
    void *at = ftruncate(fd, sizeof(uint64_t)) == 0
                   ? mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    close(fd);
    return at == MAP_FAILED ? nullptr : static_cast<uint64_t *>(at);
  }();
  if (number) __atomic_fetch_add(number, executed, __ATOMIC_RELAXED);
}

uint64_t nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

// The time in which at least one kernel ran: streams overlap.
class Busy {
 public:
  Busy() {
    std::lock_guard<std::mutex> guard(mutex());
    if (running++ == 0) began = nanoseconds();
  }
  ~Busy() {
    std::lock_guard<std::mutex> guard(mutex());
    if (--running == 0) total += nanoseconds() - began;
  }
  Busy(const Busy &) = delete;
  Busy &operator=(const Busy &) = delete;

  static uint64_t so_far() {
    std::lock_guard<std::mutex> guard(mutex());
    return total + (running ? nanoseconds() - began : 0);
  }

 private:
  static std::mutex &mutex() {
    static std::mutex *const one = new std::mutex;  // threads of the device outlive static destructors
    return *one;
  }
  static inline unsigned running = 0;
  static inline uint64_t began = 0, total = 0;
};

void run_launch(Launch &launch) {
  if (!sticky_error()) {
    // The current window: a kernel may also access memory that was allocated since the launch was enqueued.
    Window window = memory_window();
    static std::atomic<uint32_t> launches{0};
    do launch.number = ++launches;
    while (!launch.number);
    for (SxWave &wave : launch.templates) {
      wave.arena_base = window.base;
      wave.arena_size = window.size;
    }
    {
      Recording recording(launch, launch.lds_size - launch.function->info->group_size);
      Busy busy;
      execute(launch);
    }
    tally(launch.executed.load());
    launch.counts.launched(launch, launch.lds_size - launch.function->info->group_size);
    if (int error = report_fault(launch)) set_sticky_error(error);
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
  if (int error = fill_arguments(info, segment, shape, params, extra)) {
    kernarg_give(launch->kernarg, launch->kernarg_slot);
    return error;
  }
  fill_packet(segment + packet, *launch);
  make_templates(*launch, info, launch->kernarg + packet, launch->kernarg + packet + kPacketSize);
  enqueue(stream, [launch] { run_launch(*launch); });
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
extern "C" __attribute__((visibility("default"))) uint64_t sassxlate_emulated_busy(void) { return Busy::so_far(); }
