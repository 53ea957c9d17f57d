#include "unsupported.h"

#include <mutex>
#include <set>

#include "driver.h"
#include "log.h"
#include "logs.h"

namespace sx {

int unsupported(const char *name, std::atomic<bool> &said) {
  if (!said.exchange(true)) {
    log_line("SX0712: %s is not implemented; it returns 801 (not supported)", name);
    report({"unimplemented", name});
  }
  log_reason((std::string("SX0712: ") + name + " is not implemented").c_str());
  return leave(name, CUDA_ERROR_NOT_SUPPORTED);
}

CUresult refuse(const char *what) {
  static std::mutex mutex;
  static auto *const said = new std::set<const char *>;  // not destroyed: calls may come at the very end
  log_reason((std::string("SX0718: ") + what + ": not supported").c_str());
  std::lock_guard<std::mutex> guard(mutex);
  if (said->insert(what).second) {
    log_line("SX0718: %s: not supported; the call returns 801", what);
    report({"unimplemented", what});
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace sx
