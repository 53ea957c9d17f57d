#include "module.h"

#include "hostcall.h"

#include "blake2b.h"
#include "files.h"
#include "handles.h"
#include "log.h"
#include "service.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr size_t kTextLimit = 64u << 20;
constexpr size_t kImageLimit = 1u << 30;
constexpr size_t kSectionAlignment = 256;
// What stands in a word that we have no address for: no user address has these high bits.
constexpr uint64_t kPoison = 0xdead000000000000ull;
constexpr time_t kTouchAfterSeconds = 3600;

// Reads a file of the cache and marks it as used, so that eviction takes others first.
bool read_used(const std::string &path, std::string &out, size_t limit) {
  if (!read_file(path, out, limit)) return false;
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && time(nullptr) - st.st_mtime > kTouchAfterSeconds)
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return true;
}

std::string directory_of(const std::string &path) { return path.substr(0, path.rfind('/')); }

// Says that something of the application was refused: a line on stderr, one in the report.
void say_refused(const std::string &kernel, CUresult error, const std::string &line) {
  log_line("%s (CUDA error %d)", line.c_str(), error);
  report({"refused", line.substr(0, line.find(':')), std::to_string(error), kernel, line});
}

// The program or library that an image is a part of, and how far from its start.
std::string place_of(const ImageView &image) {
  Dl_info info = {};
  if (!image.data || !dladdr(image.data, &info) || !info.dli_fname || !*info.dli_fname)
    return "a module of " + std::to_string(image.size) + " bytes";
  const char *slash = strrchr(info.dli_fname, '/');
  char offset[32];
  snprintf(offset, sizeof offset, "+%#zx",
           static_cast<size_t>(image.data - static_cast<const uint8_t *>(info.dli_fbase)));
  return (slash ? slash + 1 : info.dli_fname) + std::string(offset);
}

// A line with the place behind its code.
std::string at_place(const std::string &place, const std::string &line) {
  size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(0, colon + 2) + place + line.substr(colon);
}

// An answer that grants the request; else the error, with its line in `line`.
CUresult ask(const std::string &request, json::Value &body, std::string &line) {
  ServiceReply reply = service_call(request);
  // A service of an older version says so and ends; the next call starts a fresh one.
  if (reply.answered && reply.body["restart"].truthy()) reply = service_call(request);
  body = reply.body;
  if (!reply.answered) {
    line = "SX0902: no translation service: " + reply.error;
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  if (body["ok"].truthy()) return CUDA_SUCCESS;
  line = body["line"].text("SX0903: the service refuses without a reason");
  return static_cast<CUresult>(body["cuda_error"].whole(CUDA_ERROR_UNKNOWN));
}

}  // namespace

bool cache_place(std::string &directory, std::string &tag) {
  std::string error;
  tag = cache_tag(error);
  directory = cache_dir();
  if (!tag.empty()) return true;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) say_refused("*", CUDA_ERROR_OPERATING_SYSTEM, "SX0902: no translation service: " + error);
  return false;
}

Kernel *find_kernel(const void *handle) { return Handles<Kernel>::all().find(handle); }
Module *find_module(const void *handle) { return Handles<Module>::all().find(handle); }

Module::Module(const ImageView &image, bool stays) : place_(place_of(image)), image_(image), storage_(driver().devices.size()) {
  if (!stays) {
    copy_.assign(image.data, image.data + image.size);
    image_.data = copy_.data();
  }
  Handles<Module>::all().add(this);
}

Module::~Module() {
  for (auto &kernel : kernels_) {
    if (!kernel) continue;
    Handles<Kernel>::all().remove(kernel.get());
    for (size_t i = 0; i < kernel->loaded_.size(); ++i)
      if (kernel->loaded_[i].module && kernel->loaded_[i].generation == driver().devices[i]->generation)
        hip().hipModuleUnload(kernel->loaded_[i].module);
  }
  for (size_t i = 0; i < storage_.size(); ++i)
    if (storage_[i].memory && storage_[i].generation == driver().devices[i]->generation)
      hip().hipFree(storage_[i].memory);
}

