#include "unsupported.h"

#include "driver.h"
#include "log.h"

namespace sx {

int unsupported(const char *name, std::atomic<bool> &said) {
  if (!said.exchange(true)) {
    log_line("SX0712: %s is not implemented; it returns 801 (not supported)", name);
    report({"unimplemented", name});
  }
  return leave(name, CUDA_ERROR_NOT_SUPPORTED);
}

}  // namespace sx
