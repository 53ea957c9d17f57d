// The types of products' operands: their sizes, and their values as numbers that BLAS has.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cublas_abi.h"
#include "halves.h"

namespace sx::cublas {

using fft::BFloat16;
using fft::Half;

// Eight bits with kMantissa bits of fraction.  Numbers beyond the greatest become the greatest, as NVIDIA's satfinite does.
template <int kMantissa, int kBias, unsigned kGreatest, unsigned kNan, bool kHasInfinity>
struct Float8 {
  uint8_t bits;

  float value() const {
    const unsigned magnitude = bits & 0x7f, exponent = magnitude >> kMantissa, fraction = magnitude & ((1u << kMantissa) - 1);
    float v = 0;
    if (magnitude > kGreatest) v = kHasInfinity && magnitude == kGreatest + 1 ? INFINITY : NAN;
    else if (exponent) v = std::ldexp(static_cast<float>(fraction + (1u << kMantissa)), static_cast<int>(exponent) - kBias - kMantissa);
    else v = std::ldexp(static_cast<float>(fraction), 1 - kBias - kMantissa);
    return bits & 0x80 ? -v : v;
  }
  static Float8 of(float v) {
    const unsigned sign = std::signbit(v) ? 0x80 : 0;
    if (std::isnan(v)) return {static_cast<uint8_t>(kNan)};
    const float size = std::abs(v);
    if (size == 0) return {static_cast<uint8_t>(sign)};
    if (size >= Float8{kGreatest}.value()) return {static_cast<uint8_t>(sign | kGreatest)};
    const int exponent = std::max(std::ilogb(size), 1 - kBias);
    // Below 2^(kMantissa + 1); at that number it carries into the exponent by itself.
    const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(size, kMantissa - exponent)));
    const unsigned all = (static_cast<unsigned>(exponent + kBias - 1) << kMantissa) + units;
    return {static_cast<uint8_t>(sign | std::min(all, kGreatest))};
  }
};
using E4M3 = Float8<3, 7, 0x7e, 0x7f, false>;
using E5M2 = Float8<2, 15, 0x7b, 0x7f, true>;

// Bytes of an element; 0 for a type that is not known here.
inline size_t size_of(int type) {
  switch (type) {
    case kR8I:
    case kR8E4M3:
    case kR8E5M2: return 1;
    case kR16F:
    case kR16BF: return 2;
    case kR32F:
    case kR32I: return 4;
    case kR64F:
    case kC32F: return 8;
    case kC64F: return 16;
    default: return 0;
  }
}

// All values of a half: faster than to take one apart.
const float *half_values();

// `count` elements, `step` apart, as numbers of type To.
template <class To, class From>
void widen_as(const char *from, int64_t count, int64_t step, To *to) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    memcpy(&value, from + i * step * static_cast<int64_t>(sizeof(From)), sizeof value);
    if constexpr (std::is_arithmetic_v<From>) to[i] = static_cast<To>(value);
    else if constexpr (std::is_same_v<From, Half>) to[i] = static_cast<To>(half_values()[value.bits]);
    else to[i] = static_cast<To>(value.value());
  }
}
template <class To>
void widen(const char *from, int type, int64_t count, int64_t step, To *to) {
  switch (type) {
    case kR8I: return widen_as<To, int8_t>(from, count, step, to);
    case kR8E4M3: return widen_as<To, E4M3>(from, count, step, to);
    case kR8E5M2: return widen_as<To, E5M2>(from, count, step, to);
    case kR16F: return widen_as<To, Half>(from, count, step, to);
    case kR16BF: return widen_as<To, BFloat16>(from, count, step, to);
    case kR32F: return widen_as<To, float>(from, count, step, to);
    case kR32I: return widen_as<To, int32_t>(from, count, step, to);
    default: return widen_as<To, double>(from, count, step, to);
  }
}

// To the nearest number, ties to even; integers stop at their ends.
template <class From>
void store(From value, int type, char *to) {
  auto put = [to](auto v) { memcpy(to, &v, sizeof v); };
  switch (type) {
    case kR8I: return put(static_cast<int8_t>(std::isnan(value) ? 0 : std::clamp<From>(std::nearbyint(value), -128, 127)));
    case kR8E4M3: return put(E4M3::of(static_cast<float>(value)));
    case kR8E5M2: return put(E5M2::of(static_cast<float>(value)));
    case kR16F: return put(Half::of(static_cast<float>(value)));
    case kR16BF: return put(BFloat16::of(static_cast<float>(value)));
    case kR32F: return put(static_cast<float>(value));
    default: return put(static_cast<double>(value));
  }
}
template <class From>
void narrow(const From *from, int type, int64_t count, int64_t step, char *to) {
  const auto size = static_cast<int64_t>(size_of(type));
  for (int64_t i = 0; i < count; ++i) store(from[i], type, to + i * step * size);
}

}  // namespace sx::cublas
