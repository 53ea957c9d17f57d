#include "module.h"
#include "tiers.h"

namespace sx {

int function_image(Function &function, Counts &counts) {
  std::lock_guard<std::mutex> guard(function.mutex);
  if (!function.entry.load(std::memory_order_relaxed) && !function.image.error) first_code(function);
  counts = function.baseline.entry ? function.baseline.counts : function.image.counts;
  return function.entry.load(std::memory_order_relaxed) ? 0 : function.image.error;
}

}  // namespace sx
