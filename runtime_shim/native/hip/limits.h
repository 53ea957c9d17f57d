// Limits of the device, and how many workgroups of a kernel fit on a part of it.
#pragma once
#include "code_object.h"

#include <cstdint>

namespace sx {

constexpr unsigned kMaxThreads = 1024;         // of a workgroup
constexpr unsigned kMaxLds = 64u << 10;        // of a workgroup, bytes: an RDNA3's
constexpr unsigned kMostLds = 228u << 10;      // the emulated device's own, for CUDA programs: an H200's
constexpr unsigned kLdsStep = 128;             // NVIDIA's step; an RDNA3's is 512
constexpr unsigned kSimds = 4;                 // of a multiprocessor, which is a WGP here as in HIP
constexpr unsigned kWavesPerSimd = 16;
constexpr unsigned kLdsPerMultiprocessor = 128u << 10;
constexpr unsigned kMaxGroups = 32;            // resident on a multiprocessor
constexpr unsigned kNoRegister = 111;          // an SGPR slot that nothing reads

// What a launch can have: kMaxLds, or kMostLds once sassxlate_emulated_lds was asked.
unsigned max_lds();

// Workgroups of `threads` threads and `shared` bytes of dynamic LDS that one multiprocessor holds at once;
// 0 if not even one fits.
unsigned max_active_groups(const KernelInfo &info, unsigned threads, uint64_t shared);

// hipLimitStackSize: scratch of a lane where the kernel's stack is dynamic, bytes.
uint64_t stack_limit();

}  // namespace sx
