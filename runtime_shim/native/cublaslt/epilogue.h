// What happens to a column of the product before it is stored: biases, ReLU, GELU and their gradients.
#pragma once
#include <cmath>
#include <vector>

#include "../cublas/numbers.h"
#include "plan.h"

namespace sx::lt {

template <class R>
class EpiloguePass {
 public:
  EpiloguePass(const Plan &plan, int64_t index) : p_(plan), e_(plan.o.epilogue), m_(static_cast<size_t>(plan.m)) {
    const auto bias_size = static_cast<int64_t>(cublas::size_of(p_.bias_type));
    bias_at_ = const_cast<char *>(static_cast<const char *>(p_.o.bias)) + index * p_.o.bias_step * bias_size;
    aux_ = static_cast<char *>(p_.o.aux);
    if (aux_) aux_ += bits() ? index * p_.o.aux_step / 8 : index * p_.o.aux_step * static_cast<int64_t>(cublas::size_of(p_.aux_type));
    if (e_ & kBias) {
      bias_.resize(m_);
      cublas::widen(bias_at_, p_.bias_type, p_.m, 1, bias_.data());
    }
    if (e_ & kBiasGradient) sums_.resize(m_);
    if ((e_ & kAux) && !bits()) kept_.resize(m_);
  }

  void column(int64_t j, R *values) {
    if (e_ & kBias)
      for (size_t i = 0; i < m_; ++i) values[i] += bias_[i];
    if (e_ & kRelu) relu(j, values);
    if (e_ & kDRelu)
      for (size_t i = 0; i < m_; ++i)
        if (!(*mask(j, i) >> (i & 7) & 1)) values[i] = 0;
    if (e_ & kGelu) {
      if (e_ & kAux) cublas::narrow(values, p_.aux_type, p_.m, 1, line(j));
      for (size_t i = 0; i < m_; ++i) values[i] = gelu(values[i]);
    }
    if (e_ & kDGelu) {
      cublas::widen(line(j), p_.aux_type, p_.m, 1, kept_.data());
      for (size_t i = 0; i < m_; ++i) values[i] *= gelu_slope(kept_[i]);
    }
    if (e_ & kBiasGradient)
      for (size_t i = 0; i < m_; ++i) sums_[i] += static_cast<double>(values[i]);
  }

  void finish() {
    if (!(e_ & kBiasGradient)) return;
    std::vector<R> sums(sums_.begin(), sums_.end());
    store_bias(sums.data(), p_.m);
  }
  void store_bias(const R *sums, int64_t count) { cublas::narrow(sums, p_.bias_type, count, 1, bias_at_); }

 private:
  bool bits() const { return e_ & (kRelu | kDRelu); }
  // One bit for each element, columns aux_ld bits apart.
  uint8_t *mask(int64_t j, size_t i) const { return reinterpret_cast<uint8_t *>(aux_) + j * p_.o.aux_ld / 8 + static_cast<int64_t>(i / 8); }
  char *line(int64_t j) const { return aux_ + j * p_.o.aux_ld * static_cast<int64_t>(cublas::size_of(p_.aux_type)); }

  void relu(int64_t j, R *values) {
    for (size_t i = 0; i < m_; ++i) {
      const bool kept = values[i] > 0;
      if (e_ & kAux) {
        uint8_t &byte = *mask(j, i);
        byte = static_cast<uint8_t>(kept ? byte | 1 << (i & 7) : byte & ~(1 << (i & 7)));
      }
      if (values[i] < 0) values[i] = 0;  // a NaN stays
    }
  }

  // The approximation by tanh, as NVIDIA's.
  static constexpr double kRoot = 0.7978845608028654, kCube = 0.044715;  // sqrt(2 / pi)
  static R gelu(R x) {
    const double v = static_cast<double>(x);
    return static_cast<R>(0.5 * v * (1 + std::tanh(kRoot * (v + kCube * v * v * v))));
  }
  static R gelu_slope(R x) {
    const double v = static_cast<double>(x), t = std::tanh(kRoot * (v + kCube * v * v * v));
    return static_cast<R>(0.5 * (1 + t) + 0.5 * v * (1 - t * t) * kRoot * (1 + 3 * kCube * v * v));
  }

  const Plan &p_;
  unsigned e_;
  size_t m_;
  char *bias_at_, *aux_;
  std::vector<R> bias_, kept_;
  std::vector<double> sums_;
};

}  // namespace sx::lt
