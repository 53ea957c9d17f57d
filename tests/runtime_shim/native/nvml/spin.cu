// Runs for some rounds, or until the host writes to `flag`.
extern "C" __global__ void spin(volatile unsigned *flag, unsigned rounds) {
  for (unsigned i = 0; rounds == 0 || i < rounds; ++i)
    if (*flag) break;
}
