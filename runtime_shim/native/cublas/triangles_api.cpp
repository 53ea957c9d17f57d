// The functions for symmetric, Hermitian, triangular, packed and banded matrices.
#include "updates.h"

using namespace sx::cublas;

#define I int
#define SX_NAME(name) name
#define SX_V2(name) name##_v2
#include "triangles_api.inc"
#undef I
#undef SX_NAME
#undef SX_V2

#define I int64_t
#define SX_NAME(name) name##_64
#define SX_V2(name) name##_v2_64
#include "triangles_api.inc"
