// Finds libcuda.so.1: the one beside this library first, then whatever the dynamic linker finds.
#include "driver.h"

#include <atomic>
#include <dlfcn.h>
#include <string>

#include "../common/log.h"
#include "runtime_abi.h"

namespace sx {
namespace {

const char *const kNames[] = {
#define SX_DRIVER(name, parameters) #name,
#include "driver_table.inc"
#undef SX_DRIVER
};

enum Index {
#define SX_DRIVER(name, parameters) kIndex_##name,
#include "driver_table.inc"
#undef SX_DRIVER
  kIndexCount
};

// Stands in for an entry point that the driver library lacks.
template <int I>
CUresult missing() {
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) log_line("SX0751: libcuda.so.1 has no %s; the call returns 801 (not supported)", kNames[I]);
  return kNotSupported;
}

void *open_library() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&open_library), &info) && info.dli_fname) {
    std::string path(info.dli_fname);
    size_t slash = path.rfind('/');
    if (slash != std::string::npos) {
      path.resize(slash + 1);
      path += "libcuda.so.1";
      if (void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
  }
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
}

Driver g_driver;

const Driver *load() {
  void *handle = open_library();
  if (!handle) {
    log_line("SX0750: libcuda.so.1 cannot be loaded: %s", dlerror());
    return nullptr;
  }
#define SX_DRIVER(name, parameters)                                                  \
  if (void *address = dlsym(handle, #name))                                          \
    g_driver.name = reinterpret_cast<CUresult(*) parameters>(address);               \
  else                                                                               \
    g_driver.name = reinterpret_cast<CUresult(*) parameters>(                        \
        reinterpret_cast<void (*)()>(&missing<kIndex_##name>));
#include "driver_table.inc"
#undef SX_DRIVER
  return &g_driver;
}

}  // namespace

const Driver *load_driver() {
  static const Driver *const loaded = load();
  return loaded;
}

const Driver &driver() { return g_driver; }

}  // namespace sx
