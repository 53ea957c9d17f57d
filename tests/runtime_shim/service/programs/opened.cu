__global__ void twice(int *p) { p[threadIdx.x] *= 2; }
extern "C" int run() { int *p, h[32]; for (int i = 0; i < 32; ++i) h[i] = i; if (cudaMalloc(&p, 128)) return 1; cudaMemcpy(p, h, 128, cudaMemcpyHostToDevice); twice<<<1, 32>>>(p); int e = cudaMemcpy(h, p, 128, cudaMemcpyDeviceToHost); if (e) return e; for (int i = 0; i < 32; ++i) if (h[i] != 2 * i) return 2; cudaFree(p); return 0; }
