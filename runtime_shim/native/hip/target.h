// The processor that is emulated: SASSXLATE_TARGET, or the first of those whose code runs here.
#pragma once
#include <cstdint>
#include <string_view>

namespace sx {

struct Target {
  std::string_view name;
  uint32_t machine;         // EF_AMDGPU_MACH, in e_flags of its code objects
  unsigned vgprs_per_simd;  // wave32
  unsigned vgpr_step;       // in which a wave is given VGPRs
};

// As in lowering/target.py, which tests compare.
inline constexpr Target kTargets[] = {
    {"gfx1100", 0x41, 1536, 24},
    {"gfx1101", 0x46, 1536, 24},
    {"gfx1102", 0x47, 1024, 16},
    {"gfx1103", 0x44, 1024, 16},
    {"gfx1150", 0x43, 1024, 16},
    {"gfx1151", 0x4a, 1536, 24},
    {"gfx1152", 0x55, 1024, 16},
    {"gfx1153", 0x58, 1024, 16},
    {"gfx11-generic", 0x54, 1024, 16},
};

// Of another name no code object is, and all are refused.
const Target &target();

}  // namespace sx
