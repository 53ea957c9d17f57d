// uniform float and integer work, from parameters only
extern "C" __global__ void uf(float* o, float a, float b, int n, unsigned m, const float* t) {
  float s = 0, p = 1;
  for (int i = 0; i < n; i++) {
    float x = a * i + b;
    s += x * x - p;
    p = fmaxf(p, x) * 0.5f;
    if (x > s)
      p = fminf(p, s);
    else
      p = -p + 3.f;
    s = s > 2.f ? s : p;
    int q = (int)s;
    unsigned r = (unsigned)p;
    s += (float)q + (float)r;
    s = fabsf(s);
    p = floorf(p);
  }
  o[threadIdx.x] = s + p;
}
extern "C" __global__ void ui(int* o, int a, int b, unsigned c, long long d, int n) {
  int s = a;
  for (int i = 0; i < n; i++) {
    s = s * b + (int)(c >> (i & 31));
    s ^= min(a, b + i);
    c = (c << 3) | (c >> 29);
    s += max(s, a) - abs(s);
    d += (long long)s * b;
    if ((unsigned long long)d > c) d = d >> 3;
    s += __popc(c) + __clz(s) + __brev(c) + __ffs(s);
    s = s > b ? s : a + i;
    s += (a + i) / 7;
    c = __byte_perm(c, s, 0x1032);
    s = (s << (i & 7)) & ~c;
    if (d < s) s -= 3;
    d = min(d, (long long)s * 5);
    d ^= d << 7;
  }
  o[threadIdx.x] = s + c + (int)(d >> 32) + (int)d;
}
extern "C" __global__ void ud(double* o, double a, double b, int n) {
  double s = 0;
  for (int i = 0; i < n; i++) {
    s = s * a + b;
    if (s > a) s = -s;
    s += (double)i;
  }
  o[threadIdx.x] = s;
}
extern "C" __global__ void ub(int* o, int a, int b, int n, const int* __restrict__ t) {
  switch (n) {
    case 0:
      o[0] = a;
      break;
    case 1:
      o[1] = b;
      break;
    case 2:
      o[2] = a * b;
      break;
    case 3:
      o[3] = a / b;
      break;
    case 4:
      o[4] = a % 7;
      break;
    case 5:
      o[5] = t[a];
      break;
    case 6:
      o[6] = t[b] * a;
      break;
    case 7:
      o[a] = b;
  }
  for (int i = 0; i < n; i++) {
    if (t[i] == a) break;
    if (i == b) continue;
    o[i] += t[blockIdx.x] * i;
  }
  bool p = a > b, q = n > a, r = b < n;
  if ((p && q) || (!r && p) || (q != r)) o[9] = 1;
}
__constant__ float ctab[64];
__constant__ int itab[64];
extern "C" __global__ void uc(float* o, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) {
    s += ctab[i & 63] * itab[(i * 3) & 63];
  }
  o[threadIdx.x] = s;
  for (int i = blockIdx.x; i < n; i += gridDim.x) o[i] = ctab[i] * 2.f + itab[blockIdx.y];
}
