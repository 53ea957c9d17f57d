// The ioctls of /dev/kfd that AMD's runtime uses.
#include "card.h"

#include "../hip/state.h"
#include "loaded.h"
#include "log.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <unistd.h>

namespace sx::kfd {
namespace {

constexpr uint64_t kLdsBase = uint64_t{SX_SHARED_APERTURE_HI} << 32, kScratchBase = uint64_t{SX_PRIVATE_APERTURE_HI} << 32;
constexpr uint64_t kApertureSize = 1ull << 32;

uint64_t clock_of(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

int version(VersionArgs &args) {
  args = {kMajor, kMinor};
  return 0;
}

int apertures(AperturesArgs &args) {
  if (args.count && args.apertures)
    *reinterpret_cast<Aperture *>(args.apertures) = {
        kLdsBase, kLdsBase + kApertureSize - 1, kScratchBase, kScratchBase + kApertureSize - 1, 1 << 14, (1ull << 47) - 1, kGpuId, 0};
  args.count = 1;
  return 0;
}

int clocks(ClockArgs &args) {
  args.gpu = ticks();
  args.cpu = clock_of(CLOCK_MONOTONIC_RAW);
  args.system = clock_of(CLOCK_BOOTTIME);
  args.system_frequency = 1000000000;
  return 0;
}

int map(MapArgs &args) {
  if (int error = memory_map(args.handle)) return error;
  args.succeeded = args.count;
  return 0;
}

int unmap(MapArgs &args) {
  if (int error = memory_unmap(args.handle)) return error;
  args.succeeded = args.count;
  return 0;
}

int tiles(TileArgs &args) {
  args.tile_count = args.macro_tile_count = 0;
  return 0;
}

// Addresses of the system alone, which page faults of the card would need.
int xnack(XnackArgs &args) {
  if (args.enabled > 0) return EPERM;
  args.enabled = 0;
  return 0;
}

int export_file(ExportArgs &args) {
  uint64_t size = 0;
  int file = memory_file(args.handle, size);
  if (file < 0) {
    log_line("SX0870: the emulated card's memory can be shared with nothing else");
    return EINVAL;
  }
  int fd = dup(file);
  if (fd < 0) return errno;
  args.fd = static_cast<uint32_t>(fd);
  return 0;
}

int file_info(DmabufInfoArgs &args) {
  if (!buffer_of_file(static_cast<int>(args.fd), args.size)) return EINVAL;
  args.gpu_id = kGpuId;
  args.flags = kVram | kWritable;
  args.metadata_size = 0;
  return 0;
}

int runtime_enable(const RuntimeEnableArgs &args) {
  if (args.mode & 1) set_debug_list(args.r_debug);
  return 0;
}

template <class Args>
int call(int (*body)(Args &), void *argument) {
  return body(*static_cast<Args *>(argument));
}

int carry_out(unsigned number, void *argument) {
  switch (number) {
    case kGetVersion: return call(version, argument);
    case kCreateQueue: return call(queue_create, argument);
    case kDestroyQueue: return queue_destroy(static_cast<EventArgs *>(argument)->event_id);
    case kGetClockCounters: return call(clocks, argument);
    case kCreateEvent: return call(event_create, argument);
    case kDestroyEvent: return event_destroy(static_cast<EventArgs *>(argument)->event_id);
    case kSetEvent: return event_set(static_cast<EventArgs *>(argument)->event_id, true);
    case kResetEvent: return event_set(static_cast<EventArgs *>(argument)->event_id, false);
    case kWaitEvents: return call(event_wait, argument);
    case kGetTileConfig: return call(tiles, argument);
    case kGetProcessAperturesNew: return call(apertures, argument);
    case kAllocMemoryOfGpu: return call(memory_alloc, argument);
    case kFreeMemoryOfGpu: return memory_free(static_cast<HandleArgs *>(argument)->handle);
    case kMapMemoryToGpu: return call(map, argument);
    case kUnmapMemoryFromGpu: return call(unmap, argument);
    case kSvm: return call(memory_svm, argument);
    case kSetXnackMode: return call(xnack, argument);
    case kAvailableMemory: static_cast<AvailableArgs *>(argument)->bytes = memory_available(); return 0;
    case kExportDmabuf: return call(export_file, argument);
    case kGetDmabufInfo: return call(file_info, argument);
    case kRuntimeEnable: return runtime_enable(*static_cast<RuntimeEnableArgs *>(argument));
    case kAllocQueueGws: static_cast<GwsArgs *>(argument)->first = 0; return 0;
    // What the emulated card has nothing of: caches with policies, a choice of compute units, priorities, a trap
    // handler's code (a trap ends the launch) and scratch memory that waves share (the executor's is its own).
    case kSetMemoryPolicy:
    case kUpdateQueue:
    case kSetScratchBackingVa:
    case kSetTrapHandler:
    case kAcquireVm:
    case kSetCuMask: return 0;
    default: log_line("SX0870: the emulated card's driver has no ioctl 0x%02x", number); return EINVAL;
  }
}

}  // namespace

int request(unsigned long number, void *argument) {
  if ((number >> 8 & 0xff) != kRequestBase) {
    errno = ENOTTY;
    return -1;
  }
  int error = argument ? carry_out(number & 0xff, argument) : EFAULT;
  if (!error) return 0;
  errno = error;
  return -1;
}

}  // namespace sx::kfd
