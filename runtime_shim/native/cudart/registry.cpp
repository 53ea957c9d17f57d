#include "registry.h"

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver.h"

namespace sx {

struct Module {
  void *wrapper;
  CUlibrary library = nullptr;
  int load_error = kSuccess;
  bool loaded = false;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::unique_ptr<Variable>> variables;
};

namespace {

// One lock over everything: registration happens once, and look-ups are short.
struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Module>> modules;
  // Stubs, handles (the Function's own address) and the driver's kernels.  Of a stub registered twice
  // (an inline template in two libraries) the one registered last counts while its module lives.
  std::unordered_map<const void *, std::vector<Function *>> functions;
  std::unordered_map<const void *, std::vector<Variable *>> variables;
  std::deque<Function> adopted;
};

// Never destroyed: modules of libraries are unregistered while the process ends.
Registry &registry() {
  static Registry *const r = new Registry;
  return *r;
}

template <class Map, class T>
void forget(Map &map, const void *key, T *value) {
  auto found = map.find(key);
  if (found == map.end()) return;
  auto &list = found->second;
  for (size_t i = list.size(); i-- > 0;)
    if (list[i] == value) list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
  if (list.empty()) map.erase(found);
}

template <class Map>
typename Map::mapped_type::value_type newest(Map &map, const void *key) {
  auto found = map.find(key);
  return found == map.end() ? nullptr : found->second.back();
}

int load(Module &m) {
  if (m.loaded) return m.load_error;
  int option = CU_LIBRARY_BINARY_IS_PRESERVED;
  void *value = reinterpret_cast<void *>(uintptr_t{1});
  m.load_error = driver().cuLibraryLoadData(&m.library, m.wrapper, nullptr, nullptr, 0, &option, &value, 1);
  m.loaded = true;
  return m.load_error;
}

// A kernel that its module lacks for this device is 209, the driver's error; any other name is 98.
int resolve(Function &f) {
  if (f.kernel) return kSuccess;
  if (!f.module) return kInvalidDeviceFunction;
  if (int error = load(*f.module)) return error;
  CUkernel kernel = nullptr;
  int error = driver().cuLibraryGetKernel(&kernel, f.module->library, f.name);
  if (error == kSymbolNotFound) return kInvalidDeviceFunction;
  if (error) return error;
  f.kernel = kernel;
  registry().functions[kernel].push_back(&f);
  return kSuccess;
}

int locate(Variable &v, CUdeviceptr *address, size_t *size) {
  if (int error = load(*v.module)) return error;
  size_t bytes = 0;
  int error = v.managed ? driver().cuLibraryGetManaged(address, &bytes, v.module->library, v.name)
                        : driver().cuLibraryGetGlobal(address, &bytes, v.module->library, v.name);
  if (error == kSymbolNotFound) return kInvalidSymbol;
  // The registered size is the host's; an extern variable is registered without one.
  *size = bytes ? bytes : v.size;
  return error;
}

Module *module_of(void **handle) { return reinterpret_cast<Module *>(handle); }

}  // namespace

void **register_module(void *wrapper) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  r.modules.push_back(std::make_unique<Module>());
  r.modules.back()->wrapper = wrapper;
  return reinterpret_cast<void **>(r.modules.back().get());
}

void end_registration(void **) {}

void unregister_module(void **handle) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  for (auto it = r.modules.begin(); it != r.modules.end(); ++it) {
    Module *m = it->get();
    if (m != module_of(handle)) continue;
    for (auto &f : m->functions) {
      forget(r.functions, f->stub, f.get());
      forget(r.functions, f.get(), f.get());
      if (f->kernel) forget(r.functions, f->kernel, f.get());
    }
    for (auto &v : m->variables) {
      forget(r.variables, v->shadow, v.get());
      if (v->managed) forget(r.variables, *v->managed, v.get());
    }
    // At the process's end the driver may be gone already; what it answers does not matter then.
    if (m->library) driver().cuLibraryUnload(m->library);
    r.modules.erase(it);
    return;
  }
}

void register_function(void **handle, const void *stub, const char *name) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto f = std::make_unique<Function>(Function{module_of(handle), stub, name, nullptr});
  r.functions[stub].push_back(f.get());
  r.functions[f.get()].push_back(f.get());
  module_of(handle)->functions.push_back(std::move(f));
}

void register_variable(void **handle, const void *shadow, void **managed, const char *name, size_t size) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto v = std::make_unique<Variable>(Variable{module_of(handle), shadow, managed, name, size});
  r.variables[shadow].push_back(v.get());
  module_of(handle)->variables.push_back(std::move(v));
}

int initialise_managed(void **handle) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  Module *m = module_of(handle);
  for (auto &v : m->variables) {
    if (!v->managed) continue;
    CUdeviceptr address = 0;
    size_t size = 0;
    if (int error = locate(*v, &address, &size)) return error;
    *v->managed = reinterpret_cast<void *>(address);
    // Programs name the variable by the address of its memory as well as by its shadow.
    r.variables[*v->managed].push_back(v.get());
  }
  return kSuccess;
}

int kernel_of(const void *function, CUkernel *kernel) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  Function *f = newest(r.functions, function);
  // 13 takes any address but null for a kernel's handle (measured with 13.0).
  if (!f) return function && kMajor >= 13 ? kInvalidResourceHandle : kInvalidDeviceFunction;
  if (int error = resolve(*f)) return error;
  *kernel = f->kernel;
  return kSuccess;
}

const void *handle_of(const void *stub) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  return newest(r.functions, stub);
}

void adopt_kernel(CUkernel kernel, const char *name) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  if (newest(r.functions, kernel)) return;
  r.adopted.push_back(Function{nullptr, nullptr, name, kernel});
  r.functions[kernel].push_back(&r.adopted.back());
}

void *stub_of(CUkernel kernel) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  Function *f = newest(r.functions, kernel);
  return f && f->stub ? const_cast<void *>(f->stub) : static_cast<void *>(kernel);
}

const char *name_of(const void *function) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  Function *f = newest(r.functions, function);
  return f ? f->name : nullptr;
}

int address_of(const void *symbol, CUdeviceptr *address, size_t *size) {
  Registry &r = registry();
  std::lock_guard<std::mutex> lock(r.mutex);
  Variable *v = newest(r.variables, symbol);
  return v ? locate(*v, address, size) : static_cast<int>(kInvalidSymbol);
}

}  // namespace sx
