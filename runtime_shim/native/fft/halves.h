// 16-bit floating-point numbers, rounded to the nearest, ties to even.
#pragma once
#include <cstdint>
#include <cstring>

namespace sx::fft {

inline float bits_to_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, 4);
  return value;
}
inline uint32_t float_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  return bits;
}

struct Half {
  uint16_t bits;

  float value() const {
    const uint32_t sign = uint32_t{bits} >> 15 << 31, exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 31) return bits_to_float(sign | 0x7f800000 | fraction << 13);
    if (exponent) return bits_to_float(sign | (exponent + 112) << 23 | fraction << 13);
    const float small = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -small : small;
  }
  static Half of(float value) {
    const uint32_t all = float_to_bits(value), sign = all >> 16 & 0x8000, bits = all & 0x7fffffff;
    if (bits > 0x7f800000) return {static_cast<uint16_t>(sign | 0x7e00 | (bits >> 13 & 0x1ff))};
    if (bits >= 0x477ff000) return {static_cast<uint16_t>(sign | 0x7c00)};  // 65520 and above
    if (bits < 0x38800000) {
      // Below the smallest normal number: the sum's rounding is that to a multiple of 2^-24.
      const float rounded = bits_to_float(bits) + 0.5f;
      return {static_cast<uint16_t>(sign | (float_to_bits(rounded) - 0x3f000000))};
    }
    const uint32_t even = bits + 0xfff + (bits >> 13 & 1);
    return {static_cast<uint16_t>(sign | ((even >> 13) - (112u << 10)))};
  }
};

struct BFloat16 {
  uint16_t bits;

  float value() const { return bits_to_float(uint32_t{bits} << 16); }
  static BFloat16 of(float value) {
    const uint32_t all = float_to_bits(value);
    if ((all & 0x7fffffff) > 0x7f800000) return {static_cast<uint16_t>(all >> 16 | 0x40)};
    return {static_cast<uint16_t>((all + 0x7fff + (all >> 16 & 1)) >> 16)};
  }
};

}  // namespace sx::fft
