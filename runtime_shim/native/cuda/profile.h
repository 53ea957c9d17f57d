// What the advertised device holds, where more than one file needs the number.  docs/runtime.md lists the profile.
#pragma once

namespace sx {

constexpr int kSharedPerMultiprocessor = 65536;  // bytes: the LDS of a workgroup processor's half
constexpr int kReservedShared = 1024;            // of each block, since sm_80
constexpr int kSharedPerBlock = kSharedPerMultiprocessor - kReservedShared;  // opt-in limit, static and dynamic together

}  // namespace sx
