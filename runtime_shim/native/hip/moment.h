// A moment's wait before a thread sleeps: to wake one takes as long as many launches do, most on virtual machines, where
// a processor without work has to be started by the host (20 us on each side, measured).
#pragma once
#include <algorithm>
#include <chrono>
#include <immintrin.h>

namespace sx {

// One thread's.  Where waits were in vain they become rare.
class Moment {
 public:
  // Whether `come` was true within the moment.
  template <class Come>
  bool pass(Come come) {
    if (skip_) {
      --skip_;
      return come();
    }
    if (within(std::chrono::microseconds(20), come)) {
      vain_ = 0;
      return true;
    }
    vain_ = std::min(vain_ + 1, 6u);
    skip_ = (1u << vain_) - 1;
    return false;
  }

  template <class Come>
  static bool within(std::chrono::nanoseconds time, Come come) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point end = Clock::now() + time;
    do {
      for (int i = 0; i < 4; ++i) {
        if (come()) return true;
        _mm_pause();
      }
    } while (Clock::now() < end);
    return false;
  }

 private:
  unsigned vain_ = 0, skip_ = 0;
};

}  // namespace sx
