// Waves that leave a partial image: the baseline tier's code goes on with them.
#include "tiers.h"
#include "wave.h"

namespace sx {

void sx_leave(SxWave *w, uint32_t pc, const SxLeft *left) {
  const Launch &launch = *static_cast<Wave *>(w->host)->group->launch;
  const uint64_t before = w->executed;
  // An image is only used with the same code's baseline, so that the block is there.
  if (!resume_kernel(launch.function->baseline.resumable, w, pc, *left)) g_runtime.fault(w, SX_FAULT_ILLEGAL, pc, 0, 0);
  count_left(launch, w->executed - before);
}

}  // namespace sx
