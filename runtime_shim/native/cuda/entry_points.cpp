// Every exported name: a weak definition for those that nothing else here defines, and the table of all.
// No types of theirs are known here; a caller casts what it gets.
#include "entry_points.h"

#include "unsupported.h"

#define SX_SYMBOL(symbol)                                                                   \
  extern "C" __attribute__((weak, visibility("default"))) int symbol() {                   \
    static std::atomic<bool> said{false};                                                   \
    return sx::unsupported(#symbol, said);                                                  \
  }
#include "entry_points.def"
#undef SX_SYMBOL

namespace sx {

const Variant kVariants[] = {
#define SX_VARIANT(name, version, per_thread, symbol) \
  {name, version, per_thread != 0, reinterpret_cast<void *>(&symbol)},
#include "entry_points.def"
#undef SX_VARIANT
};

const size_t kVariantCount = sizeof kVariants / sizeof kVariants[0];

}  // namespace sx
