#include <cstdio>
#include <dlfcn.h>
#ifdef NAMES_THE_RECORD
#include <link.h>
// In code that depends on its position, a copy of the dynamic linker's own.
extern "C" void *record() { return &_r_debug; }
#endif
int main(int, char **argv) {
  for (int i = 0; i < 2; ++i) {
    void *library = dlopen(argv[1], RTLD_NOW);
    auto run = reinterpret_cast<int (*)()>(dlsym(library, "run_library"));
    printf("library %d\n", run());
    dlclose(library);
  }
}
