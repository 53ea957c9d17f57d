__device__ int twice(int);
__device__ int (*pointer)(int);
extern __device__ int shared_variable;
__global__ void first(int *p) {
  p[0] = twice(p[1]) + shared_variable;
  if (p[3]) p[5] = pointer(p[4]);
}