CUresult Module::ask_service(Manifest &manifest, std::string &directory) {
  std::string file = write_temporary("image", image_.data, image_.size);
  if (file.empty()) {
    say_refused("*", CUDA_ERROR_OPERATING_SYSTEM, at_place(place_, "SX0907: no temporary file can be written"));
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  json::Value body;
  std::string line;
  CUresult result = ask("{\"op\":\"module\",\"image\":" + json::quote(file) +
                            ",\"cc\":" + std::to_string(capability()) + "}",
                        body, line);
  unlink(file.c_str());
  if (result != CUDA_SUCCESS) {
    say_refused("*", result, at_place(place_, line));
    return result;
  }
  std::string path = body["manifest"].text(), text;
  if (!read_file(path, text, kTextLimit) || !parse_manifest(text, manifest)) {
    say_refused("*", CUDA_ERROR_UNKNOWN, at_place(place_, "SX0903: the manifest " + path + " cannot be read"));
    return CUDA_ERROR_UNKNOWN;
  }
  directory = directory_of(path);
  return CUDA_SUCCESS;
}

CUresult Module::read_manifest() {
  if (image_.kind == ImageKind::Unreadable || image_.kind == ImageKind::Unknown) {
    say_refused("*", CUDA_ERROR_INVALID_IMAGE, at_place(place_, "SX0709: the image is damaged"));
    return CUDA_ERROR_INVALID_IMAGE;
  }
  Blake2b hash(16);
  std::string capability_text = std::to_string(capability());
  hash.update(image_.data, image_.size);
  hash.update("\0", 1);
  hash.update(capability_text);
  key_ = hash.hex();
  std::string cache, tag, text;
  if (!cache_place(cache, tag)) return CUDA_ERROR_OPERATING_SYSTEM;
  directory_ = cache + "/module/" + tag;
  if (!read_used(directory_ + "/" + key_ + ".txt", text, kTextLimit) || !parse_manifest(text, manifest_)) {
    CUresult result = ask_service(manifest_, directory_);
    if (result != CUDA_SUCCESS) return result;
  }
  if (manifest_.error) {
    say_refused("*", manifest_.error, at_place(place_, manifest_.reason));
    return manifest_.error;
  }
  kernels_.resize(manifest_.kernels.size());
  for (size_t i = 0; i < manifest_.kernels.size(); ++i) by_name_.emplace(manifest_.kernels[i].name, i);
  return CUDA_SUCCESS;
}

CUresult Module::manifest(const Manifest *&out) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!manifest_read_) {
    manifest_result_ = read_manifest();
    manifest_read_ = true;
  }
  out = &manifest_;
  return manifest_result_;
}

CUresult Module::kernel_at(size_t index, Kernel *&out) {
  std::lock_guard<std::mutex> guard(mutex_);
  if (!kernels_[index]) {
    kernels_[index] = std::make_unique<Kernel>(this, &manifest_.kernels[index]);
    Handles<Kernel>::all().add(kernels_[index].get());
  }
  out = kernels_[index].get();
  return CUDA_SUCCESS;
}

CUresult Module::kernel(const std::string &name, Kernel *&out) {
  const Manifest *known;
  CUresult result = manifest(known);
  if (result != CUDA_SUCCESS) return result;
  auto found = by_name_.find(name);
  return found == by_name_.end() ? CUDA_ERROR_NOT_FOUND : kernel_at(found->second, out);
}

bool Module::section_bytes(const SectionInfo &section, std::string &bytes) {
  bytes.assign(section.size, '\0');
  if (section.file.empty()) return true;
  std::string data;
  if (!read_used(directory_ + "/" + section.file, data, kImageLimit)) {
    // Evicted while we ran: the service can make it again.
    Manifest same;
    if (ask_service(same, directory_) != CUDA_SUCCESS || !read_file(directory_ + "/" + section.file, data, kImageLimit)) return false;
  }
  memcpy(bytes.data(), data.data(), std::min(data.size(), bytes.size()));
  return true;
}

