// Modules, libraries and kernels.  A module's manifest is read at the first look-up, its variables are
// allocated at the first need, and each kernel is translated at its first use.
#pragma once
#include "driver.h"
#include "image.h"
#include "json.h"
#include "manifest.h"

#include <atomic>
#include <unordered_map>

namespace sx {

class Module;

// A kernel on one device: the code object as HIP has it.
struct LoadedKernel {
  bool tried = false;
  unsigned generation = 0;  // the device's when it was loaded
  CUresult result = CUDA_SUCCESS;
  hipModule_t module = nullptr;
  hipFunction_t function = nullptr;
  unsigned code = 0;  // the number of the kernel's code that it is
};

// CUfunction and CUkernel are both a pointer to this.
struct Kernel {
  Module *owner = nullptr;
  const KernelInfo *info = nullptr;

  // Translates and loads it on the device, once; a refusal is reported once on stderr and in the report.
  CUresult load(Device &device, hipFunction_t &function);
  // The result of a launch.  Only then does the emulated device compile the code object: if it cannot, that is a
  // refusal like any other, and is reported as one.
  CUresult launched(CUresult result);
  // A launch that an NVIDIA GPU takes and that is not done: a refusal, said once of a kernel.
  CUresult refuse_launch(CUresult error, const std::string &code, const std::string &why);
  // At the first launch: what its results may differ by from an NVIDIA GPU's, on stderr and in the report.
  void say_what_differs();

  LaunchInfo launch;       // valid once load() has succeeded
  int max_dynamic_shared;  // as set by the application
  int carveout = -1;

  explicit Kernel(Module *module, const KernelInfo *kernel);
  CUfunction function_handle() { return reinterpret_cast<CUfunction>(this); }
  CUkernel kernel_handle() { return reinterpret_cast<CUkernel>(this); }

 private:
  CUresult translate();
  CUresult fetch();
  CUresult refuse(CUresult error, const std::string &line);
  bool read_cached(const std::string &stem);
  bool read_refusal(const std::string &text);
  CUresult read_carried_translation();
  // Has another engine's code made, once the kernel is launched again after a while, and takes it when it is there.
  void look_for_better();
  void take_better(Device &device, LoadedKernel &loaded);

  std::mutex mutex_;
  std::atomic<bool> refused_at_launch_{false};
  std::atomic<bool> launch_refused_{false};
  std::atomic<bool> difference_said_{false};
  bool translated_ = false;
  CUresult translation_ = CUDA_SUCCESS;
  std::string code_;  // the code object
  std::string stem_;  // of its files in the cache
  std::vector<LoadedKernel> loaded_;
  unsigned number_ = 0;  // of the code: how many there were before
  enum class Better { None, Wanted, Asked } better_ = Better::None;
  double next_look_ = 0;  // milliseconds
  // Code that launches may still run, by device.
  std::vector<std::pair<size_t, LoadedKernel>> before_;

  friend class Module;
};

// CUmodule and CUlibrary are both a pointer to this.
class Module {
 public:
  // Copies the image unless it remains at its address.
  // `jit`: the compiler's options, for PTX.
  Module(const ImageView &image, bool stays, std::string jit = "");
  ~Module();

  // Reads or requests the manifest, once; returns its own error, or the image's.
  CUresult manifest(const Manifest *&out);
  CUresult kernel(const std::string &name, Kernel *&out);
  CUresult kernel_at(size_t index, Kernel *&out);
  // The device address and size of a variable, which has to be a managed one if `managed`; allocates and initialises
  // all of the module's.
  CUresult global(Device &device, const std::string &name, bool managed, CUdeviceptr &address, size_t &size);
  // The address of a constant bank (".nv.constant3"), or of a section by number; 0 if there is none.
  CUresult bank(Device &device, const char *section, uint64_t &address);
  CUresult section(Device &device, int number, uint64_t &address);
  // Before a kernel that calls malloc or free runs: gives the module the addresses of the heap.
  CUresult give_heap(Device &device);

