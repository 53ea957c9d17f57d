__device__ int shared_variable = 7;
extern __device__ int (*pointer)(int);
__device__ int twice(int x) { return x / 7 + 2 * shared_variable; }
__device__ int own(int x) { return x * 9; }
__global__ void second(int *p) {
  p[0] = twice(p[1]);
  pointer = own;
}