CUresult Module::allocate(Device &device, Storage &storage) {
  const std::vector<SectionInfo> sections = manifest_.sections;
  std::vector<uint64_t> offsets;
  uint64_t total = 0;
  for (const SectionInfo &section : sections) {
    offsets.push_back(total);
    if (section.size > kImageLimit) return CUDA_ERROR_INVALID_IMAGE;
    total += (section.size + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
  }
  if (!total) {
    storage.addresses.assign(sections.size(), 0);
    return CUDA_SUCCESS;
  }
  void *memory = nullptr;
  CUresult result = from_hip(hip().hipMalloc(&memory, total));
  if (result != CUDA_SUCCESS) return result;
  storage.memory = memory;
  uint64_t base = reinterpret_cast<uint64_t>(memory);
  std::string image(total, '\0'), bytes;
  for (size_t i = 0; i < sections.size(); ++i) {
    storage.addresses.push_back(base + offsets[i]);
    if (!section_bytes(sections[i], bytes)) return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(image.data() + offsets[i], bytes.data(), bytes.size());
  }
  for (const RelocInfo &reloc : manifest_.relocs) {
    uint64_t value = kPoison;
    if (reloc.kind != RelocInfo::Kind::Unresolved) value = storage.addresses[reloc.target] + reloc.addend;
    else if (reloc.size == 8) value = host_function(device, reloc.name, kPoison);
    // parse_manifest has checked that the place lies inside its section.
    memcpy(image.data() + offsets[reloc.section] + reloc.offset, &value, reloc.size);
  }
  return from_hip(hip().hipMemcpy(memory, image.data(), total, hipMemcpyHostToDevice));
}

CUresult Module::storage(Device &device, Storage *&out) {
  const Manifest *known;
  CUresult result = manifest(known);
  if (result != CUDA_SUCCESS) return result;
  std::lock_guard<std::mutex> guard(mutex_);
  Storage &storage = storage_[static_cast<size_t>(device.ordinal)];
  // After a reset the module's variables begin anew.
  if (storage.generation != device.generation) storage = Storage();
  if (!storage.tried) {
    storage.generation = device.generation;
    storage.result = allocate(device, storage);
    storage.tried = true;
  }
  out = &storage;
  return storage.result;
}

CUresult Module::global(Device &device, const std::string &name, CUdeviceptr &address, size_t &size) {
  const Manifest *known;
  CUresult result = manifest(known);
  if (result != CUDA_SUCCESS) return result;
  for (const GlobalInfo &item : known->globals) {
    if (item.name != name) continue;
    Storage *place;
    result = storage(device, place);
    if (result != CUDA_SUCCESS) return result;
    address = place->addresses[item.section] + item.offset;
    size = item.size;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult Module::section(Device &device, int number, uint64_t &address) {
  address = 0;
  Storage *place;
  CUresult result = storage(device, place);
  if (result == CUDA_SUCCESS && number >= 0) address = place->addresses[static_cast<size_t>(number)];
  return result;
}

CUresult Module::bank(Device &device, const char *name, uint64_t &address) {
  for (size_t i = 0; i < manifest_.sections.size(); ++i)
    if (manifest_.sections[i].name == name) return section(device, static_cast<int>(i), address);
  address = 0;
  return CUDA_SUCCESS;
}

Kernel::Kernel(Module *module, const KernelInfo *kernel)
    : owner(module),
      info(kernel),
      max_dynamic_shared(std::max(0, 49152 - kernel->shared)),
      loaded_(driver().devices.size()) {}

CUresult Kernel::refuse(CUresult error, const std::string &line) {
  say_refused(info->name, error, line);
  return error;
}

CUresult Kernel::launched(CUresult result) {
  switch (result) {
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_UNKNOWN:
    case CUDA_ERROR_OPERATING_SYSTEM:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      if (!refused_at_launch_.exchange(true))
        refuse(result, "SX0716: " + info->name + ": the device does not take its code object");
      return result;
    default: return result;
  }
}

bool Kernel::read_cached(const std::string &stem) {
  std::string text, error;
  if (!read_used(stem + ".launch", text, kTextLimit) || !parse_launch(text, launch, error)) return false;
  return read_used(stem + ".hsaco", code_, kImageLimit) && code_.compare(0, 4, "\x7f" "ELF") == 0;
}

// "cuda_error N", "code SX....", "line TEXT".
bool Kernel::read_refusal(const std::string &text) {
  int error = 0;
  size_t line = text.find("\nline ");
  if (sscanf(text.c_str(), "cuda_error %d\n", &error) != 1 || error <= 0 || line == std::string::npos ||
      text.back() != '\n')
    return false;
  line += 6;
  translation_ = refuse(error, text.substr(line, text.find('\n', line) - line));
  return true;
}

CUresult Kernel::fetch() {
  json::Value body;
  std::string line;
  std::string request = "{\"op\":\"translate\",\"module\":" + json::quote(owner->key()) +
                        ",\"kernel\":" + json::quote(info->name) + "}";
  CUresult result = ask(request, body, line);
  if (result != CUDA_SUCCESS && body["code"].text() == "SX0906") {
    Manifest same;
    std::string directory;
    result = owner->ask_service(same, directory);
    if (result != CUDA_SUCCESS) return result;
    result = ask(request, body, line);
  }
  if (result != CUDA_SUCCESS) return refuse(result, line);
  std::string text, error;
  if (!read_file(body["launch"].text(), text, kTextLimit) || !parse_launch(text, launch, error))
    return refuse(CUDA_ERROR_UNKNOWN, "SX0715: " + info->name + ": its launch information cannot be read: " + error);
  if (!read_file(body["code_object"].text(), code_, kImageLimit))
    return refuse(CUDA_ERROR_UNKNOWN, "SX0715: " + info->name + ": its code object cannot be read");
  return CUDA_SUCCESS;
}

CUresult Kernel::translate() {
  std::string cache, tag, text;
  if (!cache_place(cache, tag)) return CUDA_ERROR_OPERATING_SYSTEM;
  std::string stem = cache + "/kernel/" + tag + "/" + owner->key() + "-" + info->key;
  if (read_cached(stem)) return CUDA_SUCCESS;
  if (read_used(stem + ".refused", text, kTextLimit) && read_refusal(text)) return translation_;
  return fetch();
}

CUresult Kernel::load(Device &device, hipFunction_t &function) {
  std::lock_guard<std::mutex> guard(mutex_);
  LoadedKernel &loaded = loaded_[static_cast<size_t>(device.ordinal)];
  if (loaded.generation != device.generation) loaded = LoadedKernel();
  if (!loaded.tried) {
    loaded.generation = device.generation;
    if (!translated_) {
      translation_ = translate();
      translated_ = true;
      if (translation_ == CUDA_SUCCESS) report({"kernel", owner->key(), info->key, info->name});
    }
    loaded.result = translation_;
    if (loaded.result == CUDA_SUCCESS) {
      loaded.result = from_hip(hip().hipModuleLoadData(&loaded.module, code_.data()));
      if (loaded.result == CUDA_SUCCESS)
        loaded.result = from_hip(hip().hipModuleGetFunction(&loaded.function, loaded.module, info->name.c_str()));
      if (loaded.result != CUDA_SUCCESS)
        refuse(loaded.result, "SX0716: " + info->name + ": the device does not take its code object");
    }
    loaded.tried = true;
  }
  function = loaded.function;
  return loaded.result;
}

}  // namespace sx

using namespace sx;

namespace {

// Loads an image; `stays`: the application keeps it until the module is unloaded.
CUresult load_image(const void *data, bool stays, Module *&out) {
  if (!data) return CUDA_ERROR_INVALID_VALUE;
  ImageView image = view_image(data);
  // What a program was linked with is judged at its first use; a module given by hand is, here.
  if (!image.registered && (image.kind == ImageKind::Unknown || image.kind == ImageKind::Unreadable))
    return CUDA_ERROR_INVALID_IMAGE;
  out = new Module(image, stays || image.registered);
  return CUDA_SUCCESS;
}

CUresult load_file(const char *path, Module *&out) {
  std::string data;
  if (!path) return CUDA_ERROR_INVALID_VALUE;
  if (access(path, R_OK) != 0) return CUDA_ERROR_FILE_NOT_FOUND;
  if (!read_file(path, data, kImageLimit)) return CUDA_ERROR_INVALID_IMAGE;
  return load_image(data.c_str(), false, out);
}

CUresult unload(const void *handle) {
  Module *module = find_module(handle);
  if (!module || !Handles<Module>::all().remove(module)) return CUDA_ERROR_INVALID_HANDLE;
  // Kernels under way still use it.
  hip().hipDeviceSynchronize();
  delete module;
  return CUDA_SUCCESS;
}

CUresult get_kernel(const void *handle, const char *name, Kernel *&out) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  return module->kernel(name, out);
}

CUresult get_global(CUdeviceptr *address, size_t *size, const void *handle, const char *name) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!name || (!address && !size)) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr found = 0;
  size_t bytes = 0;
  CUresult result = module->global(current_device(), name, found, bytes);
  if (result != CUDA_SUCCESS) return result;
  if (address) *address = found;
  if (size) *size = bytes;
  return CUDA_SUCCESS;
}

