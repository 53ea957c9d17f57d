// Attributes of descriptors: their numbers, places and sizes.
#pragma once
#include <cstddef>
#include <cstring>

#include "../cublas/cublas_abi.h"

namespace sx::lt {

struct Attribute {
  int number;
  size_t offset, size;
};

template <size_t kCount>
const Attribute *find(const Attribute (&all)[kCount], int number) {
  for (const Attribute &a : all)
    if (a.number == number) return &a;
  return nullptr;
}

template <size_t kCount>
cublasStatus set_attribute(const Attribute (&all)[kCount], void *descriptor, int number, const void *from, size_t size) {
  const Attribute *a = find(all, number);
  if (!descriptor || !a || !from || size != a->size) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(static_cast<char *>(descriptor) + a->offset, from, size);
  return CUBLAS_STATUS_SUCCESS;
}

// A size of 0 asks for the size alone.
template <size_t kCount>
cublasStatus get_attribute(const Attribute (&all)[kCount], const void *descriptor, int number, void *to, size_t size, size_t *written) {
  const Attribute *a = find(all, number);
  if (!descriptor || !a || (size == 0 ? !written : !to || size != a->size)) return CUBLAS_STATUS_INVALID_VALUE;
  if (size) memcpy(to, static_cast<const char *>(descriptor) + a->offset, size);
  if (written) *written = a->size;
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus initialize(T *at, size_t size, const T &value) {
  if (!at) return CUBLAS_STATUS_INVALID_VALUE;
  if (size < sizeof(T)) return CUBLAS_STATUS_ALLOC_FAILED;
  memset(static_cast<void *>(at), 0, size);
  memcpy(static_cast<void *>(at), &value, sizeof value);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus create(T **at, const T &value) {
  if (!at) return CUBLAS_STATUS_INVALID_VALUE;
  *at = new (std::nothrow) T(value);
  return *at ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

}  // namespace sx::lt
