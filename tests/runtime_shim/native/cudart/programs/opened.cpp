#include <cstdio>
#include <dlfcn.h>
int main(int, char **argv) {
  for (int i = 0; i < 2; ++i) {
    void *library = dlopen(argv[1], RTLD_NOW);
    auto run = reinterpret_cast<int (*)()>(dlsym(library, "run_library"));
    printf("library %d\n", run());
    dlclose(library);
  }
}
