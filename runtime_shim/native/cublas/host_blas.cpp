#include "host_blas.h"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "device.h"
#include "float_controls.h"
#include "log.h"

namespace sx::cublas {
namespace {

// How a library decorates the names: before "cblas_", and after the function's own.
struct Names {
  const char *before, *after;
  bool wide;
};
constexpr Names kNames[] = {{"scipy_", "64_", true}, {"", "64_", true}, {"", "_64", true}, {"scipy_", "", false}, {"", "", false}};

bool resolve(void *handle, const Names &names, HostBlas &blas) {
#define F(name, result, parameters)                                                                              \
  blas.name = reinterpret_cast<result(*) parameters>(                                                            \
      dlsym(handle, (std::string(names.before) + "cblas_" #name + names.after).c_str()));                        \
  if (!blas.name) return false;
  SX_BLAS(F)
#undef F
  blas.wide = names.wide;
  return true;
}

HostBlas load() {
  const FloatControls defaults;  // for the threads that the library makes
  HostBlas blas;
  std::vector<std::string> files = {"libopenblas.so.0", "libblas.so.3"};
  const std::string given = env_string("SASSXLATE_BLAS");
  if (!given.empty()) files = {given};
  std::string reason;
  for (const std::string &file : files) {
    void *handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char *text = dlerror();
      reason += std::string(reason.empty() ? "" : "; ") + (text ? text : file.c_str());
      continue;
    }
    for (const Names &names : kNames)
      if (resolve(handle, names, blas)) {
        blas.complete = true;
        return blas;
      }
    reason += (reason.empty() ? "" : "; ") + file + " has not all of BLAS's C interface";
  }
  replace::refuse("cublas", "SX0785: the replacement of cuBLAS finds no BLAS of the host: " + reason);
  return blas;
}

}  // namespace

const HostBlas &host_blas() {
  static const HostBlas loaded = load();
  return loaded;
}

}  // namespace sx::cublas
