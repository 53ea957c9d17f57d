#include <stdint.h>
extern "C" __global__ void i32(int* o, const int* a, const int* b, unsigned* u, int n, int k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = a[i], y = b[i];
  o[0 * n + i] = x + y;
  o[1 * n + i] = x - y;
  o[2 * n + i] = x * y + k;
  o[3 * n + i] = x / y;
  o[4 * n + i] = x % y;
  o[5 * n + i] = x << (y & 31);
  o[6 * n + i] = x >> (y & 31);
  o[7 * n + i] = (x & y) | (~x & k);
  o[8 * n + i] = min(x, y);
  o[9 * n + i] = max(x, k);
  o[10 * n + i] = abs(x);
  o[11 * n + i] = __popc(x) + __clz(y) + __ffs(x) + __brev(y);
  o[12 * n + i] = __mulhi(x, y);
  o[13 * n + i] = __umulhi(x, y);
  o[14 * n + i] = x / 7 + y % 10 + k / 1000;
  o[15 * n + i] = __byte_perm(x, y, k);
  o[16 * n + i] = __funnelshift_l(x, y, k) ^ __funnelshift_r(x, y, k) ^ __funnelshift_lc(x, y, k) ^
                  __funnelshift_rc(x, y, k);
  o[17 * n + i] =
      __dp4a(x, y, k) + __dp2a_lo(x, y, k) + __dp2a_hi((unsigned)x, (unsigned)y, (unsigned)k);
  o[18 * n + i] = __sad(x, y, k) + __usad(x, y, k);
  o[19 * n + i] = __hadd(x, y) + __rhadd(x, y) + __mul24(x, y) + __umul24(x, y);
  u[i] = u[i] / u[i + n] + u[i] % u[i + 1];
  o[20 * n + i] = x > y ? k : i;
  o[21 * n + i] = (x > y && y < k) || x == k;
  o[22 * n + i] = (short)x + (unsigned char)y + (signed char)k;
  o[23 * n + i] = min(max(x, 3), 77);
  o[24 * n + i] = x * 8 + y;
  o[25 * n + i] = -x;
  o[26 * n + i] = x - 5 * y;
}
extern "C" __global__ void i64(long long* o, const long long* a, const long long* b,
                               unsigned long long* u, int n, long long k) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  long long x = a[i], y = b[i];
  o[0 * n + i] = x + y;
  o[1 * n + i] = x - y;
  o[2 * n + i] = x * y + k;
  o[3 * n + i] = x / y;
  o[4 * n + i] = x % y;
  o[5 * n + i] = x << (y & 63);
  o[6 * n + i] = x >> (y & 63);
  o[7 * n + i] = (x & y) | (~x & k);
  o[8 * n + i] = min(x, y);
  o[9 * n + i] = max(x, k);
  o[10 * n + i] = llabs(x);
  o[11 * n + i] = __popcll(x) + __clzll(y) + __ffsll(x) + __brevll(y);
  o[12 * n + i] = __mul64hi(x, y);
  o[13 * n + i] = __umul64hi(x, y);
  u[i] = u[i] / u[i + n] + (u[i] >> (y & 63));
  o[14 * n + i] = x > y ? k : i;
  o[15 * n + i] = x < k && y != 3;
  u[i + 1] = u[i] > 5 ? u[i + 2] : 7;
  o[16 * n + i] = (int)x * (long long)(int)y;
  o[17 * n + i] = (unsigned)x * (unsigned long long)(unsigned)y + k;
  o[18 * n + i] = -x;
  o[19 * n + i] = x == 0x123456789abcdef;
  o[20 * n + i] = x * 1000003;
  if (x > y) o[21 * n + i] = 1;
  if (u[i] >= 100) o[22 * n + i] = 2;
  o[23 * n + i] = x << 3;
  o[24 * n + i] = x >> 7;
  o[25 * n + i] = u[i] >> 9;
  o[26 * n + i] = x / 12345;
  o[27 * n + i] = u[i] % 1000;
  __int128 z = (__int128)x * y + k;
  o[28 * n + i] = z >> 64;
  o[29 * n + i] = z >> 17;
  unsigned __int128 w = (unsigned __int128)u[i] + u[i + 3];
  o[30 * n + i] = w >> 64;
}
extern "C" __global__ void i8_16(int8_t* a, uint8_t* b, int16_t* c, uint16_t* d, int n) {
  int i = threadIdx.x;
  a[i] = a[i + n] * b[i] + c[i];
  b[i] = b[i + n] >> 2;
  c[i] = c[i + n] - a[i] * 3;
  d[i] = d[i + n] / 7 + b[i];
  d[i + 2 * n] = max(d[i], d[i + 1]);
  c[i + 2 * n] = min(c[i + 3], c[i + 4]);
  char4 q = ((char4*)a)[i];
  q.x += q.y;
  q.z *= q.w;
  ((char4*)a)[i + 1] = q;
  ushort2 r = ((ushort2*)d)[i];
  r.x ^= r.y;
  ((ushort2*)d)[i + 9] = r;
}
extern "C" __global__ void simd(unsigned* o, const unsigned* a, const unsigned* b,
                                const unsigned* c, int n) {
  int i = threadIdx.x;
  unsigned x = a[i], y = b[i], z = c[i];
  o[0 * n + i] = __vadd4(x, y);
  o[1 * n + i] = __vsub2(x, y);
  o[2 * n + i] = __vabsdiffs4(x, y);
  o[3 * n + i] = __vabsdiffu4(x, y);
  o[4 * n + i] = __vmaxs2(x, y);
  o[5 * n + i] = __vminu2(x, y);
  o[6 * n + i] = __vmaxu4(x, y);
  o[7 * n + i] = __vcmpeq4(x, y);
  o[8 * n + i] = __vsadu4(x, y) + __vsads4(x, y);
  o[9 * n + i] = __vavgu4(x, y);
  o[10 * n + i] = __viaddmax_s32(x, y, z);
  o[11 * n + i] = __viaddmin_u32(x, y, z);
  o[12 * n + i] = __vimax3_s32(x, y, z);
  o[13 * n + i] = __vimin3_u32(x, y, z);
  o[14 * n + i] = __vimax3_s16x2(x, y, z);
  o[15 * n + i] = __vimax_s32_relu(x, y);
  o[16 * n + i] = __viaddmax_s16x2_relu(x, y, z);
  bool p, q;
  o[17 * n + i] = __vibmax_s32(x, y, &p) + p;
  o[18 * n + i] = __vibmin_u16x2(x, y, &p, &q) + p * 3 + q * 5;
  o[19 * n + i] = __vimax_s16x2_relu(x, y);
  o[20 * n + i] = __vneg2(x) + __vabs4(y) + __vsetltu4(x, y);
  o[21 * n + i] = __vaddss2(x, y) + __vaddus4(y, z);
  o[22 * n + i] = __vimin3_s32_relu(x, y, z) + __vimin3_u16x2(x, y, z) + __viaddmin_s16x2(x, y, z) +
                  __viaddmax_u16x2(x, y, z);
}
extern "C" __global__ void iptx(unsigned* o, const unsigned* a, const unsigned* b,
                                const unsigned* c, int n, unsigned k) {
  int i = threadIdx.x;
  unsigned x = a[i], y = b[i], z = c[i], r;
#define S(j) o[j * n + i] = r;
  asm volatile("bfe.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(0) asm volatile("bfe.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(1) asm volatile("bfi.b32 %0,%1,%2,%3,%4;" : "=r"(r) : "r"(x), "r"(y), "r"(z), "r"(k));
  S(2)
  asm volatile("bfind.u32 %0,%1;" : "=r"(r) : "r"(x));
  S(3) asm volatile("bfind.s32 %0,%1;" : "=r"(r) : "r"(x));
  S(4) asm volatile("bfind.shiftamt.s32 %0,%1;" : "=r"(r) : "r"(x));
  S(5) asm volatile("bfind.shiftamt.u32 %0,%1;" : "=r"(r) : "r"(x));
  S(6)
  asm volatile("prmt.b32.f4e %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(7) asm volatile("prmt.b32.b4e %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(8) asm volatile("prmt.b32.rc8 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(9) asm volatile("prmt.b32.ecl %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(10) asm volatile("prmt.b32.ecr %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(11) asm volatile("prmt.b32.rc16 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(12)
  asm volatile("lop3.b32 %0,%1,%2,%3,0x96;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(13) asm volatile("bmsk.wrap.b32 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(14) asm volatile("bmsk.clamp.b32 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(15) asm volatile("szext.wrap.s32 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(16) asm volatile("szext.clamp.u32 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(17)
  asm volatile("{.reg .u32 t;add.cc.u32 t,%1,%2; addc.cc.u32 t,t,%3; addc.u32 %0,t,%1;}"
               : "=r"(r)
               : "r"(x), "r"(y), "r"(z));
  S(18)
  asm volatile(
      "{.reg .u32 t;sub.cc.u32 t,%1,%2; subc.cc.u32 t,t,%3; subc.u32 %0,t,%1;}" : "=r"(r) : "r"(x),
      "r"(y), "r"(z));
  S(19) asm volatile("{.reg .u32 t;mad.lo.cc.u32 t,%1,%2,%3; madc.hi.cc.u32 t,t,%3,%2; madc.hi.u32 %0,t,%1,%2;}":"=r"(r):"r"(x),"r"(y),"r"(z));
  S(20)
  asm volatile("add.sat.s32 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(21) asm volatile("mad.hi.sat.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(22) asm volatile("vadd.s32.u32.s32.sat %0,%1.b0,%2.h1;" : "=r"(r) : "r"(x), "r"(y));
  S(23) asm volatile("vmad.s32.s32.s32 %0,%1.b0,%2.b1,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(24) asm volatile("dp4a.u32.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(25) asm volatile("dp2a.lo.s32.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(26)
  asm volatile("cvt.pack.sat.s8.s32.b32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(27) asm volatile("cvt.pack.sat.u16.s32 %0,%1,%2;" : "=r"(r) : "r"(x), "r"(y));
  S(28) asm volatile("cvt.sat.s8.s32 %0,%1;" : "=r"(r) : "r"(x));
  S(29) asm volatile("cvt.sat.u16.s32 %0,%1;" : "=r"(r) : "r"(x));
  S(30) asm volatile("fns.b32 %0,%1,%2,%3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  S(31)
}
