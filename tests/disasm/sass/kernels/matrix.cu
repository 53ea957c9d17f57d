#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void w1(const half* a, const half* b, float* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> B;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> C;
  wmma::fill_fragment(C, 0.f);
  for (int i = 0; i < 4; i++) {
    wmma::load_matrix_sync(A, a + i * 16, 64);
    wmma::load_matrix_sync(B, b + i * 16, 64);
    wmma::mma_sync(C, A, B, C);
  }
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
extern "C" __global__ void w2(const half* a, const half* b, half* c) {
  wmma::fragment<wmma::matrix_a, 32, 8, 16, half, wmma::col_major> A;
  wmma::fragment<wmma::matrix_b, 32, 8, 16, half, wmma::row_major> B;
  wmma::fragment<wmma::accumulator, 32, 8, 16, half> C;
  wmma::load_matrix_sync(C, c, 16, wmma::mem_row_major);
  wmma::load_matrix_sync(A, a, 64);
  wmma::load_matrix_sync(B, b, 64);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
extern "C" __global__ void w3(const signed char* a, const signed char* b, int* c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> A;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> B;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> C;
  wmma::fill_fragment(C, 0);
  wmma::load_matrix_sync(A, a, 64);
  wmma::load_matrix_sync(B, b, 64);
  wmma::mma_sync(C, A, B, C);
  wmma::store_matrix_sync(c, C, 16, wmma::mem_row_major);
}
extern "C" __global__ void p1(unsigned* r, float* f, double* d, const unsigned* a) {
  int i = threadIdx.x;
  unsigned a0 = a[i], a1 = a[i + 1], a2 = a[i + 2], a3 = a[i + 3], b0 = a[i + 4], b1 = a[i + 5];
  float c0 = f[0], c1 = f[1], c2 = f[2], c3 = f[3];
  unsigned e0 = a[9], e1 = a[10], x0, x1, x2, x3;
  int q0 = a[11], q1 = a[12], q2 = a[13], q3 = a[14];
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(b0));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3},{%4},{%0,%1};"
               : "+r"(e0), "+r"(e1)
               : "r"(a0), "r"(a1), "r"(b0));
  asm volatile("mma.sync.aligned.m8n8k16.row.col.satfinite.s32.u8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
               : "+r"(q0), "+r"(q1)
               : "r"(a0), "r"(b0));
  asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32 {%0,%1},{%2},{%3},{%0,%1};"
               : "+r"(q0), "+r"(q1)
               : "r"(a0), "r"(b0));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(x0), "=r"(x1), "=r"(x2), "=r"(x3)
               : "r"(a[20]));
  r[0] = x0 ^ x1 ^ x2 ^ x3;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0},[%1];" : "=r"(x0) : "r"(a[21]));
  r[1] = x0;
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1},[%2];"
               : "=r"(x0), "=r"(x1)
               : "r"(a[22] + 64));
  r[2] = x0 ^ x1;
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(b0));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};"
      : "+r"(e0), "+r"(e1)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(q0), "+r"(q1), "+r"(q2), "+r"(q3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(q0), "+r"(q1), "+r"(q2), "+r"(q3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  asm volatile(
      "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(q0), "+r"(q1), "+r"(q2), "+r"(q3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
  double d0 = d[0], d1 = d[1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};"
               : "+d"(d0), "+d"(d1)
               : "d"(d[2]), "d"(d[3]));
  d[i] = d0 + d1;
  asm volatile(
      "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%8,%9},{%0,%1,%2,%3},%10,0x0;"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(a[30]));
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(b0));
#endif
#if __CUDA_ARCH__ >= 890
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
      "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%4],{%0,%1,%2,%3};" ::"r"(x0), "r"(x1),
               "r"(x2), "r"(x3), "r"(a[20]));
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%1],{%0};" ::"r"(x0), "r"(a[23]));
#endif
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0,%1;" : "=r"(x0) : "r"(a[24]));
  r[3] = x0;
  f[i] = c0 + c1 + c2 + c3;
  r[i + 5] = e0 + e1 + q0 + q1 + q2 + q3;
}
