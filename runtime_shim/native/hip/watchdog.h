// Ends kernels that run for longer than SASSXLATE_KERNEL_TIME_LIMIT, as a display's watchdog does on a GPU.
#pragma once
#include "abi.h"

namespace sx {

struct Launch;

// Watches a launch from here to its end; does nothing without a limit.  A launch whose time is over has
// `overdue` set, and `runtime.stop` makes every loop yield until it has ended.
class Watched {
 public:
  Watched(Launch &launch, SxRuntime &runtime);
  ~Watched();
  Watched(const Watched &) = delete;
  Watched &operator=(const Watched &) = delete;

 private:
  Launch *launch_;
};

}  // namespace sx
