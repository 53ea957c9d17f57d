// A weak stand-in for every exported name: if nothing else defines the name, a call reports that once and
// returns 801 (cudaErrorNotSupported), whatever its parameters.
#include <atomic>

#include "../common/log.h"
#include "state.h"

namespace {

int unimplemented(const char *name, std::atomic<bool> &said) {
  if (!said.exchange(true))
    sx::log_line("SX0752: %s is not implemented; the call returns 801 (cudaErrorNotSupported)", name);
  return sx::record(sx::kNotSupported);
}

}  // namespace

#define SX_NAME(name)                                                                  \
  extern "C" __attribute__((visibility("default"), weak)) int name() {                 \
    static std::atomic<bool> said{false};                                              \
    return unimplemented(#name, said);                                                 \
  }
#if SX_CUDART_MAJOR == 13
#include "names_13.inc"
#elif SX_CUDART_MAJOR == 12
#include "names_12.inc"
#else
#include "names_11.inc"
#endif
#undef SX_NAME
