#include <cassert>
#include <cstdio>
struct B {
  virtual __device__ int f(int x) = 0;
  int k;
};
struct C : B {
  __device__ int f(int x) override {
    return x * k + 1;
  }
};
struct D : B {
  __device__ int f(int x) override {
    return x ^ k;
  }
};
__device__ __noinline__ int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}
__device__ __noinline__ float nf(float a, float b) {
  return a / b + sqrtf(a);
}
typedef int (*FP)(int);
__device__ int fa(int x) {
  return x + 1;
}
__device__ int fb(int x) {
  return x * 3;
}
__device__ int fc(int x) {
  return x / 3;
}
__device__ FP tab[3] = {fa, fb, fc};
extern "C" __global__ void k1(int* o, int n) {
  C c;
  D d;
  c.k = n;
  d.k = n + 1;
  B* b = n & 1 ? (B*)&c : (B*)&d;
  o[0] = b->f(n);
  o[1] = fib(n);
  o[2] = nf(n, o[3]);
  o[4] = tab[n % 3](n);
}
extern "C" __global__ void k2(int* o, int n) {
  printf("hi %d %f\n", n, o[1] * 1.5);
  int* p = (int*)malloc(n * 4);
  if (!p) return;
  p[n - 1] = 3;
  o[2] = p[0];
  free(p);
  assert(n > 3);
  char* q = new char[n];
  q[3] = 1;
  delete[] q;
}
extern "C" __global__ void k3(int* o, const int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int s = 0;
  for (int j = i; j < n; j += gridDim.x * blockDim.x) {
    int v = a[j];
    while (v > 1) {
      v = v & 1 ? 3 * v + 1 : v / 2;
      s++;
      if (s > 1000) goto done;
    }
  }
done:
  switch (s) {
    case 0:
      o[i] = 3;
      break;
    case 1:
      o[i] = a[1];
      break;
    case 2:
      o[i + 1] = 5;
      break;
    case 3:
      o[2] = a[i];
      break;
    case 5:
      o[i] = s * 7;
      break;
    case 6:
      o[9] = 9;
      break;
    case 7:
      o[8] ^= 1;
      break;
    case 8:
      o[n] = n;
      break;
    default:
      o[i] = s;
  }
}
extern "C" __global__ void k4(int* lock, int* o) {
  while (atomicCAS(lock, 0, 1) != 0);
  o[0]++;
  __threadfence();
  atomicExch(lock, 0);
  if (o[1] > 5) __trap();
  if (o[2] == 7) asm volatile("brkpt;");
  if (o[3] == 2) asm volatile("exit;");
  o[5] = clock();
}
extern "C" __global__ void k5(bool* b, const int* a, int n) {
  bool p = a[0] > n, q = a[1] < n, r = a[2] == n, s = a[3] != n;
  b[0] = p && q || r;
  b[1] = (p ^ q) & s;
  b[2] = !(p || q) && (r != s);
  b[3] = p ? q : r;
  b[4] = (p & q) | (r & s) | (p & !s);
  int x = 0;
  if (p) x |= 1;
  if (q) x |= 2;
  if (r) x |= 4;
  if (s) x |= 8;
  ((int*)b)[5] = x;
}
template <int N>
__device__ float pr(const float* a, float* o, int n) {
  float v[N];
#pragma unroll
  for (int j = 0; j < N; j++) v[j] = a[j * n];
#pragma unroll 1
  for (int t = 0; t < n; t++) {
#pragma unroll
    for (int j = 0; j < N; j++) v[j] = v[j] * v[(j + 3) % N] + a[t * 7 + j];
  }
  float s = 0;
  for (int j = 0; j < N; j++) {
    s += v[j];
    o[j] = v[j];
  }
  return s;
}
extern "C" __global__ void __launch_bounds__(1024, 2) k6(float* o, const float* a, int n) {
  o[0] = pr<64>(a, o + 9, n);
}
extern "C" __global__ void k7(float* A, float* Bm, float* Cm, int N) {
  __shared__ float as[16][16], bs[16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int r = blockIdx.y * 16 + ty, c = blockIdx.x * 16 + tx;
  float acc = 0;
  for (int t = 0; t < N; t += 16) {
    as[ty][tx] = r < N && t + tx < N ? A[r * N + t + tx] : 0;
    bs[ty][tx] = c < N && t + ty < N ? Bm[(t + ty) * N + c] : 0;
    __syncthreads();
    for (int k = 0; k < 16; k++) acc += as[ty][k] * bs[k][tx];
    __syncthreads();
  }
  if (r < N && c < N) Cm[r * N + c] = acc;
}
extern "C" __global__ void k8(double* x, int* p, int n) {
  double s = 0;
  for (int i = threadIdx.x; i < n; i += 32) s += x[p[i]] * x[i];
  for (int k = 16; k; k >>= 1) s += __shfl_down_sync(~0u, s, k);
  if (!threadIdx.x) x[n] = s;
}
