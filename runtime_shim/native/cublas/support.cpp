// What cuBLAS's replacement and cuBLASLt's share beside the host's BLAS.
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <string>

#include "handle.h"
#include "host_blas.h"
#include "numbers.h"

namespace sx::cublas {
namespace {

std::atomic<bool> g_faulted{false};

}  // namespace

bool usable(const void *address, uint64_t elements, size_t size, const char *function, bool write) {
  if (elements == 0) return true;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const size_t alignment = size > 8 ? 8 : size;
  uint64_t bytes = 0;
  if (address && at % alignment == 0 && !__builtin_mul_overflow(elements, size, &bytes) && replace::reachable(address, bytes, write))
    return true;
  char line[256];
  snprintf(line, sizeof line, "SX0782: %s: an operand, %" PRIu64 " elements of %zu bytes at 0x%" PRIxPTR ", is not %s", function,
           elements, size, at,
           at % alignment ? "aligned" : write ? "within one allocation that the device may write" : "within one allocation of the device");
  replace::refuse(function, line);
  return false;
}

void fault(const char *function, const void *address) {
  g_faulted = true;
  char line[256];
  snprintf(line, sizeof line, "SX0782: %s: the address 0x%" PRIxPTR ", of a number or in an array, is not within one allocation of the device; "
           "as after a fault of a kernel, later calls fail", function, reinterpret_cast<uintptr_t>(address));
  replace::refuse(function, line);
  replace::fault_from_work();
}
void fault_without_memory() {
  g_faulted = true;
  replace::refuse("cublas memory", "SX0789: cuBLAS: the host has no memory for an operation in a stream; as after a fault of a kernel, later calls fail");
  replace::fault_from_work();
}
bool faulted() { return g_faulted; }

bool counts(std::initializer_list<int64_t> numbers) {
  if (host_blas().wide) return true;
  for (const int64_t n : numbers) {
    if (n >= std::numeric_limits<int32_t>::min() && n <= std::numeric_limits<int32_t>::max()) continue;
    g_faulted = true;
    char line[200];
    snprintf(line, sizeof line, "SX0787: cuBLAS: the host's BLAS counts in 32 bits, and cannot do a call with %" PRId64
             "; as after a fault of a kernel, later calls fail", n);
    replace::refuse("cublas 32 bits", line);
    replace::fault_from_work();
    return false;
  }
  return true;
}

cublasStatus ready() {
  if (replace::enter()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!replace::emulated()) {
    replace::refuse("cublas", "SX0786: this cuBLAS is the emulated device's, and there is an AMD card: calls that need it fail; `sassxlate run --replace cublas` puts hipBLAS in its place");
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  if (!host_blas().complete) return CUBLAS_STATUS_NOT_INITIALIZED;
  replace::note_replaced("cublas", "the host's BLAS");
  return CUBLAS_STATUS_SUCCESS;
}

// The host's BLAS has no handles.
cublasStatus attach(Mark &) { return CUBLAS_STATUS_SUCCESS; }
void detach(Mark &) {}

const float *half_values() {
  static const float *const all = [] {
    auto *made = new float[65536];
    for (unsigned bits = 0; bits < 65536; ++bits) made[bits] = Half{static_cast<uint16_t>(bits)}.value();
    return made;
  }();
  return all;
}

}  // namespace sx::cublas
