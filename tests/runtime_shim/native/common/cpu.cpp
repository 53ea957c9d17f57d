// Prints what host_cpu.h says: of this processor without arguments, else of the words given in hexadecimal.
#include "host_cpu.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>

int main(int count, char **args) {
  sx::CpuWords words = sx::cpu_words();
  if (count == 5) {
    auto word = [&](int i) { return strtoull(args[i], nullptr, 16); };
    words = {static_cast<uint32_t>(word(1)), static_cast<uint32_t>(word(2)), static_cast<uint32_t>(word(3)), word(4)};
  }
  printf("%d %d\n", sx::runs_avx2(words), sx::runs_avx512(words));
  printf("%" PRIx32 " %" PRIx32 " %" PRIx32 " %" PRIx64 "\n", words.leaf1_ecx, words.leaf7_ebx, words.extended1_ecx, words.xcr0);
}
