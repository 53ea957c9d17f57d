// A wave that leaves compiled code, in a frame of the baseline tier.
#include "stencils.h"

#include <algorithm>
#include <cstring>

namespace sx {
namespace {

// lowering/emulate/stencils/frame.py has these numbers, and image/abi.py those of SxLeft.
constexpr size_t kScc = 0x300, kLaneMask = 0x340, kBuffers = 0x400, kVgprs = 0xc00, kVgprBytes = 128;
constexpr size_t kConstants = kVgprs + 256 * kVgprBytes, kTableLine = 64;
constexpr unsigned kVccHi = 107, kExec = 126, kScalars = 128, kNumbers = 256 + kScalars;
static_assert(sizeof(SxWave) == kScc && offsetof(SxLeft, stored) == 0x200 && offsetof(SxLeft, vgpr) == 0x240);

void set(uint8_t *frame, unsigned scalar, uint32_t value) { memcpy(frame + 4 * size_t{scalar}, &value, 4); }

// What a wave begins with, as the glue's entry has it, but for the buffers, which need nothing.
void begin(uint8_t *frame, const SxWave &wave, const uint8_t *table) {
  uint64_t sizes[3];  // of the frame in bytes, of its VGPRs and of its constants in lines
  memcpy(sizes, table, sizeof sizes);
  memcpy(frame, &wave, sizeof wave);
  memset(frame + kScc, 0, kBuffers - kScc);
  for (unsigned i = kVccHi + 1; i < kScalars; ++i) set(frame, i, 0);
  set(frame, kExec, wave.exec);
  memset(frame + kVgprs, 0, sizes[1] * kTableLine);
  memcpy(frame + kVgprs, wave.v0, sizeof wave.v0);
  memcpy(frame + kConstants, table + kTableLine, sizes[2] * kTableLine);
}

void take(uint8_t *frame, const SxLeft &left) {
  const uint8_t *vgprs = reinterpret_cast<const uint8_t *>(&left) + offsetof(SxLeft, vgpr);
  for (unsigned i = 0; i < kNumbers; ++i) {
    if (!(left.stored[i / 64] >> i % 64 & 1)) continue;
    if (i == SX_LEFT_SCC) memcpy(frame + kScc, &left.scalars[i], 4);
    else if (i < kScalars) set(frame, i, left.scalars[i]);
    else memcpy(frame + kVgprs + kVgprBytes * (i - kScalars), vgprs + kVgprBytes * (i - kScalars), kVgprBytes);
  }
  uint32_t exec, lanes[32];
  memcpy(&exec, frame + 4 * size_t{kExec}, 4);
  for (unsigned i = 0; i < 32; ++i) lanes[i] = exec >> i & 1 ? ~0u : 0u;
  memcpy(frame + kLaneMask, lanes, sizeof lanes);
}

}  // namespace

bool resume_kernel(const ResumableKernel &kernel, SxWave *wave, uint32_t pc, const SxLeft &left) {
  const int32_t place = static_cast<int32_t>(pc);
  auto at = std::lower_bound(kernel.blocks.begin(), kernel.blocks.end(), place,
                             [](const BlockPlace &block, int32_t wanted) { return block.pc < wanted; });
  if (at == kernel.blocks.end() || at->pc != place) return false;
  uint8_t *frame = static_cast<uint8_t *>(__builtin_alloca_with_align(kernel.frame, size_t{8} * 64));
  begin(frame, *wave, kernel.code + kernel.table);
  take(frame, left);
  using Resume = void (*)(uint8_t *frame, const uint8_t *to);
  reinterpret_cast<Resume>(reinterpret_cast<uintptr_t>(kernel.code + kernel.resume))(frame, kernel.code + at->code);
  memcpy(&wave->executed, frame + offsetof(SxWave, executed), sizeof wave->executed);
  return true;
}

}  // namespace sx
