#include "strict.h"

#include "state.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace sx {
namespace {

uint64_t finish(uint64_t x) {  // splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t kOrderRun = 64;

}  // namespace

uint64_t strict_mix(uint64_t a, uint64_t b) {
  return finish(finish(config().strict_seed * 0x9e3779b97f4a7c15u + a + 0x632be59bd9b4e019u) + b);
}

uint64_t strict_wave_seed() { return strict_mix(0x5eed) | 1; }

void strict_fill(void *at, size_t size, uint64_t salt) {
  uint8_t *bytes = static_cast<uint8_t *>(at);
  uint64_t state = strict_mix(salt, size);
  size_t done = 0;
  for (; done + 8 <= size; done += 8) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t word = state ^ state >> 29;
    memcpy(bytes + done, &word, 8);
  }
  uint64_t word = finish(state);
  memcpy(bytes + done, &word, size - done);
}

uint64_t strict_order(uint64_t index, uint64_t total) {
  uint64_t first = index / kOrderRun * kOrderRun, n = std::min(kOrderRun, total - first);
  if (n < 2) return index;
  // A step without a common factor visits every place of the run once.
  uint64_t hash = strict_mix(first, total), step = 1 + hash % (n - 1);
  auto common = [](uint64_t a, uint64_t b) {
    while (b) {
      uint64_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  };
  while (common(step, n) != 1) ++step;
  return first + ((index - first) * step + hash / n) % n;
}

std::string strict_text(uint64_t code) {
  unsigned check = static_cast<unsigned>(code >> 56), number = static_cast<unsigned>(code >> 32) & 0xffff;
  unsigned source = static_cast<unsigned>(code);
  char reg[16], text[160];
  if (!(code >> 48 & 1) && number == 106) snprintf(reg, sizeof reg, "vcc_lo");
  else if (!(code >> 48 & 1) && number == 126) snprintf(reg, sizeof reg, "exec_lo");
  else if (!(code >> 48 & 1) && number == 253) snprintf(reg, sizeof reg, "scc");
  else snprintf(reg, sizeof reg, "%c%u", code >> 48 & 1 ? 'v' : 's', number);
  switch (check) {
    case 1:
      snprintf(text, sizeof text, "%s is used before s_waitcnt vmcnt covers the load at /*%04x*/", reg, source);
      break;
    case 2:
      snprintf(text, sizeof text, "%s is used before s_waitcnt lgkmcnt covers the LDS access at /*%04x*/", reg, source);
      break;
    case 3:
      snprintf(text, sizeof text, "%s is used before s_waitcnt lgkmcnt(0) covers the scalar load at /*%04x*/", reg,
               source);
      break;
    case 4:
      snprintf(text, sizeof text, "%s is read too soon after the transcendental at /*%04x*/", reg, source);
      break;
    case 5:
      snprintf(text, sizeof text, "v_permlane follows v_cmpx at /*%04x*/ without a VALU between", source);
      break;
    case 6:
      snprintf(text, sizeof text, "A or B of this matrix multiply is the result of the previous one");
      break;
    case 7:
      snprintf(text, sizeof text, "the destination %s of this multiply-add overlaps a source", reg);
      break;
    case 8:
      snprintf(text, sizeof text, "s_barrier before the memory access at /*%04x*/ is done", source);
      break;
    case 9:
      snprintf(text, sizeof text, "a cache is invalidated before the memory access at /*%04x*/ is done", source);
      break;
    case 10:
      snprintf(text, sizeof text, "registers are deallocated before the scratch store at /*%04x*/ is done", source);
      break;
    case 11:
      snprintf(text, sizeof text, "an undefined value in %s decides an address, a branch or EXEC", reg);
      break;
    case 12:
      snprintf(text, sizeof text, "%s is assumed equal in all active lanes, but is not", reg);
      break;
    case 13:
      snprintf(text, sizeof text, "a fence is passed before the memory access at /*%04x*/ is done", source);
      break;
    default:
      snprintf(text, sizeof text, "check 0x%llx", static_cast<unsigned long long>(code));
  }
  return text;
}

}  // namespace sx
