// Matrix products through nvcuda::wmma and mma.sync: several shapes and types in a few warps.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

// out: 256 floats a warp; a, b: 256 halves each a warp; c in out.
extern "C" __global__ void halves(const half *a, const half *b, float *out, int rounds) {
    int warp = threadIdx.x / 32 + blockIdx.x * (blockDim.x / 32);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(sum, out + 256 * warp, 16, wmma::mem_row_major);
    for (int i = 0; i < rounds; i++) {
        wmma::load_matrix_sync(left, a + 256 * (warp + i), 16);
        wmma::load_matrix_sync(right, b + 256 * (warp + i), 16);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(out + 256 * warp, sum, 16, wmma::mem_row_major);
}

// The same by way of shared memory and ldmatrix, binary16 sums; out as 512 halves a warp.
extern "C" __global__ void shared_halves(const half *a, const half *b, float *out, int rounds) {
    __shared__ half tile[4][2][256];
    int lane = threadIdx.x % 32, w = threadIdx.x / 32, warp = w + blockIdx.x * (blockDim.x / 32);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::col_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> sum;
    wmma::fill_fragment(sum, __float2half(0.25f));
    for (int i = 0; i < rounds; i++) {
        for (int k = lane; k < 256; k += 32) {
            tile[w][0][k] = a[256 * (warp + i) + k];
            tile[w][1][k] = b[256 * (warp + i) + k];
        }
        __syncwarp();
        wmma::load_matrix_sync(left, tile[w][0], 16);
        wmma::load_matrix_sync(right, tile[w][1], 16);
        wmma::mma_sync(sum, left, right, sum);
        __syncwarp();
    }
    wmma::store_matrix_sync(reinterpret_cast<half *>(out) + 512 * warp, sum, 16,
                            wmma::mem_row_major);
}

extern "C" __global__ void brains(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *out,
                                  int rounds) {
    int warp = threadIdx.x / 32 + blockIdx.x * (blockDim.x / 32);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < rounds; i++) {
        wmma::load_matrix_sync(left, a + 256 * (warp + i), 16);
        wmma::load_matrix_sync(right, b + 256 * (warp + i), 16);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(out + 256 * warp, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void bytes(const signed char *a, const signed char *b, int *out,
                                 int rounds) {
    int warp = threadIdx.x / 32 + blockIdx.x * (blockDim.x / 32);
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> sum;
    wmma::fill_fragment(sum, 3);
    for (int i = 0; i < rounds; i++) {
        wmma::load_matrix_sync(left, a + 256 * (warp + i), 16);
        wmma::load_matrix_sync(right, b + 256 * (warp + i), 16);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(out + 256 * warp, sum, 16, wmma::mem_row_major);
}

extern "C" __global__ void doubles(const double *a, const double *b, double *out, int rounds) {
    int warp = threadIdx.x / 32 + blockIdx.x * (blockDim.x / 32);
    wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
    wmma::fill_fragment(sum, 0.0);
    for (int i = 0; i < rounds; i++) {
        wmma::load_matrix_sync(left, a + 32 * (warp + i), 4);
        wmma::load_matrix_sync(right, b + 32 * (warp + i), 4);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(out + 64 * warp, sum, 8, wmma::mem_row_major);
}
