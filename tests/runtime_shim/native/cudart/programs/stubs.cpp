// Functions of the runtime's names that pass each call to a shared runtime, as XLA's libraries have them.
#include <dlfcn.h>

// With the two names by which releases are told apart.
#define STUBS(F)                                                                                            \
  F(__cudaRegisterFatBinary) F(__cudaRegisterFatBinaryEnd) F(__cudaUnregisterFatBinary)                     \
  F(__cudaRegisterFunction) F(__cudaRegisterVar) F(__cudaInitModule) F(__cudaPushCallConfiguration)         \
  F(__cudaPopCallConfiguration) F(__cudaLaunchKernel) F(__cudaGetKernel) F(cudaLaunchKernel) F(cudaMalloc)  \
  F(cudaGetLastError) F(cudaPeekAtLastError) F(cudaGetDeviceProperties_v2) F(cudaLogsCurrent)

#define STUB(name)                                                               \
  extern "C" __attribute__((visibility("hidden"))) void *real_##name = nullptr;  \
  extern "C" __attribute__((naked, visibility("hidden"), used)) void name() { asm("jmp *real_" #name "(%rip)"); }
STUBS(STUB)

__attribute__((constructor(101))) static void load() {
  void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
#define LOAD(name) real_##name = runtime ? dlsym(runtime, #name) : nullptr;
  STUBS(LOAD)
}
