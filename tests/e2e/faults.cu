// Kernels that go wrong in one way each; what the runtime then answers is printed.
//
//   faults KERNEL [NUMBER]
#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void trap(int *p, int n) {
    if (threadIdx.x == static_cast<unsigned>(n)) __trap();
    p[threadIdx.x] = 1;
}

__global__ void bytes(char *p, int n) { *reinterpret_cast<int *>(p + n + 4 * threadIdx.x) = 3; }

__global__ void far_away(int *p, long long n) { p[threadIdx.x + n] = 1; }

__global__ void shared(int *p, int n) {
    __shared__ int s[32];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = s[threadIdx.x + n];
}

__global__ void local(int *p, int n) {
    volatile int a[200];
    for (int i = 0; i < 200; i++) a[i] = p[i & 31];
    p[threadIdx.x] = a[n];
}


int main(int argc, char **argv) {
    const char *kernel = argc > 1 ? argv[1] : "";
    const long long n = argc > 2 ? atoll(argv[2]) : 0;
    int *p = nullptr, *freed = nullptr, *later = nullptr;
    cudaMalloc(&p, 128);
    cudaMemset(p, 0, 128);
    if (!strcmp(kernel, "trap")) trap<<<1, 32>>>(p, n);
    if (!strcmp(kernel, "bytes")) bytes<<<1, 16>>>(reinterpret_cast<char *>(p), n);
    if (!strcmp(kernel, "far")) far_away<<<1, 32>>>(p, n);
    if (!strcmp(kernel, "null")) far_away<<<1, 32>>>(nullptr, n);
    if (!strcmp(kernel, "shared")) shared<<<1, 32>>>(p, n);
    if (!strcmp(kernel, "local")) local<<<1, 32>>>(p, n);
    if (!strcmp(kernel, "freed")) {
        cudaMalloc(&freed, 128);
        cudaFree(freed);
        cudaMalloc(&later, 128);
        far_away<<<1, 32>>>(freed, 0);
    }
    const int launch = cudaGetLastError(), ran = cudaDeviceSynchronize(), after = cudaMalloc(&p, 4);
    printf("%d %d %d\n", launch, ran, after);
    return 0;
}
