// A handle, the scalars and memory of a call, and its way into the stream.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "cublas_abi.h"
#include "device.h"

namespace sx::cublas {

// What every handle begins with, cuBLAS's and cuBLASLt's: each library takes the other's.
constexpr uint64_t kLive = 0x5358424c41533031;
enum Owner : uint32_t { kOwnBlas = 1, kOwnLt = 2 };
struct Mark {
  explicit Mark(Owner made_by = kOwnLt) : owner(made_by) {}
  uint64_t live = kLive;
  Owner owner;
  // On a card, hipBLAS's handle and, where a call needed it, hipBLASLt's with what destroys it.  One call at a time has them.
  void *engine = nullptr, *light = nullptr;
  void (*destroy_light)(void *) = nullptr;
  std::mutex calls;
};

}  // namespace sx::cublas

struct cublasContext : sx::cublas::Mark {
  cublasContext() : Mark(sx::cublas::kOwnBlas) {}
  CUstream stream = nullptr;
  int pointer_mode = kPointerHost;
  int math_mode = 0, atomics_mode = 0, sm_count = 0;
  // Floating-point emulation, which changes nothing here: kept for the functions that ask.
  int emulation_strategy = 0, special_values = 0xffff, mantissa_control = 0, mantissa_bits = 0, mantissa_offset = 0;
  int environment_mode = 0;
  int32_t *mantissa_count = nullptr;
};
using cublasHandle = cublasContext *;

namespace sx::cublas {

// What carries a handle's calls out, made and destroyed with it.
cublasStatus attach(Mark &handle);
void detach(Mark &handle);

// Handles' memory is used again, and never given back: a destroyed one can be told from a live one.
template <class T>
class Handles {
 public:
  // With its engine.
  static cublasStatus make(T **handle) {
    *handle = take();
    if (!*handle) return CUBLAS_STATUS_ALLOC_FAILED;
    const cublasStatus status = attach(**handle);
    if (status != CUBLAS_STATUS_SUCCESS) {
      give(*handle);
      *handle = nullptr;
    }
    return status;
  }
  static void unmake(T *handle) {
    detach(*handle);
    give(handle);
  }

 private:
  static T *take() {
    std::lock_guard<std::mutex> guard(mutex());
    std::vector<void *> &free = list();
    void *at = free.empty() ? ::operator new(sizeof(T), std::nothrow) : free.back();
    if (!free.empty()) free.pop_back();
    return at ? new (at) T : nullptr;
  }
  static void give(T *handle) {
    std::lock_guard<std::mutex> guard(mutex());
    handle->live = 0;
    list().push_back(handle);
  }

  static std::mutex &mutex() {
    static auto *const made = new std::mutex;
    return *made;
  }
  static std::vector<void *> &list() {
    static auto *const made = new std::vector<void *>;
    return *made;
  }
};

// Whether the library can work here; if not, says so: no hipBLAS for an AMD card (SX0786), no BLAS of the host (SX0785).
cublasStatus ready();

// A fault that was found when work ran is told to every later call, as an illegal address is on a card.
void fault(const char *function, const void *address);
void fault_without_memory();
bool faulted();

const char *status_name(int status);

// A number that a call is given: the host's is read at once, the device's when the work runs.  Null is zero, where a
// function allows it.
template <class T>
class Scalar {
 public:
  Scalar(const cublasContext &handle, const T *given)
      : device_(handle.pointer_mode == kPointerDevice ? given : nullptr), value_(given && !device_ ? *given : T()) {}
  T get() const {
    if (!device_) return value_;
    if (replace::reachable_from_work(device_, sizeof(T))) return *device_;
    fault("cuBLAS", device_);
    return T();
  }

 private:
  const T *device_;
  T value_;
};

template <class F>
class Function : public replace::Work {
 public:
  explicit Function(F body) : body_(std::move(body)) {}
  void run() noexcept override {
    try {
      body_();
    } catch (const std::bad_alloc &) {
      fault_without_memory();
    } catch (const std::length_error &) {
      fault_without_memory();
    }
  }

