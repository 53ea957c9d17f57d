// Clusters, mbarriers, bulk and tensor copies, register pools: sm_90 and later.
#include "cuda_runtime.h"
#include <cooperative_groups.h>
#include <cstdint>
namespace cg = cooperative_groups;
#if __CUDA_ARCH__ >= 900

__device__ uint32_t smem_of(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

extern "C" __global__ void barriers(uint64_t *out, int n) {
    __shared__ alignas(8) uint64_t bar[4];
    uint32_t b = smem_of(bar), t = threadIdx.x;
    uint64_t state;
    uint32_t done;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n));
    asm volatile("fence.mbarrier_init.release.cluster;");
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b));
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(b + 8), "r"(t));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(b), "r"(n));
    asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b));
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n));
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(b), "r"(n));
    asm volatile("{.reg .pred p; mbarrier.try_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0,1,0,p;}" : "=r"(done) : "r"(b), "l"(state));
    out[t] = done;
    asm volatile("{.reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0,1,0,p;}" : "=r"(done) : "r"(b), "l"(state));
    out[t] += done;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0,1,0,p;}" : "=r"(done) : "r"(b), "r"(n & 1));
    out[t] += done;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, %3; selp.u32 %0,1,0,p;}" : "=r"(done) : "r"(b), "r"(n & 1), "r"(n));
    out[t] += done;
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(done) : "l"(state));
    out[t] += done;
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(b));
    uint32_t remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(b), "r"(n));
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote));
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(remote), "r"(n));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(remote + 64), "r"(n), "r"(remote));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1,%1,%1,%1}, [%2];" ::"r"(remote + 64), "r"(n), "r"(remote));
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(remote + 64), "r"(n), "r"(remote));
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%0], %1, [%2];" ::"r"(remote + 64), "r"(n), "r"(remote));
}

extern "C" __global__ void cluster_sync(int *out) {
    extern __shared__ int data[];
    cg::cluster_group c = cg::this_cluster();
    data[threadIdx.x] = threadIdx.x;
    c.sync();
    int *other = c.map_shared_rank(data, (c.block_rank() + 1) % c.num_blocks());
    atomicAdd(other + threadIdx.x, 3);
    out[threadIdx.x] = other[threadIdx.x];
    asm volatile("barrier.cluster.arrive.aligned;");
    asm volatile("barrier.cluster.wait.aligned;");
    asm volatile("barrier.cluster.arrive.release;");
    asm volatile("barrier.cluster.wait.acquire;");
    asm volatile("barrier.cluster.arrive.relaxed.aligned;");
    uint32_t p;
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0,1,0,p;}" : "=r"(p));
    out[threadIdx.x + 32] = p;
    asm volatile("{.reg .pred p; elect.sync %0|p, 0xff; @p st.global.u32 [%1], %0;}" : "=r"(p) : "l"(out));
}

extern "C" __global__ void dependent(float *out) {
    asm volatile("griddepcontrol.wait;");
    out[threadIdx.x] *= 2;
    asm volatile("griddepcontrol.launch_dependents;");
}

extern "C" __global__ void bulk(char *g, const char *s, uint32_t n, uint64_t policy) {
    __shared__ alignas(128) char buf[4096];
    __shared__ alignas(8) uint64_t bar;
    uint32_t b = smem_of(buf), m = smem_of(&bar);
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(b), "l"(s), "r"(n), "r"(m));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(b), "l"(s), "r"(n), "r"(m), "l"(policy));
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::"r"(b), "l"(s), "r"(n), "r"(m), "h"((short)3));
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(g), "r"(b), "r"(n));
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(b + 1024), "r"(b), "r"(n), "r"(m));
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(g), "r"(b), "r"(n));
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32 [%0], [%1], %2;" ::"l"(g), "r"(b), "r"(n));
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(g), "r"(b), "r"(n));
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%0], [%1], %2;" ::"l"(g), "r"(b), "r"(n));
        asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%0], [%1], %2, [%3];" ::"r"(b), "r"(b), "r"(n), "r"(m));
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(s), "r"(n));
        asm volatile("cp.async.bulk.commit_group;");
        asm volatile("cp.async.bulk.wait_group 1;");
        asm volatile("cp.async.bulk.wait_group.read 0;");
        asm volatile("fence.proxy.async;");
        asm volatile("fence.proxy.async.shared::cta;");
        asm volatile("fence.proxy.async.global;");
    }
}

