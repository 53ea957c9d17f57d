// What the advertised device holds, where more than one file needs the number.  docs/runtime.md lists the profile.
#pragma once

namespace sx {

constexpr int kDriverVersion = 13000;
constexpr int kClock = 1980000, kMemoryClock = 2619000;  // kHz: an H200's
constexpr int kBusWidth = 384;                           // bits: a Radeon RX 7900 has so many
constexpr int kSecondLevelCache = 6 << 20;               // bytes, of the same
constexpr int kMostPersisting = kSecondLevelCache / 4 * 3;  // bytes of it that a context may set aside

}  // namespace sx
