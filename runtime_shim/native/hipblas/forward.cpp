// The functions of table.inc and factor.inc.
#include "arguments.h"
#include "library.h"

using namespace sx::hipblas;

#define SX_FORWARD(function, base, wide, ...)                                                     \
  SX_API cublasStatus function(cublasHandle handle, SX_DECLARE(__VA_ARGS__)) {                    \
    static const Entry entry(#function, base, Call<__VA_ARGS__>::typed, wide);                    \
    return Call<__VA_ARGS__>::run(handle, entry, SX_USE(__VA_ARGS__));                            \
  }

#define N I32
#define SX_V2(name, ...) SX_FORWARD(cublas##name##_v2, "hipblas" #name, false, __VA_ARGS__)
#define SX_EX(name, ...) SX_FORWARD(cublas##name, "hipblas" #name, false, __VA_ARGS__)
#include "factor.inc"
#include "table.inc"
#undef N
#undef SX_V2
#undef SX_EX

#define N I64
#define SX_V2(name, ...) SX_FORWARD(cublas##name##_v2_64, "hipblas" #name, true, __VA_ARGS__)
#define SX_EX(name, ...) SX_FORWARD(cublas##name##_64, "hipblas" #name, true, __VA_ARGS__)
#include "table.inc"
