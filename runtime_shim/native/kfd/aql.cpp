// Packets of HSA's queues, in their order: each is complete before the next one begins, so that the barrier bit and the
// fences of a header ask for nothing more.
#include "card.h"

#include "log.h"

#include <cstring>

namespace sx::kfd {
namespace {

enum class Step { Done, Waits, Failed };

int64_t value_of(uint64_t signal) { return __atomic_load_n(&reinterpret_cast<const Signal *>(signal)->value, __ATOMIC_ACQUIRE); }

// Of the signals that the packet names, all or any must be 0; one that names none is complete.
bool satisfied(const BarrierPacket &packet, bool all) {
  bool named = false, any = false, every = true;
  for (uint64_t dependency : packet.dependencies) {
    if (!dependency) continue;
    bool zero = value_of(dependency) == 0;
    named = true;
    any = any || zero;
    every = every && zero;
  }
  return !named || (all ? every : any);
}

bool satisfied(const BarrierValuePacket &packet) {
  int64_t value = value_of(packet.awaited) & packet.mask;
  switch (packet.condition) {
    case 0: return value == packet.value;
    case 1: return value != packet.value;
    case 2: return value < packet.value;
    default: return value >= packet.value;
  }
}

// Whether the commands concern caches only.
bool only_caches(uint64_t at, uint32_t words) {
  for (uint32_t i = 0; i < words;) {
    uint64_t size = 4;
    const void *host = memory_at(at + uint64_t{i} * 4, size, false);
    if (!host || size < 4) return false;
    uint32_t word;
    memcpy(&word, host, sizeof word);
    uint32_t operation = word >> 8 & 0xff;
    if (word >> 30 != 3 || (operation != kPm4Nop && operation != kPm4AcquireMem)) {
      log_line("SX0871: the emulated card does not know the command 0x%08x in a queue", word);
      return false;
    }
    i += (word >> 16 & 0x3fff) + 2;
  }
  return true;
}

Step vendor(const Queue &queue, const void *bytes) {
  VendorPacket packet;
  memcpy(&packet, bytes, sizeof packet);
  if (packet.format == kFormatBarrierValue) {
    BarrierValuePacket barrier;
    memcpy(&barrier, bytes, sizeof barrier);
    return satisfied(barrier) ? Step::Done : Step::Waits;
  }
  if (packet.format == kFormatPm4) {
    uint64_t at = (uint64_t{packet.indirect[2]} << 32 | packet.indirect[1]) & ~uint64_t{3};
    if (only_caches(at, packet.indirect[3] & 0xfffff)) return Step::Done;
  } else {
    log_line("SX0871: the emulated card does not know packets of AMD's format %u", packet.format);
  }
  queue_exception(queue, kPacketVendor);
  return Step::Failed;
}

Step run(const Queue &queue, const void *bytes, unsigned type) {
  if (type == kVendorPacket) return vendor(queue, bytes);
  if (type == kBarrierAnd || type == kBarrierOr) {
    BarrierPacket packet;
    memcpy(&packet, bytes, sizeof packet);
    return satisfied(packet, type == kBarrierAnd) ? Step::Done : Step::Waits;
  }
  if (type == kDispatchPacket) {
    Packet packet;
    memcpy(&packet, bytes, sizeof packet);
    uint32_t exception = dispatch(packet, reinterpret_cast<uint64_t>(bytes));
    if (!exception) return Step::Done;
    queue_exception(queue, exception);
    return Step::Failed;
  }
  log_line("SX0871: the emulated card does not know packets of type %u", type);
  queue_exception(queue, kPacketUnsupported);
  return Step::Failed;
}

}  // namespace

Progress run_aql(Queue &queue) {
  Progress progress;
  const uint64_t packets = queue.size / sizeof(Packet);
  while (queue.read < __atomic_load_n(queue.write_pointer, __ATOMIC_ACQUIRE)) {
    auto *place = reinterpret_cast<uint8_t *>(queue.ring + queue.read % packets * sizeof(Packet));
    auto *header = reinterpret_cast<uint16_t *>(place);
    unsigned type = __atomic_load_n(header, __ATOMIC_ACQUIRE) & 0xff;
    if (type == kInvalidPacket) break;  // taken, but not written yet
    uint64_t began = ticks();
    Step step = run(queue, place, type);
    if (step == Step::Waits) break;
    progress.any = true;
    if (step == Step::Failed) {
      progress.failed = true;
      break;
    }
    uint64_t signal;
    memcpy(&signal, place + 56, sizeof signal);
    __atomic_store_n(header, uint16_t{kInvalidPacket}, __ATOMIC_RELEASE);
    __atomic_store_n(queue.read_pointer, ++queue.read, __ATOMIC_RELEASE);
    signal_complete(signal, began);
  }
  return progress;
}

}  // namespace sx::kfd
