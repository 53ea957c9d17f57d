// A dispatch packet: its kernel found, its waves prepared, and run by the emulated device's executor.
#include "card.h"

#include "../hip/launch.h"
#include "../hip/limits.h"
#include "loaded.h"
#include "log.h"
#include "record.h"

#include <algorithm>
#include <memory>

namespace sx::kfd {
namespace {

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

// The workgroups of a packet: 0, or an exception.
uint32_t shape(const Packet &packet, Launch &launch) {
  uint64_t threads = 1;
  launch.total = 1;
  for (unsigned axis = 0; axis < 3; ++axis) {
    uint32_t block = packet.workgroup[axis], grid = packet.grid[axis];
    if (!block || !grid) return kPacketDimensions;
    if (grid % block) {
      log_line("SX0872: a grid of %u work-items in workgroups of %u: the emulated card has whole workgroups only", grid, block);
      return kPacketDimensions;
    }
    launch.block[axis] = block;
    launch.grid[axis] = grid / block;
    threads *= block;
    launch.total *= grid / block;
  }
  if (threads > kMaxThreads) return kPacketWorkgroup;
  return packet.group_size > kMaxLds ? uint32_t{kPacketGroupSegment} : 0;
}

// What the queue is told of a fault; that of memory is an event of its own.
uint32_t exception_of(const Launch &launch) {
  switch (launch.fault.kind) {
    case SX_FAULT_ADDRESS: event_memory_fault(launch.fault.address, false); return kWaveMemoryViolation;
    case SX_FAULT_MISALIGNED:
    case SX_FAULT_LDS:
    case SX_FAULT_SCRATCH: return kWaveApertureViolation;
    case SX_FAULT_TRAP: return kWaveTrap;
    case SX_FAULT_ILLEGAL: return kWaveIllegalInstruction;
    default: return kWaveAbort;
  }
}

}  // namespace

uint32_t dispatch(const Packet &packet, uint64_t address) {
  auto launch = std::make_unique<Launch>();
  std::string why;
  launch->module = loaded_kernel(packet.kernel_object, launch->function, why);
  if (launch->module) why = launch->function->info->unusable;
  if (!why.empty()) {
    log_line("SX0873: the kernel at 0x%llx cannot run on the emulated card: %s", static_cast<unsigned long long>(packet.kernel_object),
             why.c_str());
    return kPacketCode;
  }
  if (uint32_t exception = shape(packet, *launch)) return exception;
  if (function_image(*launch->function, launch->counts)) return kPacketCode;  // reported
  const KernelInfo &info = *launch->function->info;
  launch->lds_size = static_cast<uint32_t>(round_up(std::max(packet.group_size, info.group_size), kLdsStep));
  launch->scratch_size = round_up(std::max(packet.private_size, info.private_size), 16);
  launch->kernarg = packet.kernarg;
  if (info.kernarg_size) {
    // Code that is compiled reads its arguments without a check.
    uint64_t there = info.kernarg_size;
    launch->arguments = memory_at(packet.kernarg, there, false);
    if (!launch->arguments || there < info.kernarg_size) {
      log_line("SX0873: the kernel at 0x%llx cannot run on the emulated card: its %u bytes of arguments are not in memory at 0x%llx",
               static_cast<unsigned long long>(packet.kernel_object), info.kernarg_size, static_cast<unsigned long long>(packet.kernarg));
      event_memory_fault(packet.kernarg, false);
      return kWaveMemoryViolation;
    }
  }
  make_templates(*launch, address, 0);
  Record record;
  if (run_launch(*launch)) return exception_of(*launch);
  record.write(packet, address, info.name, launch->lds_size, static_cast<uint32_t>(launch->scratch_size));
  return 0;
}

}  // namespace sx::kfd