extern "C" __global__ void tensor(const void *map, int x, int y, int z, char *g) {
    __shared__ alignas(1024) char buf[8192];
    __shared__ alignas(8) uint64_t bar;
    uint32_t b = smem_of(buf), m = smem_of(&bar);
    uint64_t policy = (uint64_t)g;
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(map));
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" ::"r"(b), "l"(map), "r"(m), "r"(x));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" ::"r"(b), "l"(map), "r"(m), "r"(x), "r"(y));
        asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%3,%4,%5}], [%2], %6;" ::"r"(b), "l"(map), "r"(m), "r"(x), "r"(y), "r"(z), "l"(policy));
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%3,%4}], [%2], %5;" ::"r"(b), "l"(map), "r"(m), "r"(x), "r"(y), "h"((short)3));
        asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%3,%4}], [%2];" ::"r"(b), "l"(map), "r"(m), "r"(x), "r"(y), "r"(z));
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5,%3}], [%2], {%6, %6};" ::"r"(b), "l"(map), "r"(m), "r"(x), "r"(y), "r"(z), "h"((short)1));
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2,%3}], [%1];" ::"l"(map), "r"(b), "r"(x), "r"(y));
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2,%3}], [%1];" ::"l"(map), "r"(b), "r"(x), "r"(y));
        asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.bulk_group [%0, {%2,%3}], [%1];" ::"l"(map), "r"(b), "r"(x), "r"(y));
        asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1,%2}];" ::"l"(map), "r"(x), "r"(y));
        asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map));
        asm volatile("fence.proxy.tensormap::generic.release.gpu;");
    }
}

extern "C" __global__ void multimem(float *p, uint32_t *q, float *out) {
    float a, b, c, d;
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(a) : "l"(p));
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(p));
    uint32_t u;
    asm volatile("multimem.ld_reduce.relaxed.gpu.global.add.u32 %0, [%1];" : "=r"(u) : "l"(q));
    asm volatile("multimem.ld_reduce.weak.global.min.s32 %0, [%1];" : "=r"(u) : "l"(q));
    asm volatile("multimem.ld_reduce.relaxed.gpu.global.and.b32 %0, [%1];" : "=r"(u) : "l"(q));
    asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], %1;" ::"l"(p), "f"(a));
    asm volatile("multimem.st.relaxed.sys.global.f32 [%0], %1;" ::"l"(p), "f"(a));
    out[0] = a + b + c + d + u;
}
#endif

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
extern "C" __global__ void pools(float *out) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = 1;
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    out[threadIdx.x + 1] = 1;
}

extern "C" __global__ void groups(float *out, uint64_t da, uint64_t db, uint32_t a) {
    float d[4] = {1, 2, 3, 4};
    int i[4] = {1, 2, 3, 4};
    uint32_t h[2] = {a, a};
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, {%4,%4,%4,%4}, %5, 1, 1, 1, 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, 1, -1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {%0,%1,%2,%3}, %4, %5, 1, 1, 1;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8 {%0,%1,%2,%3}, %4, %5, 1;" : "+r"(i[0]), "+r"(i[1]), "+r"(i[2]), "+r"(i[3]) : "l"(da), "l"(db));
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0,%1}, %2, %3, 0, 1, 1, 0, 1;" : "+r"(h[0]), "+r"(h[1]) : "l"(da), "l"(db));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
    out[threadIdx.x] = d[0] + d[1] + d[2] + d[3] + i[0] + i[1] + i[2] + i[3] + h[0] + h[1];
}
#endif
