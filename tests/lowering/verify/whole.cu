// Kernels for the verdict on whole kernels: a word that a whole wave loads, where some of its lanes
// have ended; a double whose NaN is only stored.
extern "C" __global__ void block_sums(unsigned *out, const unsigned *sums, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) out[i] += sums[blockIdx.x];
}

extern "C" __global__ void rounded(double *out, const double *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = floor(in[i]);
}
