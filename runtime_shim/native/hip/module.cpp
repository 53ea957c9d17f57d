#include "module.h"

#include "log.h"
#include "memory.h"
#include "state.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <shared_mutex>
#include <sys/mman.h>
#include <unordered_map>

namespace sx {
namespace {

constexpr uint32_t kRelocAbs64 = 3, kRelocRelative64 = 13;  // R_AMDGPU_*
constexpr uint64_t kMaxLoad = 1ull << 30;
constexpr uint64_t kPage = 4096;

struct Registry {
  std::shared_mutex mutex;
  std::unordered_map<const void *, std::shared_ptr<Module>> modules;
  std::unordered_map<const void *, std::shared_ptr<Module>> functions;  // the module owns the function
};

Registry &registry() {
  static Registry *const instance = new Registry;
  return *instance;
}

bool relocate(const Module &m, std::string &why) {
  const ElfFile &elf = m.code->elf;
  for (const ElfRelocation &r : elf.relocations) {
    uint64_t value;
    if (r.type == kRelocRelative64) {
      value = m.load_base + static_cast<uint64_t>(r.addend);
    } else if (r.type == kRelocAbs64) {
      const ElfSymbol *symbol = elf.symbol(r.symbol);
      if (!symbol) {
        why = "undefined symbol " + std::string(r.symbol);
        return false;
      }
      value = m.load_base + symbol->value + static_cast<uint64_t>(r.addend);
    } else {
      why = "relocation of unknown type " + std::to_string(r.type);
      return false;
    }
    if (m.load_size < 8 || r.offset > m.load_size - 8) {
      why = "a relocation lies outside the segments";
      return false;
    }
    memcpy(reinterpret_cast<void *>(m.load_base + r.offset), &value, sizeof value);
  }
  return true;
}

// Zeroes [base, base + size), base being a page's; whole pages go back to the system, which costs nothing for
// a large .bss that is never touched.
void clear(uint64_t base, uint64_t size) {
  uint64_t whole = size & ~(kPage - 1);
  if (whole && madvise(reinterpret_cast<void *>(base), whole, MADV_DONTNEED) != 0)
    memset(reinterpret_cast<void *>(base), 0, whole);
  memset(reinterpret_cast<void *>(base + whole), 0, size - whole);
}

// Puts the segments into the arena, where globals and constant tables have their addresses.
int load_segments(Module &m, std::string &why) {
  uint64_t end = 0;
  for (const ElfSegment &s : m.code->elf.segments)
    if (s.type == PT_LOAD) end = std::max(end, s.vaddr + s.memsz);
  if (end > kMaxLoad) {
    why = "its segments are impossibly large";
    return hipErrorInvalidImage;
  }
  if (end == 0) return 0;
  if (int error = memory_allocate(end, MemoryKind::Module, 0, m.load_base)) {
    why = "no device memory for its segments";
    return error;
  }
  m.load_size = end;
  clear(m.load_base, end);
  for (const ElfSegment &s : m.code->elf.segments)
    if (s.type == PT_LOAD)
      memcpy(reinterpret_cast<void *>(m.load_base + s.vaddr), m.code->bytes.data() + s.offset, s.filesz);
  return relocate(m, why) ? 0 : hipErrorInvalidImage;
}

// A module, and the memory of its segments with it.
void release_module(const Module *module) {
  if (module->load_base) memory_release(module->load_base, 1u << static_cast<unsigned>(MemoryKind::Module));
  delete module;
}

int load_module(const void *image, hipModule_t *handle) {
  if (!handle || !image) return hipErrorInvalidValue;
  std::shared_ptr<Module> module(new Module, release_module);
  std::string why;
  int error = read_code_object(image, target(), module->code, why);
  if (!error) error = load_segments(*module, why);
  if (error) {
    log_line("SX0654: code object refused: %s", why.c_str());
    return error;
  }
  for (const KernelInfo &kernel : module->code->kernels) {
    Function &function = module->functions[kernel.name];
    function.module = module.get();
    function.info = &kernel;
  }
  Registry &r = registry();
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  r.modules[module.get()] = module;
  for (auto &entry : module->functions) r.functions[&entry.second] = module;
  *handle = reinterpret_cast<hipModule_t>(module.get());
  return 0;
}

int unload_module(hipModule_t handle) {
  Registry &r = registry();
  std::shared_ptr<Module> module;  // destroyed after the lock is gone
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  auto found = r.modules.find(handle);
  if (found == r.modules.end()) return hipErrorInvalidHandle;
  module = found->second;
  for (auto &entry : module->functions) r.functions.erase(&entry.second);
  r.modules.erase(found);
  guard.unlock();
  return 0;
}

}  // namespace

std::shared_ptr<Module> find_module(hipModule_t handle) {
  Registry &r = registry();
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  auto found = r.modules.find(handle);
  return found == r.modules.end() ? nullptr : found->second;
}

std::shared_ptr<Module> find_function(hipFunction_t handle, Function *&function) {
  Registry &r = registry();
  std::shared_lock<std::shared_mutex> guard(r.mutex);
  auto found = r.functions.find(handle);
  if (found == r.functions.end()) return nullptr;
  function = reinterpret_cast<Function *>(handle);
  return found->second;
}

void modules_reset() {
  Registry &r = registry();
  std::unordered_map<const void *, std::shared_ptr<Module>> modules, functions;
  std::unique_lock<std::shared_mutex> guard(r.mutex);
  modules.swap(r.modules);
  functions.swap(r.functions);
  guard.unlock();
}

}  // namespace sx

using namespace sx;

SX_API hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  return call([&] { return load_module(image, module); });
}

SX_API hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned, int *, void **) {
  return call([&] { return load_module(image, module); });
}

SX_API hipError_t hipModuleUnload(hipModule_t module) {
  return call([&] { return unload_module(module); });
}

SX_API hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t handle, const char *name) {
  return call([&]() -> int {
    if (!function || !name) return hipErrorInvalidValue;
    std::shared_ptr<Module> module = find_module(handle);
    if (!module) return hipErrorInvalidHandle;
    auto found = module->functions.find(name);
    if (found == module->functions.end()) return hipErrorNotFound;
    *function = reinterpret_cast<hipFunction_t>(&found->second);
    return 0;
  });
}

SX_API hipError_t hipModuleGetGlobal(hipDeviceptr_t *pointer, size_t *size, hipModule_t handle,
                                     const char *name) {
  return call([&]() -> int {
    if (!name || (!pointer && !size)) return hipErrorInvalidValue;
    std::shared_ptr<Module> module = find_module(handle);
    if (!module) return hipErrorInvalidHandle;
    const ElfSymbol *symbol = module->code->elf.symbol(name);
    if (!symbol || symbol->type != STT_OBJECT || symbol->size > module->load_size ||
        symbol->value > module->load_size - symbol->size)
      return hipErrorNotFound;
    if (pointer) *pointer = reinterpret_cast<void *>(module->load_base + symbol->value);
    if (size) *size = symbol->size;
    return 0;
  });
}
