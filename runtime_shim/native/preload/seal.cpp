// A signature that was found in a library, without an archive of its release, may lack public functions.  None of that
// runtime's code has to run, so all of it is overwritten: from wherever in it a call arrives, one-byte instructions lead to
// a jump, which ends before the next redirected function.  Functions are aligned to 16 bytes, so none begins in that jump.
#include "seal.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "detour.h"
#include "report.h"
#include "sanitizers.h"

namespace sx::preload {
namespace {

constexpr unsigned char kNop = 0x90, kTrap = 0xcc, kReturn = 0xc3, kCall = 0xe8, kNearJump = 0xe9;
constexpr uint64_t kNops = kNop * 0x0101010101010101u;

struct Kept {
  unsigned char *at;
  size_t size;
};

// Sanitizers assume that code is never written.
SX_UNSANITIZED void put(unsigned char *at, unsigned char byte) { *const_cast<volatile unsigned char *>(at) = byte; }

SX_UNSANITIZED void write_gap(unsigned char *from, unsigned char *to, const unsigned char *stub) {
  if (to - from < static_cast<std::ptrdiff_t>(kJump)) {
    for (; from < to; ++from) put(from, kTrap);
    return;
  }
  unsigned char *jump = to - kJump;
  for (; from < jump && reinterpret_cast<uintptr_t>(from) % 8; ++from) put(from, kNop);
  for (; from + 8 <= jump; from += 8) *reinterpret_cast<volatile uint64_t *>(from) = kNops;
  for (; from < jump; ++from) put(from, kNop);
  const auto distance = static_cast<uint32_t>(stub - to);
  put(jump, kNearJump);
  for (unsigned i = 0; i < 4; ++i) put(jump + 1 + i, static_cast<unsigned char>(distance >> (8 * i)));
}

std::string hexadecimal(uintptr_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%" PRIxPTR, value);
  return text;
}

}  // namespace

void seal(const Match &match, const unsigned char *stub) {
  std::vector<Kept> kept;
  kept.reserve(match.entries.size() + match.sealed.quiet.size());
  for (const Entry &entry : match.entries) kept.push_back({entry.address, kJump});
  for (unsigned char *at : match.sealed.quiet) {
    put(at, kReturn);
    kept.push_back({at, 1});
  }
  std::sort(kept.begin(), kept.end(), [](const Kept &a, const Kept &b) { return a.at < b.at; });
  unsigned char *from = match.sealed.start;
  for (const Kept &k : kept) {
    if (k.at > from) write_gap(from, k.at, stub);
    from = std::max(from, k.at + k.size);
  }
  unsigned char *end = match.sealed.start + match.sealed.length;
  if (end > from) write_gap(from, end, stub);
}

void refuse_unknown(const std::string &object, const std::string &release, const Sealed &sealed,
                    const unsigned char *back, uintptr_t bias) {
  std::string text = "a function of its statically linked CUDA runtime " + release + " that is not known";
  if (back) {
    // Of a near call; what came by a jump or a pointer does not say which function it is.
    const auto distance = static_cast<int32_t>(static_cast<uint32_t>(back[-4]) | static_cast<uint32_t>(back[-3]) << 8 |
                                               static_cast<uint32_t>(back[-2]) << 16 | static_cast<uint32_t>(back[-1]) << 24);
    const uintptr_t called = reinterpret_cast<uintptr_t>(back) + static_cast<uintptr_t>(static_cast<intptr_t>(distance));
    const auto start = reinterpret_cast<uintptr_t>(sealed.start);
    if (back[-5] == kCall && start <= called && called < start + sealed.length)
      text += ", at " + hexadecimal(called - bias) + ",";
    text += " is called before " + hexadecimal(reinterpret_cast<uintptr_t>(back) - bias);
  }
  std::string names;
  for (const std::string_view name : sealed.absent) names += (names.empty() ? "" : ", ") + std::string(name);
  refuse("SX0766", object, text + (names.empty() ? "" : "; of a neighbouring release's functions it lacks " + names));
}

}  // namespace sx::preload
