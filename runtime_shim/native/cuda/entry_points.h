// The table for cuGetProcAddress.
#pragma once
#include <cstddef>

namespace sx {

// What `name` means to a caller written for driver `version` or later.
struct Variant {
  const char *name;
  int version;
  bool per_thread;
  void *address;
};

// The variants of a name are adjacent, in the order of their versions.
extern const Variant kVariants[];
extern const size_t kVariantCount;

}  // namespace sx