 private:
  F body_;
};

template <class F>
cublasStatus submit(CUstream stream, F body) {
  std::unique_ptr<replace::Work> work = std::make_unique<Function<F>>(std::move(body));
  return replace::enqueue(stream, std::move(work)) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
template <class F>
cublasStatus submit(const cublasContext &handle, F body) {
  return submit(handle.stream, std::move(body));
}

// For calls that return a number: in host mode they wait for it.
template <class T, class F>
cublasStatus submit_result(const cublasContext &handle, T *result, F body) {
  if (!result) return CUBLAS_STATUS_INVALID_VALUE;
  bool captured = false;
  if (replace::capturing(handle.stream, captured)) return CUBLAS_STATUS_EXECUTION_FAILED;
  const bool host = handle.pointer_mode == kPointerHost;
  if (host && captured) return CUBLAS_STATUS_NOT_SUPPORTED;
  const cublasStatus status = submit(handle, [result, host, body = std::move(body)] {
    if (host || replace::reachable_from_work(result, sizeof(T), true)) *result = body();
    else fault("cuBLAS", result);
  });
  if (status != CUBLAS_STATUS_SUCCESS || !host) return status;
  return replace::synchronize(handle.stream) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}

// Whether memory can be used; says so once where it cannot (SX0782).
bool usable(const void *address, uint64_t elements, size_t size, const char *function, bool write = false);

// Sums and products of sizes; more than there can be is more than any memory holds.
inline uint64_t plus(uint64_t a, uint64_t b) {
  return __builtin_add_overflow(a, b, &a) ? std::numeric_limits<uint64_t>::max() : a;
}
inline uint64_t times(uint64_t a, uint64_t b) {
  return __builtin_mul_overflow(a, b, &a) ? std::numeric_limits<uint64_t>::max() : a;
}
// Of `count` things (one or more) `step` apart, none of which is negative.
inline uint64_t batch_extent(uint64_t one, int64_t count, int64_t step) {
  return one == 0 || count < 1 ? 0 : plus(times(static_cast<uint64_t>(count - 1), static_cast<uint64_t>(step)), one);
}

// Elements from the first to the last of a matrix in columns, and of a vector.
inline uint64_t matrix_extent(int64_t rows, int64_t columns, int64_t ld) {
  if (rows <= 0 || columns <= 0) return 0;
  return plus(times(static_cast<uint64_t>(columns - 1), static_cast<uint64_t>(ld)), static_cast<uint64_t>(rows));
}
inline uint64_t vector_extent(int64_t n, int64_t inc) {
  const uint64_t step = inc < 0 ? -static_cast<uint64_t>(inc) : static_cast<uint64_t>(inc);
  return n <= 0 ? 0 : plus(times(static_cast<uint64_t>(n - 1), step), 1);
}

// Nothing but a status leaves a function of the interface.
template <class F>
cublasStatus with_any_handle(const void *handle, F body) {
  if (!handle || static_cast<const Mark *>(handle)->live != kLive) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (replace::enter()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (faulted()) return CUBLAS_STATUS_EXECUTION_FAILED;
  try {
    return body();
  } catch (const std::bad_alloc &) {
    return CUBLAS_STATUS_ALLOC_FAILED;
  } catch (...) {
    return CUBLAS_STATUS_INTERNAL_ERROR;
  }
}
template <class F>
cublasStatus with_handle(cublasHandle handle, F body) {
  if (handle && handle->live == kLive && handle->owner != kOwnBlas) return CUBLAS_STATUS_NOT_INITIALIZED;  // cuBLASLt's has no stream
  return with_any_handle(handle, [&] { return body(*handle); });
}

// cuBLAS's words in those of BLAS's C interface; 0 for what is neither.
inline int op(int value) { return value >= 0 && value <= 2 ? 111 + value : 0; }
inline int fill(int value) { return value == 0 ? 122 : value == 1 ? 121 : 0; }
inline int diagonal(int value) { return value == 0 ? 131 : value == 1 ? 132 : 0; }
inline int side(int value) { return value == 0 || value == 1 ? 141 + value : 0; }

}  // namespace sx::cublas
