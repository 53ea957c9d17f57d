#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void wp(int* o, const int* a, int n, unsigned m) {
  int i = threadIdx.x, x = a[i];
  double d = a[i + n];
  long long l = a[i + 2 * n];
#define S(j, e) o[j * n + i] = (e);
  S(0, __shfl_sync(~0u, x, 3))
  S(1, __shfl_up_sync(~0u, x, n)) S(2, __shfl_down_sync(~0u, x, 2, 16))
      S(3, __shfl_xor_sync(~0u, x, 4, 8)) S(4, __shfl_xor_sync(m, d, 1))
          S(5, __shfl_sync(m, l, n & 31)) S(6, __ballot_sync(~0u, x > n))
              S(7, __any_sync(~0u, x > n)) S(8, __all_sync(m, x < n)) S(9, __activemask())
                  S(10, __match_any_sync(~0u, x)) int p;
  S(11, __match_all_sync(~0u, x, &p))
  S(12, p) S(13, __match_any_sync(m, l)) S(14, __popc(__ballot_sync(~0u, i < n)))
#if __CUDA_ARCH__ >= 800
      S(15, __reduce_add_sync(~0u, x)) S(16, __reduce_min_sync(~0u, x))
          S(17, __reduce_max_sync(~0u, (unsigned)x)) S(18, __reduce_or_sync(~0u, (unsigned)x))
              S(19, __reduce_xor_sync(m, (unsigned)x)) S(20, __reduce_and_sync(~0u, (unsigned)x))
#endif
                  unsigned t;
  asm volatile("{.reg .pred q;setp.ne.s32 q,%1,0;vote.sync.uni.pred q,q,-1;selp.u32 %0,1,0,q;}"
               : "=r"(t)
               : "r"(n));
  o[40 * n] = t;
}
extern "C" __global__ void wdiv(int* o, const int* a, int n, unsigned m) {
  int i = threadIdx.x;
  if (a[i] > n) {
    int x = a[i + n];
    x += __shfl_xor_sync(m, x, 1);
    __syncwarp(m);
    o[i] = x;
  } else if (a[i] < 0) {
    o[i] = __ballot_sync(m, a[i + 1]);
  }
  for (int j = 0; j < a[i]; j++) {
    if (a[j] == 3) break;
    o[j] += __shfl_down_sync(m, j, 1);
    if (a[j + n] == 4) return;
  }
  __syncwarp();
  switch (a[i] & 7) {
    case 0:
      o[i] = 1;
      break;
    case 1:
      o[i + n] = 7;
      break;
    case 2:
      o[i - n] *= 3;
      break;
    case 3:
      o[i] = a[n];
      break;
    case 4:
      o[2] = 4;
      __syncwarp();
      break;
    case 5:
      o[i] ^= 3;
      break;
    case 6:
      o[i + 6] = 9;
  }
}
extern "C" __global__ void coop(int* o, const int* a, int n) {
  auto g = cg::this_grid();
  auto b = cg::this_thread_block();
  auto w = cg::tiled_partition<32>(b);
  auto t = cg::tiled_partition<8>(b);
  o[g.thread_rank()] = cg::reduce(w, a[g.thread_rank()], cg::plus<int>());
  g.sync();
  o[1] = t.shfl_xor(a[2], 1);
  auto c = cg::coalesced_threads();
  if (c.thread_rank() == 0) o[3] = c.size();
  o[5] = cg::reduce(t, a[3], cg::greater<int>());
  b.sync();
}
extern "C" __global__ void bars(int* o, int n) {
  asm volatile("bar.sync 1,64;");
  asm volatile("bar.arrive 2,128;");
  asm volatile("bar.sync %0,%1;" ::"r"(n), "r"(n * 32));
  asm volatile("barrier.sync 3;");
  asm volatile("barrier.cta.sync.aligned 4,96;");
  int r;
  asm volatile("{.reg .pred p;setp.ne.s32 p,%1,0;barrier.red.popc.u32 %0,5,p;}" : "=r"(r) : "r"(n));
  o[0] = r;
  if (threadIdx.x < n) asm volatile("barrier.sync 6,32;");
  asm volatile("bar.warp.sync %0;" ::"r"(n));
  asm volatile("barrier.arrive %0,64;" ::"r"(n));
  __nanosleep(100);
  __nanosleep(n);
  asm volatile("bar.sync %0;" ::"r"(n));
}
extern "C" __global__ void spec(unsigned* o, unsigned long long* q) {
  unsigned r;
  unsigned long long s;
  int j = 0;
#define G(x)                                     \
  asm volatile("mov.u32 %0,%%" x ";" : "=r"(r)); \
  o[j++] = r;
#define H(x)                                     \
  asm volatile("mov.u64 %0,%%" x ";" : "=l"(s)); \
  q[j++] = s;
  G("tid.x")
  G("tid.y") G("tid.z") G("ntid.x") G("ntid.y") G("ntid.z") G("ctaid.x") G("ctaid.y") G("ctaid.z")
      G("nctaid.x") G("nctaid.y") G("nctaid.z") G("laneid") G("warpid") G("nwarpid") G("smid")
          G("nsmid") H("gridid") G("lanemask_eq") G("lanemask_le") G("lanemask_lt") G("lanemask_ge")
              G("lanemask_gt") G("clock") G("clock_hi") H("clock64") H("globaltimer")
                  G("globaltimer_lo") G("globaltimer_hi") G("pm0") G("total_smem_size")
                      G("dynamic_smem_size") G("envreg0") G("envreg3")
#if __CUDA_ARCH__ >= 900
                          G("cluster_ctaid.x") G("cluster_nctaid.x") G("cluster_ctarank")
                              G("clusterid.x") G("nclusterid.y") G("aggr_smem_size")
#endif
}
