// The functions for plane rotations.
#include "rotations.h"

using namespace sx::cublas;

#define I int
#define SX_V2(name) name##_v2
#include "rotations_api.inc"
#undef I
#undef SX_V2

#define I int64_t
#define SX_V2(name) name##_v2_64
#include "rotations_api.inc"

SX_API cublasStatus cublasSrotg_v2(cublasHandle h, float *a, float *b, float *c, float *s) { return do_rotg(h, a, b, c, s); }
SX_API cublasStatus cublasDrotg_v2(cublasHandle h, double *a, double *b, double *c, double *s) { return do_rotg(h, a, b, c, s); }
SX_API cublasStatus cublasCrotg_v2(cublasHandle h, Float2 *a, Float2 *b, float *c, Float2 *s) { return do_rotg(h, a, b, c, s); }
SX_API cublasStatus cublasZrotg_v2(cublasHandle h, Double2 *a, Double2 *b, double *c, Double2 *s) { return do_rotg(h, a, b, c, s); }
SX_API cublasStatus cublasSrotmg_v2(cublasHandle h, float *d1, float *d2, float *x1, const float *y1, float *param) {
  return do_rotmg(h, d1, d2, x1, y1, param);
}
SX_API cublasStatus cublasDrotmg_v2(cublasHandle h, double *d1, double *d2, double *x1, const double *y1, double *param) {
  return do_rotmg(h, d1, d2, x1, y1, param);
}
