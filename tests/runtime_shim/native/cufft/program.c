/* A program that loads a cuFFT by its path (dlopen) or is linked with one, as libraries of Python packages are. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#ifdef LINKED
int cufftPlan1d(int *, int, int, int);
int cufftGetVersion(int *);
#endif

int main(int count, char **arguments) {
  int plan = -7, version = 0;
  if (count > 1) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library) return puts(dlerror()), 1;
    int (*make)(int *, int, int, int), (*ask)(int *), (*helper)(int), (*tomorrow)(int);
    *(void **)&make = dlsym(library, "cufftPlan1d");
    *(void **)&ask = dlsym(library, "cufftGetVersion");
    *(void **)&helper = dlsym(library, "helper");
    *(void **)&tomorrow = dlsym(library, "cufftOfTomorrow");
    printf("plan %d", make(&plan, 8, 0x29, 1));
    printf(" version %d", ask(&version));
    printf(" %d helper %d\n", version, helper ? helper(1) : -1);
    if (count > 2) printf("tomorrow %d\n", tomorrow(1));
  } else {
#ifdef LINKED
    printf("plan %d", cufftPlan1d(&plan, 8, 0x29, 1));
    printf(" version %d", cufftGetVersion(&version));
    printf(" %d\n", version);
#endif
  }
  return 0;
}
