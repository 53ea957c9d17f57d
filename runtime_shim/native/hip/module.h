// Loaded code objects and their kernels.
#pragma once
#include "abi.h"
#include "code_object.h"
#include "counts.h"
#include "hip.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace sx {

struct Module;

// Host code of one kernel, mapped for execution as long as its module is loaded: a launch keeps the module.
struct HostImage {
  SxEntry entry = nullptr;
  Counts counts;  // where it counts
  int error = 0;  // HIP error where there is no code; 0 with no entry: not asked for yet
  void *code = nullptr;
  size_t code_size = 0;  // bytes mapped at `code`

  HostImage() = default;
  HostImage(const HostImage &) = delete;
  HostImage &operator=(const HostImage &) = delete;
  ~HostImage();
};

struct Function {
  Module *module = nullptr;
  const KernelInfo *info = nullptr;
  int max_dynamic_shared = 0;
  int carveout = -1;
  std::mutex mutex;  // of `image`
  HostImage image;
};

struct Module {
  std::unique_ptr<CodeObject> code;
  uint64_t load_base = 0;  // where virtual address 0 of the code object is in the arena
  uint64_t load_size = 0;
  std::map<std::string, Function> functions;

  ~Module();
};

// The module and function of a handle; nullptr if it is not valid (any more).
std::shared_ptr<Module> find_module(hipModule_t handle);
std::shared_ptr<Module> find_function(hipFunction_t handle, Function *&function);
void modules_reset();

// Makes the kernel's host code ready: 0, or a HIP error (reported once on standard error).
int function_image(Function &function, SxEntry &entry, Counts &counts);

}  // namespace sx
