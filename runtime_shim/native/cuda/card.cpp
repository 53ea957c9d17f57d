// As runtime_shim/hip_probe.py does for `sassxlate run`, but in this process: a broken driver is the program's, too.
#include "card.h"

#include "../hip/hip.h"
#include "carried.h"
#include "log.h"

#include <dlfcn.h>
#include <unistd.h>

#include <sstream>
#include <vector>

namespace sx {
namespace {

constexpr const char *kNames[] = {"libamdhip64.so.7", "libamdhip64.so.6"};

template <typename F>
F *function(void *handle, const char *name) {
  return reinterpret_cast<F *>(dlsym(handle, name));
}

}  // namespace

bool card_takes(const char *library, const std::string &targets) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return false;
  auto *init = function<decltype(hipInit)>(handle, "hipInit");
  auto *count = function<decltype(hipGetDeviceCount)>(handle, "hipGetDeviceCount");
  auto *set = function<decltype(hipSetDevice)>(handle, "hipSetDevice");
  auto *load = function<decltype(hipModuleLoadData)>(handle, "hipModuleLoadData");
  auto *unload = function<decltype(hipModuleUnload)>(handle, "hipModuleUnload");
  int devices = 0;
  if (!init || !count || !set || !load || !unload || init(0) || count(&devices) || devices <= 0) return false;
  std::istringstream words(targets);
  for (std::string target; words >> target;) {
    CarriedBytes empty;
    if (!find_carried(target, "probe", "empty.hsaco", empty)) continue;
    int takers = 0;
    for (int device = 0; device < devices; ++device) {
      hipModule_t module = nullptr;
      if (set(device) || load(&module, empty.data)) continue;
      unload(module);
      ++takers;
    }
    set(0);
    if (takers && takers < devices)
      log_line("SX0793: %d of %d GPUs take %s code: name them in HIP_VISIBLE_DEVICES; until then it is emulated", takers,
               devices, target.c_str());
    if (takers < devices) continue;
    choose_carried_target(target);
    return true;
  }
  return false;  // never closed: a HIP library does not survive that
}

std::string find_card() {
  if (access("/dev/kfd", F_OK) != 0) return "";
  const std::string targets = env_string("SASSXLATE_TARGET", carried_setting("targets"));
  std::vector<std::string> candidates(std::begin(kNames), std::end(kNames));
  for (const char *variable : {"ROCM_PATH", "HIP_PATH"})
    for (const char *name : kNames)
      if (const std::string root = env_string(variable); !root.empty()) candidates.push_back(root + "/lib/" + name);
  for (const char *name : kNames) candidates.push_back(std::string("/opt/rocm/lib/") + name);
  for (const std::string &candidate : candidates)
    if (card_takes(candidate.c_str(), targets)) return candidate;
  return "";
}

}  // namespace sx
