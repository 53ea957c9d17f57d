#include "reach.h"

#include "hip.h"
#include "log.h"
#include "mappings.h"
#include "memory.h"
#include "state.h"

namespace sx {

bool reach(const void *pointer, size_t size, bool write) {
  Place place = memory_place(pointer, size);
  if (place != Place::Registered && place != Place::ReadOnly) return true;
  if (can_access(reinterpret_cast<uintptr_t>(pointer), size, write)) return true;
  log_line("SX0678: a copy %s %zu bytes of registered host memory at %p, which is no longer mapped", write ? "writes" : "reads",
           size, pointer);
  set_sticky_error(hipErrorIllegalAddress);
  return false;
}

}  // namespace sx
