// Each approximate function of the multi-function unit, of binary32 and of halves.
// A thread reads a[i] and writes eight results of it as binary32, then four of its low half.
#include <cstdint>

extern "C" __global__ void approximations(const unsigned *a, const unsigned *, unsigned *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = __uint_as_float(a[i]), y;
  unsigned *o = out + 12 * i;
#define ONE(K, NAME) asm(NAME ".f32 %0, %1;" : "=f"(y) : "f"(x)); o[K] = __float_as_uint(y);
  ONE(0, "sin.approx.ftz")
  ONE(1, "cos.approx.ftz")
  ONE(2, "ex2.approx.ftz")
  ONE(3, "lg2.approx.ftz")
  ONE(4, "tanh.approx")
  ONE(5, "rcp.approx.ftz")
  ONE(6, "rsqrt.approx.ftz")
  ONE(7, "sqrt.approx.ftz")
  uint16_t h = a[i], r;
#define HALF(K, NAME) asm(NAME " %0, %1;" : "=h"(r) : "h"(h)); o[8 + K] = r;
  HALF(0, "ex2.approx.f16")
  HALF(1, "tanh.approx.f16")
  HALF(2, "ex2.approx.ftz.bf16")
  HALF(3, "tanh.approx.bf16")
}
