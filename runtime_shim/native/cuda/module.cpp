#include "module.h"

#include "capability.h"
#include "hostcall.h"

#include "blake2b.h"
#include "carried.h"
#include "files.h"
#include "jit.h"
#include "handles.h"
#include "log.h"
#include "logs.h"
#include "pointer.h"
#include "service.h"
#include "trace.h"
#include "trusted.h"
#include "unsupported.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr size_t kSectionAlignment = 512;  // of a texture's memory, which may be a variable
// The value of a word for which we have no address: no user address has these high bits.
constexpr uint64_t kPoison = 0xdead000000000000ull;

std::string directory_of(const std::string &path) { return path.substr(0, path.rfind('/')); }

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

// A line with the place after its code.
std::string at_place(const std::string &place, const std::string &line) {
  size_t colon = line.find(": ");
  return colon == std::string::npos ? line : line.substr(0, colon + 2) + place + line.substr(colon);
}

// Whether the ptxas that made the module of PTX is still the same file.
bool same_compiler(const Manifest &manifest) {
  struct stat status;
  if (stat(manifest.made_by.c_str(), &status) != 0) return false;
  uint64_t time = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1000000000u + static_cast<uint64_t>(status.st_mtim.tv_nsec);
  return static_cast<uint64_t>(status.st_size) == manifest.made_by_size && time == manifest.made_by_time;
}

}  // namespace

void say_refused(const std::string &kernel, CUresult error, const std::string &line) {
  log_line("%s (CUDA error %d)", line.c_str(), error);
  log_reason(line.c_str());
  report({"refused", line.substr(0, line.find(':')), std::to_string(error), kernel, line});
}

Stopwatch::Stopwatch() : start_(now()) {}

double Stopwatch::milliseconds() const { return now() - start_; }

double Stopwatch::now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

void refuse_image(CUresult error, const std::string &line, const std::string &place) {
  say_refused("*", error, at_place(place, line));
}

