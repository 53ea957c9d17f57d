// cuBLAS's public interface, as far as it is implemented: numbers of its types, and what a handle is.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>

#include "../common/driver_structs.h"

#define SX_API extern "C" __attribute__((visibility("default")))

enum cublasStatus : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};

enum DataType : int {  // cudaDataType
  kR32F = 0, kR64F = 1, kR16F = 2, kR8I = 3, kC32F = 4, kC64F = 5, kR32I = 10, kR16BF = 14, kR8E4M3 = 28, kR8E5M2 = 29,
};

enum ComputeType : int {  // cublasComputeType_t
  kCompute16F = 64, kCompute16FPedantic = 65,
  kCompute32F = 68, kCompute32FPedantic = 69,
  kCompute64F = 70, kCompute64FPedantic = 71,
  kCompute32I = 72, kCompute32IPedantic = 73,
  kCompute32FFast16F = 74, kCompute32FFast16BF = 75, kCompute32FFastTf32 = 77, kCompute32FEmulated = 78,
};

constexpr int kPointerHost = 0, kPointerDevice = 1;

using Float2 = std::complex<float>;
using Double2 = std::complex<double>;
