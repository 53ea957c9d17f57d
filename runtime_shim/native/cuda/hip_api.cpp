#include "hip_api.h"

#include "files.h"
#include "log.h"

#include <dlfcn.h>

namespace sx {

bool load_hip(Hip &hip, std::string &error) {
  std::string own = library_dir() + "/libamdhip64.so";
  hip.path = env_string("SASSXLATE_HIP", own);
  // RTLD_LOCAL: the application may use a HIP library of its own, and its symbols stay its own.
  void *handle = dlopen(hip.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return false;
  }
#define F(name)                                                                \
  hip.name = reinterpret_cast<decltype(hip.name)>(dlsym(handle, #name));       \
  if (!hip.name) {                                                             \
    error = hip.path + " has no " #name;                                       \
    return false;                                                              \
  }
  SX_HIP_REQUIRED(F)
#undef F
#define F(name) hip.name = reinterpret_cast<decltype(hip.name)>(dlsym(handle, #name));
  SX_HIP_OPTIONAL(F)
#undef F
  Dl_info info;
  hip.emulated = dladdr(reinterpret_cast<void *>(hip.hipInit), &info) && info.dli_fname &&
                 (hip.path == own || dlsym(handle, "sassxlate_emulated_device"));
  return true;
}

}  // namespace sx
