// The copy engines: packets of SDMA as gfx11 has them.
#include "card.h"

#include "log.h"

#include <algorithm>
#include <cstring>

namespace sx::kfd {
namespace {

enum class Step { Done, Waits, Failed };

// A packet's words; the ring is never wrapped within one.
struct Words {
  const uint32_t *at;
  uint32_t operator[](unsigned i) const { return at[i]; }
  uint64_t pair(unsigned i) const { return uint64_t{at[i + 1]} << 32 | at[i]; }
  uint32_t bits(unsigned i, unsigned low, unsigned width) const { return at[i] >> low & ((1u << width) - 1); }
};

Step fault(uint64_t address, bool write) {
  log_line("SX0661: a copy engine: illegal address 0x%llx", static_cast<unsigned long long>(address));
  event_memory_fault(address, write);
  return Step::Failed;
}

Step copy(uint64_t from, uint64_t to, uint64_t bytes) {
  while (bytes) {
    uint64_t part = bytes;
    const void *source = memory_at(from, part, false);
    if (!source) return fault(from, false);
    void *target = memory_at(to, part, true);
    if (!target) return fault(to, true);
    memmove(target, source, part);
    from += part;
    to += part;
    bytes -= part;
  }
  return Step::Done;
}

// SDMA_PKT_COPY_LINEAR_RECT: offsets, pitches and the size in elements of 1 << element bytes.
Step copy_rectangle(const Words &w) {
  unsigned element = w.bits(0, 29, 3);
  struct Side {
    uint64_t base, x, y, z, pitch, slice;
  };
  auto side = [&](unsigned i) {
    return Side{w.pair(i), w.bits(i + 2, 0, 14), w.bits(i + 2, 16, 14), w.bits(i + 3, 0, 11), w.bits(i + 3, 13, 19) + 1ull,
                w.bits(i + 4, 0, 28) + 1ull};
  };
  Side from = side(1), to = side(6);
  uint64_t width = w.bits(11, 0, 14) + 1ull, height = w.bits(11, 16, 14) + 1ull, depth = w.bits(12, 0, 11) + 1ull;
  for (uint64_t z = 0; z < depth; ++z) {
    for (uint64_t y = 0; y < height; ++y) {
      auto place = [&](const Side &s) {
        return s.base + (((s.z + z) * s.slice + (s.y + y) * s.pitch + s.x) << element);
      };
      if (copy(place(from), place(to), width << element) == Step::Failed) return Step::Failed;
    }
  }
  return Step::Done;
}

Step fill(const Words &w) {
  uint32_t value = w[3];
  unsigned unit = std::min(4u, 1u << w.bits(0, 30, 2));  // the size of what is repeated
  uint64_t to = w.pair(1), bytes = (w.bits(4, 0, 22) / unit + 1ull) * unit;
  while (bytes) {
    uint64_t part = bytes;
    auto *target = static_cast<uint8_t *>(memory_at(to, part, true));
    if (!target) return fault(to, true);
    for (uint64_t i = 0; i < part; i += unit) memcpy(target + i, &value, std::min<uint64_t>(unit, part - i));
    to += part;
    bytes -= part;
  }
  return Step::Done;
}

template <class T>
T *word_at(uint64_t address, bool write) {
  uint64_t size = sizeof(T);
  void *host = memory_at(address, size, write);
  return host && size == sizeof(T) ? static_cast<T *>(host) : nullptr;
}

Step fence(const Words &w) {
  auto *to = word_at<uint32_t>(w.pair(1), true);
  if (!to) return fault(w.pair(1), true);
  __atomic_store_n(to, w[3], __ATOMIC_RELEASE);
  return Step::Done;
}

Step poll(const Words &w) {
  if (!w.bits(0, 31, 1)) return Step::Done;  // of a register: the flush of a cache
  auto *from = word_at<uint32_t>(w.pair(1), false);
  if (!from) return fault(w.pair(1), false);
  uint32_t value = __atomic_load_n(from, __ATOMIC_ACQUIRE) & w[4], wanted = w[3];
  const bool answers[] = {true, value < wanted, value <= wanted, value == wanted, value != wanted, value >= wanted, value > wanted};
  unsigned function = w.bits(0, 28, 3);
  return function > 6 || answers[function] ? Step::Done : Step::Waits;
}

Step add(const Words &w) {
  auto *to = word_at<uint64_t>(w.pair(1), true);
  if (!to) return fault(w.pair(1), true);
  __atomic_fetch_add(to, w.pair(3), __ATOMIC_ACQ_REL);
  return Step::Done;
}

Step timestamp(const Words &w) {
  auto *to = word_at<uint64_t>(w.pair(1), true);
  if (!to) return fault(w.pair(1), true);
  __atomic_store_n(to, ticks(), __ATOMIC_RELEASE);
  return Step::Done;
}

Step run(const Words &w, unsigned &words) {
  unsigned sub = w.bits(0, 8, 8);
  switch (w.bits(0, 0, 8)) {
    case kSdmaNop: words = 1 + w.bits(0, 16, 14); return Step::Done;
    case kSdmaCopy:
      words = sub == 0 ? 7 : 13;
      if (sub == 0) return copy(w.pair(3), w.pair(5), w.bits(1, 0, 30) + 1ull);
      if (sub == 4) return copy_rectangle(w);
      break;
    case kSdmaFill: words = 5; return fill(w);
    case kSdmaFence: words = 4; return fence(w);
    case kSdmaPoll: words = 6; return poll(w);
    case kSdmaTrap:
      words = 2;
      event_set(w.bits(1, 0, 28), true);
      return Step::Done;
    case kSdmaAtomic:
      words = 8;
      if (w.bits(0, 25, 7) == kSdmaAdd64) return add(w);
      break;
    case kSdmaTimestamp:
      words = 3;
      if (sub == 2) return timestamp(w);
      break;
    case kSdmaCaches: words = 5; return Step::Done;
    default: break;
  }
  log_line("SX0871: the emulated card's copy engines do not know the packet 0x%08x", w[0]);
  event_hardware_exception();
  return Step::Failed;
}

}  // namespace

Progress run_sdma(Queue &queue) {
  Progress progress;
  while (queue.read < __atomic_load_n(queue.write_pointer, __ATOMIC_ACQUIRE)) {
    Words words = {reinterpret_cast<const uint32_t *>(queue.ring + (queue.read & (queue.size - 1)))};
    unsigned count = 1;
    Step step = run(words, count);
    if (step == Step::Waits) break;
    progress.any = true;
    if (step == Step::Failed) {
      progress.failed = true;
      break;
    }
    queue.read += uint64_t{count} * 4;
    __atomic_store_n(queue.read_pointer, queue.read, __ATOMIC_RELEASE);
  }
  return progress;
}

}  // namespace sx::kfd