CUresult kernel_count(const void *handle, unsigned *count) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  const Manifest *manifest;
  CUresult result = module->manifest(manifest);
  if (result == CUDA_SUCCESS) *count = static_cast<unsigned>(manifest->kernels.size());
  return result;
}

template <typename Handle>
CUresult enumerate(Handle *out, unsigned limit, const void *handle) {
  Module *module = find_module(handle);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  const Manifest *manifest;
  CUresult result = module->manifest(manifest);
  if (result != CUDA_SUCCESS) return result;
  for (size_t i = 0; i < manifest->kernels.size() && i < limit; ++i) {
    Kernel *kernel;
    module->kernel_at(i, kernel);
    out[i] = reinterpret_cast<Handle>(kernel);
  }
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult name_of(const char **name, Handle handle) {
  Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = kernel->info->name.c_str();
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult param_info(Handle handle, size_t index, size_t *offset, size_t *size) {
  Kernel *kernel = find_kernel(handle);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (!offset || index >= kernel->info->params.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->info->params[index].offset;
  if (size) *size = kernel->info->params[index].size;
  return CUDA_SUCCESS;
}

// The options of cuLibraryLoadData: whether the image stays.
bool is_preserved(const int *options, void *const *values, unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    if (options && options[i] == CU_LIBRARY_BINARY_IS_PRESERVED) return !values || values[i] != nullptr;
  return false;
}

}  // namespace

SX_API cuModuleGetLoadingMode(int *mode) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!mode) return CUDA_ERROR_INVALID_VALUE;
    *mode = 2;  // CU_MODULE_LAZY_LOADING
    return CUDA_SUCCESS;
  });
}

