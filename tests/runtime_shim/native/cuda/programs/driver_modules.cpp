// Loading, launching and unloading over and over: nothing of a module stays behind.
#include "driver.h"

#include <unistd.h>

static long mappings() {
  FILE *maps = fopen("/proc/self/maps", "r");
  EXPECT(maps);
  long lines = 0;
  for (int c = fgetc(maps); c != EOF; c = fgetc(maps)) lines += c == '\n';
  fclose(maps);
  return lines;
}

static long resident_kib() {
  long size = 0, resident = 0;
  FILE *statm = fopen("/proc/self/statm", "r");
  EXPECT(statm && fscanf(statm, "%ld %ld", &size, &resident) == 2);
  fclose(statm);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

// One round: a module, or a library; its variable, two kernels, results checked.
static void round_of(int round) {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  if (round % 2) {
    OK(cuModuleLoadData(&module, image.data()));
  } else {
    OK(cuLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    OK(cuLibraryGetModule(&module, library));
  }
  CUfunction variables, reversed;
  OK(cuModuleGetFunction(&variables, module, "variables"));
  OK(cuModuleGetFunction(&reversed, module, "reversed"));
  CUdeviceptr counter, out;
  size_t size = 0;
  OK(cuModuleGetGlobal(&counter, &size, module, "counter"));
  EXPECT(size == 4);
  int value = round;
  OK(cuMemcpyHtoD(counter, &value, 4));
  OK(cuMemAlloc(&out, 256));
  int which = 0;
  void *params[] = {&which, &out}, *data[] = {&out};
  OK(cuLaunchKernel(variables, 1, 1, 1, 4, 1, 1, 0, nullptr, params, nullptr));
  if (round % 3) {
    int got[2] = {};
    OK(cuMemcpyDtoH(got, out, 8));
    EXPECT(got[0] > round && got[0] <= round + 12 && got[1] == 3);
  }
  // Not waited for: unloading does.
  OK(cuLaunchKernel(reversed, 1, 1, 1, 64, 1, 1, 256, nullptr, data, nullptr));
  if (round % 2) OK(cuModuleUnload(module));
  else OK(cuLibraryUnload(library));
  OK(cuMemFree(out));
}

void modules() {
  start();
  const char *text = getenv("MODULE_ROUNDS");
  const int rounds = text ? atoi(text) : 2000;
  long lines = 0, kib = 0;
  for (int round = 0; round < rounds; ++round) {
    round_of(round);
    if (round == rounds / 4) lines = mappings(), kib = resident_kib();
  }
  printf("rounds %d mappings %ld grown %ld KiB\n", rounds, mappings() - lines, resident_kib() - kib);
}
