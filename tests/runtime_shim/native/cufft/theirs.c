/* Stands in for NVIDIA's libcufft.so.12, which refuses our driver: every plan is CUFFT_INTERNAL_ERROR. */
int cufftPlan1d(int *plan, int nx, int type, int batch) {
  (void)plan, (void)nx, (void)type, (void)batch;
  return 5;
}
int cufftGetVersion(int *version) {
  *version = 1;
  return 0;
}
int cufftOfTomorrow(int value) { return value + 100; }
int helper(int value) { return value + 1; }
