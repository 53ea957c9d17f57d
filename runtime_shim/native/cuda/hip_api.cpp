#include "hip_api.h"

#include "card.h"
#include "carried.h"
#include "files.h"
#include "log.h"
#include "waiting.h"

#include <dlfcn.h>
#include <sys/stat.h>

namespace sx {
namespace {

bool same_file(const std::string &a, const std::string &b) {
  struct stat x, y;
  return !stat(a.c_str(), &x) && !stat(b.c_str(), &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

}  // namespace

bool load_hip(Hip &hip, std::string &error) {
  std::string own = library_dir() + "/libamdhip64.so";
  hip.path = env_string("SASSXLATE_HIP");
  if (!hip.path.empty() && program_carries()) card_takes(hip.path.c_str(), carried_setting("targets"));
  if (hip.path.empty() && program_carries()) hip.path = find_card();
  if (hip.path.empty()) hip.path = own;
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
  // The same file may be named through a link.
  hip.emulated = same_file(hip.path, own) || dlsym(handle, "sassxlate_emulated_device");
  hip.emulated_busy = reinterpret_cast<decltype(hip.emulated_busy)>(dlsym(handle, "sassxlate_emulated_busy"));
  using Bytes = uint32_t (*)();
  if (auto lds = reinterpret_cast<Bytes>(dlsym(handle, "sassxlate_emulated_lds"))) hip.emulated_lds = lds();
  // Of the same build alone: what is shared is a structure.
  using State = void *(*)();
  if (auto state = reinterpret_cast<State>(dlsym(handle, "sassxlate_waiting_state")); state && same_file(hip.path, own))
    share_waiting_state(state());
  return true;
}

}  // namespace sx
