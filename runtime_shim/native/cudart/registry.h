// The fat binaries, kernels and variables that the program's constructors register.
//
// Registration only records the modules.  A module is passed to the driver at the first call that
// needs something of it, and each kernel and variable is looked up at its own first use.
#pragma once
#include "runtime_abi.h"

namespace sx {

struct Module;

struct Function {
  Module *module;
  const void *stub;   // host function that stands for the kernel
  const char *name;   // mangled
  CUkernel kernel;    // null until its first use
};

struct Variable {
  Module *module;
  const void *shadow;    // host variable that stands for the device's
  void **managed;        // where a managed variable's address is kept; null for others
  const char *name;
  size_t size;           // bytes on the host's side
};

void **register_module(void *wrapper);
void end_registration(void **handle);
void unregister_module(void **handle);
void register_function(void **handle, const void *stub, const char *name);
void register_variable(void **handle, const void *shadow, void **managed, const char *name, size_t size);

// Loads the module's managed variables and writes their addresses where the program reads them.
int initialise_managed(void **handle);

// The kernel that `function` stands for: a host stub, what __cudaGetKernel gave for one, or a kernel
// handle of the driver's that kernel_of or adopt_kernel has seen.  98 or 400 if it is none of these; 209,
// 801 and the like where the driver cannot load it.
int kernel_of(const void *function, CUkernel *kernel);

// The handle that __cudaGetKernel gives out for a stub, without loading anything; null if unknown.
const void *handle_of(const void *stub);

// Makes a kernel handle that came from the driver (cudaLibraryGetKernel) acceptable to kernel_of.
void adopt_kernel(CUkernel kernel, const char *name);

// The host stub that stands for a kernel of the driver's; the handle itself where there is none.
void *stub_of(CUkernel kernel);

// The kernel's mangled name; null if unknown.
const char *name_of(const void *function);

// The device's address of a variable and its size in bytes: 13 if `symbol` is none.
int address_of(const void *symbol, CUdeviceptr *address, size_t *size);

}  // namespace sx
