// SPDX-License-Identifier: Apache-2.0
//
// Blocks that meet in grid.sync() twice a round; needs a cooperative launch.
#include "kernel.h"

#include <cooperative_groups.h>

KERNEL(grid_sync) {
    auto grid = cooperative_groups::this_grid();
    const int i = THREAD;
    uint32_t x = a[i];
    for (uint32_t round = 0; round < 2 + (b[0] & 3); ++round) {
        out[i] = x;
        grid.sync();
        x = x * 3 + out[(i * 7 + 3) % n] + round;
        grid.sync();
    }
    out[i] = x;
}
