// Shared by the fuzzers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// A property that does not hold is a finding like any report of a sanitizer.
#define SX_HOLDS(what)                                               \
  do {                                                               \
    if (!(what)) {                                                   \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);     \
      abort();                                                       \
    }                                                                \
  } while (0)

namespace sx::fuzz {

constexpr size_t kPage = 4096;
constexpr size_t kMost = 16u << 20;

// The input placed so that memory ends after its last byte: a reader that follows only the input's headers, and gets no
// length, must not read past it.
inline const uint8_t *at_end_of_memory(const uint8_t *data, size_t size) {
  static uint8_t *const base = [] {
    void *at = mmap(nullptr, kMost + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(static_cast<uint8_t *>(at) + kMost, kPage, PROT_NONE) != 0) abort();
    return static_cast<uint8_t *>(at);
  }();
  if (size > kMost) return nullptr;
  uint8_t *start = base + kMost - size;
  memcpy(start, data, size);
  return start;
}

// Reads every byte, so that an invalid range is found.
inline void touch(const void *data, size_t size) {
  const volatile unsigned char *bytes = static_cast<const volatile unsigned char *>(data);
  for (size_t i = 0; i < size; ++i) bytes[i];
}

}  // namespace sx::fuzz
