// The driver library underneath, loaded at the first call that needs it.
#pragma once
#include "driver_abi.h"

namespace sx {

// One pointer per entry point of driver_table.inc.  One that the library lacks returns 801, with one message.
struct Driver {
#define SX_DRIVER(name, parameters) CUresult(*name) parameters;
#include "driver_table.inc"
#undef SX_DRIVER
};

// The loaded driver, or nullptr if there is no libcuda.so.1.
const Driver *load_driver();

// The loaded driver; only to be called after enter() or bind() of state.h succeeded.
const Driver &driver();

}  // namespace sx
