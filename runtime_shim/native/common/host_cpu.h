// What this processor runs, read from CPUID and XGETBV.  Not __builtin_cpu_supports: it reads a variable of the
// compiler's run time, which with zig's is never filled in.
#pragma once

#include <cpuid.h>
#include <cstdint>

namespace sx {

// The words in which the features are: Intel's SDM, volume 2, CPUID, and volume 1, 13.3 (XCR0).
struct CpuWords {
  uint32_t leaf1_ecx;
  uint32_t leaf7_ebx;
  uint32_t extended1_ecx;  // leaf 0x80000001
  uint64_t xcr0;           // 0 where the system does not use XSAVE
};

inline CpuWords cpu_words() {
  CpuWords words = {0, 0, 0, 0};
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d)) words.leaf1_ecx = c;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words.leaf7_ebx = b;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d)) words.extended1_ecx = c;
  if (words.leaf1_ecx & bit_OSXSAVE) {
    // The instruction itself: the intrinsic needs -mxsave.
    asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    words.xcr0 = static_cast<uint64_t>(d) << 32 | a;
  }
  return words;
}

// Code for LLVM's x86-64-v3 (lowering/emulate/compiler.py): the system has to save the upper halves of ymm, too.
constexpr bool runs_avx2(const CpuWords &words) {
  constexpr uint32_t leaf1 = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C | bit_POPCNT | bit_MOVBE;
  constexpr uint32_t leaf7 = bit_AVX2 | bit_BMI | bit_BMI2;
  constexpr uint32_t lzcnt = 1U << 5;
  constexpr uint64_t saved = 0x6;  // xmm, ymm
  return (words.leaf1_ecx & leaf1) == leaf1 && (words.leaf7_ebx & leaf7) == leaf7 && (words.extended1_ecx & lzcnt) == lzcnt &&
         (words.xcr0 & saved) == saved;
}

// Code for LLVM's x86-64-v4: the system saves the mask registers and all of zmm, too.
constexpr bool runs_avx512(const CpuWords &words) {
  constexpr uint32_t leaf7 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  constexpr uint64_t saved = 0xe6;  // xmm, ymm, k, the upper halves of zmm0-15, zmm16-31
  return runs_avx2(words) && (words.leaf7_ebx & leaf7) == leaf7 && (words.xcr0 & saved) == saved;
}

// Code of an image or a pack whose header says `isa` (abi.h).
inline bool host_runs(uint32_t isa) {
  const CpuWords words = cpu_words();
  return isa == 0 ? runs_avx2(words) : isa == 1 && runs_avx512(words);
}

}  // namespace sx