  // Gives the service the image (again: its cubin may have been evicted meanwhile).
  CUresult ask_service(Manifest &manifest, std::string &directory);
  // What the compiler printed, of PTX: all is well, or the error.
  const std::string &log() const { return log_; }
  const std::string &key() const { return key_; }
  bool is_carried() const { return carried_; }
  // Where the image came from: a file and the image's address in it, or its size.
  const std::string &place() const { return place_; }
  // Tells the run's report, once, which file the module is a part of and what device its code is for.
  void report_place();
  int arch() const { return manifest_.arch; }
  // Bytes of the __constant__ variables, which all of its kernels see.
  uint64_t constants() const {
    for (const SectionInfo &section : manifest_.sections)
      if (section.name == ".nv.constant3") return section.size;
    return 0;
  }

  CUmodule module_handle() { return reinterpret_cast<CUmodule>(this); }
  CUlibrary library_handle() { return reinterpret_cast<CUlibrary>(this); }

 private:
  struct Storage {
    bool tried = false;
    unsigned generation = 0;  // the device's when it was allocated
    CUresult result = CUDA_SUCCESS;
    void *memory = nullptr;
    std::vector<uint64_t> addresses;  // by section
    // Where the addresses of malloc and free go, until they are known.
    std::vector<std::pair<uint64_t, std::string>> heap_words;
  };

  CUresult read_manifest();
  // The key of the image on a device of a capability.
  std::string key_for(int capability) const;
  // The manifest that the program or a library carries (carried.h).
  bool read_carried_manifest();
  bool read_kept(const std::string &cache, const std::string &tag);
  CUresult storage(Device &device, Storage *&out);
  CUresult allocate(Device &device, Storage &storage);
  bool section_bytes(const SectionInfo &section, std::string &bytes);

  std::vector<uint8_t> copy_;
  std::string place_;
  std::atomic<bool> place_reported_{false};
  ImageView image_;
  std::string jit_;
  std::string log_;
  std::string key_;
  std::string directory_;  // of the manifest and the section images
  bool carried_ = false;   // all of them, and the kernels, are in what the program carries
  Manifest manifest_;
  bool manifest_read_ = false;
  CUresult manifest_result_ = CUDA_SUCCESS;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::unordered_map<std::string, size_t> by_name_;
  std::vector<Storage> storage_;  // by device
  std::mutex mutex_;
};

// The objects of handles from the application; null for handles that are not ours.
Kernel *find_kernel(const void *handle);

// The threads of the largest block that an NVIDIA GPU takes: as many as the kernel declares, and as there are registers
// for.
int threads_on_nvidia(const KernelInfo &info);
Module *find_module(const void *handle);

// Milliseconds since its construction.
class Stopwatch {
 public:
  Stopwatch();
  double milliseconds() const;
  static double now();  // of the monotonic clock

 private:
  double start_;
};

// Of code that a program with its own translation lacks: made while it runs, or of a library that was not embedded.
constexpr char kNotCarried[] = "SX0790: it is not in the translation that the program carries; `sassxlate run` translates it";

// Bytes of the largest text and image that are read from the cache.
constexpr size_t kTextLimit = 64u << 20;
constexpr size_t kImageLimit = 1u << 30;

// Reports that something of the application was refused: a line on stderr, one in the report.
void say_refused(const std::string &kernel, CUresult error, const std::string &line);

// Sends the service a request: an answer that grants it, otherwise the error, with its line in `line`.
CUresult ask_translator(const std::string &request, json::Value &body, std::string &line);

// Reports that an image was refused: a line with its place on stderr, and one in the report.
void refuse_image(CUresult error, const std::string &line, const std::string &place);

// The directory of the cache and the tag in it; false with a line on stderr where there is no service.
bool cache_place(std::string &directory, std::string &tag);

}  // namespace sx
