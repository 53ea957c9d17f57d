// The list is that of a dynamic linker (link.h): of each code object the difference between its addresses in memory
// and in its ELF file, and a URI that says where the file's bytes are: memory://PID#offset=0x..&size=.., or
// file://PATH#offset=..&size=.. (LLVM, AMDGPUUsage: Loaded Code Object Path Uniform Resource Identifier).
//
// A code object may be unloaded and another one loaded at its place.  So a kernel that was found before is taken again
// only if the descriptor and the code in memory are still those of its file.
#include "loaded.h"

#include "../hip/state.h"
#include "../hip/target.h"
#include "card.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <elf.h>
#include <fstream>
#include <map>
#include <mutex>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace sx::kfd {
namespace {

constexpr unsigned kMostObjects = 1u << 20;
constexpr uint64_t kMostBytes = 1u << 30;

struct Debug {  // r_debug
  int32_t version, pad;
  uint64_t map, brk;
  int32_t state, pad2;
};
struct Link {  // link_map
  uint64_t address, name, dynamic, next, previous;
};

struct Loaded {
  std::mutex mutex;
  uint64_t debug = 0;
  std::map<std::pair<uint64_t, std::string>, std::shared_ptr<Module>> modules;  // by address and URI
  std::map<uint64_t, std::pair<std::shared_ptr<Module>, Function *>> kernels;
};

Loaded &loaded() {
  static Loaded *const one = new Loaded;
  return *one;
}

// Memory of this process that another thread may take away meanwhile.
bool read_own(uint64_t address, void *out, size_t size) {
  iovec local = {out, size}, remote = {reinterpret_cast<void *>(address), size};
  return process_vm_readv(static_cast<pid_t>(syscall(SYS_gettid)), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(size);
}

std::string read_text(uint64_t address) {
  std::string text;
  char byte;
  while (text.size() < 65536 && read_own(address + text.size(), &byte, 1) && byte) text += byte;
  return text;
}

uint64_t number_after(const std::string &uri, const char *key, uint64_t missing) {
  size_t at = uri.find(key, uri.rfind('#') == std::string::npos ? 0 : uri.rfind('#'));
  return at == std::string::npos ? missing : strtoull(uri.c_str() + at + strlen(key), nullptr, 0);
}

std::string decoded(const std::string &text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(strtoul(text.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// The bytes that a URI names.
bool read_uri(const std::string &uri, std::vector<char> &bytes) {
  uint64_t offset = number_after(uri, "offset=", 0), size = number_after(uri, "size=", 0);
  if (size > kMostBytes) return false;
  if (uri.compare(0, 9, "memory://") == 0) {
    bytes.resize(size);
    return size && read_own(offset, bytes.data(), size);
  }
  if (uri.compare(0, 7, "file://") != 0) return false;
  std::ifstream file(decoded(uri.substr(7, uri.find('#') - 7)), std::ios::binary);
  if (!size) {
    file.seekg(0, std::ios::end);
    size = static_cast<uint64_t>(std::max<int64_t>(0, file.tellg())) - offset;
  }
  if (!file || size > kMostBytes) return false;
  bytes.resize(size);
  file.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(file.read(bytes.data(), static_cast<std::streamsize>(size)));
}

std::shared_ptr<Module> read_module(uint64_t address, const std::string &uri, std::string &why) {
  std::vector<char> bytes;
  if (!read_uri(uri, bytes)) {
    why = "its code object cannot be read: " + uri;
    return nullptr;
  }
  auto module = std::make_shared<Module>();
  std::string reason;
  if (read_code_object(bytes.data(), target(), module->code, reason, Kernels::Some)) {
    why = reason + " (" + uri + ")";
    return nullptr;
  }
  module->load_base = address;
  for (const ElfSegment &s : module->code->elf.segments)
    if (s.type == PT_LOAD) module->load_size = std::max(module->load_size, s.vaddr + s.memsz);
  for (const KernelInfo &kernel : module->code->kernels) {
    Function &function = module->functions[kernel.name];
    function.module = module.get();
    function.info = &kernel;
  }
  return module;
}

// Whether the code in memory is still the file's.
bool same_code(const Module &module) {
  for (const ElfSegment &s : module.code->elf.segments) {
    if (s.type != PT_LOAD || !(s.flags & PF_X)) continue;
    uint64_t size = s.filesz;
    const void *now = memory_at(module.load_base + s.vaddr, size, false);
    const uint8_t *then = module.code->elf.at_vaddr(s.vaddr, s.filesz);
    if (!now || !then || size != s.filesz || memcmp(now, then, size) != 0) return false;
  }
  return true;
}

Function *kernel_of(Module &module, uint64_t descriptor) {
  for (auto &[name, function] : module.functions)
    if (module.load_base + function.info->descriptor_vaddr == descriptor) return &function;
  return nullptr;
}

// Looks through the list; `why` tells of what could not be read.
std::shared_ptr<Module> search(Loaded &all, uint64_t descriptor, Function *&function, std::string &why) {
  Debug debug;
  if (!all.debug || !read_own(all.debug, &debug, sizeof debug)) {
    why = "AMD's runtime does not say what it has loaded";
    return nullptr;
  }
  std::map<std::pair<uint64_t, std::string>, std::shared_ptr<Module>> still;
  std::shared_ptr<Module> found;
  uint64_t at = debug.map;
  for (unsigned i = 0; at && i < kMostObjects && !found; ++i) {
    Link link;
    if (!read_own(at, &link, sizeof link)) break;
    at = link.next;
    std::string uri = read_text(link.name);
    if (link.address > descriptor) continue;
    auto key = std::make_pair(link.address, uri);
    auto known = all.modules.find(key);
    std::shared_ptr<Module> module = known == all.modules.end() ? nullptr : known->second;
    if (!module || !same_code(*module)) module = read_module(link.address, uri, why);
    if (!module || descriptor - link.address >= module->load_size) continue;
    all.modules[key] = module;
    function = kernel_of(*module, descriptor);
    if (function && same_code(*module)) found = module;
  }
  return found;
}

}  // namespace

void set_debug_list(uint64_t r_debug) {
  Loaded &all = loaded();
  std::lock_guard<std::mutex> guard(all.mutex);
  all.debug = r_debug;
}

std::shared_ptr<Module> loaded_kernel(uint64_t descriptor, Function *&function, std::string &why) {
  Loaded &all = loaded();
  std::lock_guard<std::mutex> guard(all.mutex);
  auto known = all.kernels.find(descriptor);
  if (known != all.kernels.end()) {
    if (same_code(*known->second.first)) {
      function = known->second.second;
      return known->second.first;
    }
    all.kernels.erase(known);
  }
  std::shared_ptr<Module> module = search(all, descriptor, function, why);
  if (module) all.kernels[descriptor] = {module, function};
  else if (why.empty()) why = "no code object that is loaded has it";
  return module;
}

}  // namespace sx::kfd