SX_API cuModuleLoadData(CUmodule *module, const void *image) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    Module *loaded = nullptr;
    CUresult result = load_image(image, false, loaded);
    if (result == CUDA_SUCCESS) *module = loaded->module_handle();
    return result;
  });
}

SX_API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned, int *, void **) {
  return cuModuleLoadData(module, image);
}

SX_API cuModuleLoadFatBinary(CUmodule *module, const void *image) { return cuModuleLoadData(module, image); }

SX_API cuModuleLoad(CUmodule *module, const char *path) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    Module *loaded = nullptr;
    CUresult result = load_file(path, loaded);
    if (result == CUDA_SUCCESS) *module = loaded->module_handle();
    return result;
  });
}

SX_API cuModuleUnload(CUmodule module) {
  return enter<Need::Context>(__func__, [&] { return unload(module); });
}

SX_API cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    Kernel *kernel = nullptr;
    CUresult result = get_kernel(module, name, kernel);
    if (result == CUDA_SUCCESS) *function = kernel->function_handle();
    return result;
  });
}

SX_API cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) {
  return enter<Need::Context>(__func__, [&] { return get_global(address, size, module, name); });
}

SX_API cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  return enter<Need::Context>(__func__, [&] { return kernel_count(module, count); });
}

SX_API cuModuleEnumerateFunctions(CUfunction *functions, unsigned limit, CUmodule module) {
  return enter<Need::Context>(__func__, [&] { return enumerate(functions, limit, module); });
}

