// Compare-and-swap and exchange of 128 bits by many threads: nothing is lost, nothing is torn.
#include <cstdio>
typedef unsigned long long u;
struct alignas(16) Q { u a, b; };
__device__ Q cas(Q *p, Q c, Q n) {
  Q r;
  asm volatile("{ .reg .b128 x,y,z; mov.b128 x,{%2,%3}; mov.b128 z,{%4,%5};"
               " atom.global.cas.b128 y,[%6],x,z; mov.b128 {%0,%1},y; }"
               : "=l"(r.a), "=l"(r.b)
               : "l"(c.a), "l"(c.b), "l"(n.a), "l"(n.b), "l"(p) : "memory");
  return r;
}

__device__ Q exch(Q *p, Q n) {
  Q r;
  asm volatile("{ .reg .b128 x,y; mov.b128 x,{%2,%3}; atom.exch.b128 y,[%4],x; mov.b128 {%0,%1},y; }"
               : "=l"(r.a), "=l"(r.b) : "l"(n.a), "l"(n.b), "l"(p) : "memory");
  return r;
}

// Each thread adds (1, 3 t) to one of 7 quads; then a chain of exchanges sums what it finds.
__global__ void sums(Q *q, Q *sum, int rounds) {
  u t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < rounds; i++) {
    if ((t + i) % 5 == 0) continue;
    Q *p = q + (t * 13 + i) % 7, c = {0, 0}, r;
    for (;;) {
      Q n = {c.a + 1, c.b + 3 * t};
      r = cas(p, c, n);
      if (r.a == c.a && r.b == c.b) break;
      c = r;
    }
  }
  Q mine = {t + 1, ~t}, was = exch(sum, mine);
  atomicAdd(&sum[1].a, was.a); atomicAdd(&sum[1].b, was.a ? was.b : 0);
}
__global__ void in_shared(Q *out) {
  __shared__ Q s;
  if (threadIdx.x == 0) s = {0, 0};
  __syncthreads();
  Q was = exch(&s, {threadIdx.x + 1ull, 2ull * threadIdx.x});
  __syncthreads();
  atomicAdd(&out->a, was.a); atomicAdd(&out->b, was.b);
  if (threadIdx.x == 0) { atomicAdd(&out->a, s.a); atomicAdd(&out->b, s.b); }
}
int main() {
  Q *d, h[16] = {}; cudaMalloc(&d, sizeof h); cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
  const int blocks = 6, threads = 96, rounds = 5;
  sums<<<blocks, threads>>>(d, d + 8, rounds); in_shared<<<3, 80>>>(d + 11);
  int e = cudaDeviceSynchronize();
  cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
  Q want[7] = {};
  for (u t = 0; t < blocks * threads; t++)
    for (int i = 0; i < rounds; i++)
      if ((t + i) % 5) {
        want[(t * 13 + i) % 7].a++;
        want[(t * 13 + i) % 7].b += 3 * t;
      }
  int bad = 0;
  for (int k = 0; k < 7; k++)
    if (h[k].a != want[k].a || h[k].b != want[k].b) bad++;
  u n = blocks * threads, all = n * (n + 1) / 2, last = h[8].a;
  if (h[9].a + last != all || h[8].b != ~(last - 1)) bad++;
  if (h[11].a != 3 * 80 * 81 / 2 || h[11].b != 3 * 79 * 80) bad++;
  printf("bad %d of 9, %d\n", bad, e);
  return bad || e;
}
