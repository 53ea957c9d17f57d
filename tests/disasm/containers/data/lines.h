__device__ __forceinline__ int twice(int a) {
  return 2 * a + 7;
}