namespace {

CUresult answered(const std::string &request, json::Value &body, std::string &line) {
  ServiceReply reply = service_call(request);
  // A service of an older version reports that and ends; the next call starts a new one.
  if (reply.answered && reply.body["restart"].truthy()) reply = service_call(request);
  body = reply.body;
  if (!reply.answered) {
    line = "SX0902: no translation service: " + reply.error;
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  if (body["ok"].truthy()) return CUDA_SUCCESS;
  line = body["line"].text("SX0903: the service refused without a reason");
  return static_cast<CUresult>(body["cuda_error"].whole(CUDA_ERROR_UNKNOWN));
}

}  // namespace

CUresult ask_translator(const std::string &request, json::Value &body, std::string &line) {
  if (program_carries()) {
    line = kNotCarried;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  TracedRequest traced(request);
  CUresult result = answered(request, body, line);
  traced.end(result);
  return result;
}

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

Module::Module(const ImageView &image, bool stays, std::string jit)
    : place_(place_of(image)), image_(image), jit_(std::move(jit)), storage_(driver().devices.size()) {
  if (!stays) {
    copy_.assign(image.data, image.data + image.size);
    image_.data = copy_.data();
  }
  Handles<Module>::all().add(this);
}

Module::~Module() {
  Handles<Module>::all().remove(this);
  for (auto &kernel : kernels_) {
    if (!kernel) continue;
    Handles<Kernel>::all().remove(kernel.get());
    for (size_t i = 0; i < kernel->loaded_.size(); ++i)
      if (kernel->loaded_[i].module && kernel->loaded_[i].generation == driver().devices[i]->generation)
        hip().hipModuleUnload(kernel->loaded_[i].module);
    for (const auto &[i, old] : kernel->before_)
      if (old.generation == driver().devices[i]->generation) hip().hipModuleUnload(old.module);
  }
  for (size_t i = 0; i < storage_.size(); ++i)
    if (storage_[i].memory && storage_[i].generation == driver().devices[i]->generation) {
      module_memory_gone(reinterpret_cast<CUdeviceptr>(storage_[i].memory));
      hip().hipFree(storage_[i].memory);
    }
}

void Module::report_place() {
  Dl_info file = {};
  if (place_reported_.exchange(true) || !dladdr(image_.data, &file) || !file.dli_fname || !*file.dli_fname) return;
  report({"module", key_, std::to_string(capability_for(image_)), absolute_path(file.dli_fname)});
}

CUresult Module::ask_service(Manifest &manifest, std::string &directory) {
  std::string file = write_temporary("image", image_.data, image_.size);
  if (file.empty()) {
    say_refused("*", CUDA_ERROR_OPERATING_SYSTEM, at_place(place_, "SX0907: no temporary file can be written"));
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  json::Value body;
  std::string line;
  std::string request = "{\"op\":\"module\",\"image\":" + json::quote(file) +
                        ",\"cc\":" + std::to_string(capability_for(image_));
  if (image_.kind != ImageKind::Elf) request += tools_environment();
  if (!jit_.empty()) request += ",\"jit\":" + json::quote(jit_);
  CUresult result = ask_translator(request + "}", body, line);
  unlink(file.c_str());
  log_ = body["log"].text();
  if (result != CUDA_SUCCESS) {
    if (log_.empty()) log_ = line;
    say_refused("*", result, at_place(place_, line));
    return result;
  }
  std::string path = body["manifest"].text(), text;
  if (!read_sealed(path, text, kTextLimit) || !parse_manifest(text, manifest)) {
    say_refused("*", CUDA_ERROR_UNKNOWN, at_place(place_, "SX0903: the manifest " + path + " cannot be read"));
    return CUDA_ERROR_UNKNOWN;
  }
  directory = directory_of(path);
  std::string made = body["key"].text(key_);  // that of the machine code, if the image is PTX
  if (manifest_read_ && made != key_) {
    say_refused("*", CUDA_ERROR_UNKNOWN, at_place(place_, "SX0715: another ptxas would compile it now than before"));
    return CUDA_ERROR_UNKNOWN;
  }
  key_ = made;
  return CUDA_SUCCESS;
}

// The manifest in the cache.
bool Module::read_kept(const std::string &cache, const std::string &tag) {
  std::string text;
  directory_ = cache + "/module/" + tag;
  if (!read_sealed(directory_ + "/" + key_ + ".txt", text, kTextLimit) || !parse_manifest(text, manifest_)) return false;
  if (manifest_.made_key.empty()) return true;
  // PTX: the module that was made of it.
  std::string made = manifest_.made_key;
  if (!same_compiler(manifest_) || !read_sealed(directory_ + "/" + made + ".txt", text, kTextLimit) ||
      !parse_manifest(text, manifest_) || !manifest_.made_key.empty())
    return false;
  key_ = made;
  return true;
}

CUresult Module::read_manifest() {
  if (image_.kind == ImageKind::Unreadable || image_.kind == ImageKind::Unknown) {
    say_refused("*", CUDA_ERROR_INVALID_IMAGE, at_place(place_, "SX0709: the image is damaged"));
    return CUDA_ERROR_INVALID_IMAGE;
  }
  key_ = key_for(capability_for(image_));
  if (!something_carried() || !read_carried_manifest()) {
    std::string cache, tag;
    if (program_carries()) {
      refuse_image(CUDA_ERROR_NOT_SUPPORTED, kNotCarried, place_);
      return CUDA_ERROR_NOT_SUPPORTED;
    }
    if (!cache_place(cache, tag)) return CUDA_ERROR_OPERATING_SYSTEM;
    CUresult result = read_kept(cache, tag) ? CUDA_SUCCESS : ask_service(manifest_, directory_);
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
  if (carried_) {
    if (!read_carried("module", section.file, data)) return false;
  } else if (!read_sealed(directory_ + "/" + section.file, data, kImageLimit)) {
    // Evicted while we ran: the service can make it again.
    Manifest same;
    if (ask_service(same, directory_) != CUDA_SUCCESS || !read_sealed(directory_ + "/" + section.file, data, kImageLimit)) return false;
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
    else if (reloc.size == 8 && is_heap_function(reloc.name))
      storage.heap_words.emplace_back(storage.addresses[reloc.section] + reloc.offset, reloc.name);
    else if (reloc.size == 8) value = host_function(device, reloc.name, kPoison);
    // parse_manifest has checked that the place lies inside its section.
    memcpy(image.data() + offsets[reloc.section] + reloc.offset, &value, reloc.size);
  }
  std::vector<MemoryRange> managed;
  for (const GlobalInfo &item : manifest_.globals)
    if (item.managed) managed.push_back({storage.addresses[item.section] + item.offset, item.size});
  module_memory_made(base, device, std::move(managed));
  return from_hip(hip().hipMemcpy(memory, image.data(), total, hipMemcpyHostToDevice));
}

CUresult Module::storage(Device &device, Storage *&out) {
  const Manifest *known;
  CUresult result = manifest(known);
  if (result != CUDA_SUCCESS) return result;
  std::lock_guard<std::mutex> guard(mutex_);
  Storage &storage = storage_[static_cast<size_t>(device.ordinal)];
  // After a reset the module's variables begin again.
  if (storage.generation != device.generation) storage = Storage();
  if (!storage.tried) {
    storage.generation = device.generation;
    storage.result = allocate(device, storage);
    storage.tried = true;
  }
  out = &storage;
  return storage.result;
}

CUresult Module::give_heap(Device &device) {
  Storage *place;
  CUresult result = storage(device, place);
  if (result != CUDA_SUCCESS) return result;
  std::lock_guard<std::mutex> guard(mutex_);
  if (place->heap_words.empty()) return CUDA_SUCCESS;
  HeapAddresses heap;
  result = use_heap(device, heap);
  for (const auto &[address, name] : place->heap_words) {
    if (result != CUDA_SUCCESS) return result;
    const uint64_t &value = name == "malloc" ? heap.malloc : heap.free;
    result = from_hip(hip().hipMemcpy(to_pointer(address), &value, sizeof value, hipMemcpyHostToDevice));
  }
  if (result == CUDA_SUCCESS) place->heap_words.clear();
  return result;
}

CUresult Module::global(Device &device, const std::string &name, bool managed, CUdeviceptr &address, size_t &size) {
  const Manifest *known;
  CUresult result = manifest(known);
  if (result != CUDA_SUCCESS) return result;
  for (const GlobalInfo &item : known->globals) {
    if (item.name != name || (managed && !item.managed)) continue;
    // It is one of the module's: device memory is the host's own on the emulated device alone.
    if (item.managed && !hip().emulated) return refuse("a managed variable on this device");
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

}  // namespace sx