SX_API cuLibraryLoadData(CUlibrary *library, const void *image, int *, void **, unsigned, int *options,
                         void **values, unsigned count) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    Module *loaded = nullptr;
    CUresult result = load_image(image, is_preserved(options, values, count), loaded);
    if (result == CUDA_SUCCESS) *library = loaded->library_handle();
    return result;
  });
}

SX_API cuLibraryLoadFromFile(CUlibrary *library, const char *path, int *, void **, unsigned, int *, void **,
                             unsigned) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    Module *loaded = nullptr;
    CUresult result = load_file(path, loaded);
    if (result == CUDA_SUCCESS) *library = loaded->library_handle();
    return result;
  });
}

SX_API cuLibraryUnload(CUlibrary library) {
  return enter<Need::Init>(__func__, [&] { return unload(library); });
}

SX_API cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    Kernel *kernel = nullptr;
    CUresult result = get_kernel(library, name, kernel);
    if (result == CUDA_SUCCESS) *out = kernel->kernel_handle();
    return result;
  });
}

SX_API cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  return enter<Need::Init>(__func__, [&] { return kernel_count(library, count); });
}

SX_API cuLibraryEnumerateKernels(CUkernel *kernels, unsigned limit, CUlibrary library) {
  return enter<Need::Init>(__func__, [&] { return enumerate(kernels, limit, library); });
}

SX_API cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Module *found = find_module(library);
    if (!found) return CUDA_ERROR_INVALID_HANDLE;
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = found->module_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuLibraryGetGlobal(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
  return enter<Need::Context>(__func__, [&] { return get_global(address, size, library, name); });
}

// A managed variable is one of the module's: device memory is the host's own on the emulated device.
SX_API cuLibraryGetManaged(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!hip().emulated) return CUDA_ERROR_NOT_SUPPORTED;
    return get_global(address, size, library, name);
  });
}

SX_API cuKernelGetFunction(CUfunction *function, CUkernel handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    *function = kernel->function_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuKernelGetLibrary(CUlibrary *library, CUkernel handle) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!library) return CUDA_ERROR_INVALID_VALUE;
    *library = kernel->owner->library_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuFuncGetModule(CUmodule *module, CUfunction handle) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(handle);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (!module) return CUDA_ERROR_INVALID_VALUE;
    *module = kernel->owner->module_handle();
    return CUDA_SUCCESS;
  });
}

SX_API cuKernelGetName(const char **name, CUkernel kernel) {
  return enter<Need::Init>(__func__, [&] { return name_of(name, kernel); });
}
SX_API cuFuncGetName(const char **name, CUfunction function) {
  return enter<Need::Init>(__func__, [&] { return name_of(name, function); });
}
SX_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t *size) {
  return enter<Need::Init>(__func__, [&] { return param_info(kernel, index, offset, size); });
}
SX_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset, size_t *size) {
  return enter<Need::Init>(__func__, [&] { return param_info(function, index, offset, size); });
}
// Whether it is translated already; loading it is what its first use does.
SX_API cuFuncIsLoaded(int *state, CUfunction function) {
  return enter<Need::Init>(__func__, [&]() -> CUresult {
    if (!find_kernel(function)) return CUDA_ERROR_INVALID_HANDLE;
    if (!state) return CUDA_ERROR_INVALID_VALUE;
    *state = 1;
    return CUDA_SUCCESS;
  });
}

SX_API cuFuncLoad(CUfunction function) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    Kernel *kernel = find_kernel(function);
    hipFunction_t loaded;
    return kernel ? kernel->load(current_device(), loaded) : CUDA_ERROR_INVALID_HANDLE;
  });
}
