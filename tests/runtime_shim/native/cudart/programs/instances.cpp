// Two libraries with a runtime each: the last error of one is not the other's.
#include <cstdio>
#include <dlfcn.h>

int main(int, char **argv) {
  using Call = int (*)();
  Call fail[2], last[2];
  for (int i = 0; i < 2; ++i) {
    void *library = dlopen(argv[1 + i], RTLD_NOW);
    fail[i] = reinterpret_cast<Call>(dlsym(library, "fail_library"));
    last[i] = reinterpret_cast<Call>(dlsym(library, "last_error_of_library"));
  }
  std::printf("%d\n", fail[0]());
  std::printf("%d %d\n", last[0](), last[1]());
}
