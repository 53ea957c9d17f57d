// Every other name of NVML: weak, so that the files beside this one take precedence.  Applications ask for far more
// than they need (power, fans, links) and are prepared for devices that have no such thing.
#include "state.h"

#define SX_NAME(name)                                                                              \
  extern "C" __attribute__((weak, visibility("default"))) nvmlReturn_t name() {                    \
    return sx::nvml::is_started() ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED;           \
  }
#include "names.inc"
#undef SX_NAME
