// Loaded code objects and their kernels.
#pragma once
#include "abi.h"
#include "code_object.h"
#include "counts.h"
#include "hip.h"
#include "stencils.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sx {

struct Module;

// Host code of one kernel, mapped for execution as long as its module is loaded: a launch keeps the module.
struct HostImage {
  SxEntry entry = nullptr;
  Counts counts;  // where it counts
  int error = 0;  // HIP error where there is no code; 0 with no entry: not asked for yet
  void *code = nullptr;
  size_t code_size = 0;  // bytes mapped at `code`
  bool stencils = false;      // of the baseline tier
  bool quick = false;         // compiled without optimisation
  bool runs = false;          // one call runs the waves of a workgroup that follow
  bool partial = false;       // waves that come to a block that it lacks go on in the baseline's code
  uint32_t instructions = 0;  // of the kernel, where the baseline tier has counted them
  ResumableKernel resumable;  // of the baseline tier, for kernels that note which blocks have been entered

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
  std::mutex mutex;  // of the images
  HostImage image;    // what the compiler made, or what is known of why it did not
  HostImage baseline;
  // The code that a wave which begins now runs: the baseline's until the compiler's is there.
  std::atomic<SxEntry> entry{nullptr};
  // Whether that code runs the waves that follow; set after it, and never cleared.
  std::atomic<bool> runs{false};
  std::atomic<uint64_t> executed{0};  // instructions, by the baseline's code
  std::atomic<uint64_t> hot{0};       // from how many on the compiler is asked; 0: never (again)
  std::atomic<uint64_t> warm{0};      // from how many on the cache is told; 0: never (again)
  std::string warmth;                 // the file that the cache is told in
  // Of the baseline's blocks, not 0 for those that have been entered, where nothing else counts that; none of small kernels.
  std::unique_ptr<uint8_t[]> marks;
  std::atomic<bool> partial{false};                // whether `image`, which may be read under the mutex alone, is partial
  unsigned partial_versions = 0;                   // that the compiler has made; the improving thread's
  std::vector<std::unique_ptr<HostImage>> former;  // images that waves may still run
};

struct Module {
  std::unique_ptr<CodeObject> code;
  uint64_t load_base = 0;  // where virtual address 0 of the code object is in the arena
  uint64_t load_size = 0;
  std::map<std::string, Function> functions;
};

// The module and function of a handle; nullptr if it is not valid (any more).
std::shared_ptr<Module> find_module(hipModule_t handle);
std::shared_ptr<Module> find_function(hipFunction_t handle, Function *&function);
void modules_reset();

// Makes the kernel's host code ready: 0, or a HIP error (reported once on standard error).
int function_image(Function &function, Counts &counts);

}  // namespace sx
