// SPDX-License-Identifier: Apache-2.0
//
// Copies that arrive at barriers when they are done, alone and in a pipeline of two stages.
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "kernel.h"

KERNEL(copy_barriers) {
    __shared__ __align__(16) uint32_t box[128], stage[2][128];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> done;
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    const auto block = cooperative_groups::this_thread_block();
    const int t = threadIdx.x, i = THREAD, first = i - t;
    if (t == 0) init(&done, 128);
    block.sync();
    cuda::memcpy_async(&box[t], &a[i], cuda::aligned_size_t<4>(4), done);
    done.arrive_and_wait();
    uint32_t x = box[t ^ 5];
    done.arrive_and_wait();
    if (t < 32)
        cuda::memcpy_async(&box[4 * t], &b[first + 4 * t], cuda::aligned_size_t<16>(16), done);
    done.arrive_and_wait();
    x = x * 3 + box[t ^ 9];
    auto pipe = cuda::make_pipeline(block, &state);
    for (int k = 0, ahead = 0; k < 6; ++k) {
        for (; ahead < 6 && ahead < k + 2; ++ahead) {
            pipe.producer_acquire();
            cuda::memcpy_async(&stage[ahead & 1][t], &a[first + ((t + 8 * ahead) & 127)],
                               cuda::aligned_size_t<4>(4), pipe);
            pipe.producer_commit();
        }
        pipe.consumer_wait();
        x = x * 3 + stage[k & 1][t ^ 3];
        pipe.consumer_release();
    }
    if (i < n) out[i] = x;
}
