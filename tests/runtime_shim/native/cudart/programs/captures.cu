// What each call answers while a stream is captured, in the three modes, and what becomes of the capture.
// captures.txt is what an H100 printed, with NVIDIA's runtime 13.0 and driver 580.
#include <cstdio>

#include <cuda_runtime.h>

__global__ void k(int *p) { p[threadIdx.x] = threadIdx.x; }
static void CUDART_CB on_host(void *) {}
static void CUDART_CB called_back(cudaStream_t, cudaError_t, void *) {}

template <typename Call>
static void in_capture(const char *name, cudaStreamCaptureMode mode, cudaStream_t stream, Call call) {
  const int begin = cudaStreamBeginCapture(stream, mode), result = call();
  cudaGetLastError();
  cudaStreamCaptureStatus status = static_cast<cudaStreamCaptureStatus>(9);
  const int asked = cudaStreamIsCapturing(stream, &status);
  cudaGraph_t graph = nullptr;
  const int end = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();
  size_t nodes = 0;
  if (graph) {
    cudaGraphGetNodes(graph, nullptr, &nodes);
    cudaGraphDestroy(graph);
  }
  printf("%s mode %d: begin %d call %d status %d/%d end %d graph %d nodes %zu\n", name, mode, begin, result, asked, status,
         end, graph != nullptr, nodes);
}

int main() {
  int *d, *h, *m;
  static int pageable[2048];
  // Registered as a whole page.
  int *page = reinterpret_cast<int *>((reinterpret_cast<size_t>(pageable) + 4095) & ~size_t{4095});
  cudaMalloc(&d, 1 << 16);
  cudaMallocHost(&h, 1 << 16);
  cudaMallocManaged(&m, 4096);
  cudaStream_t s, nb;
  cudaStreamCreate(&s);
  cudaStreamCreateWithFlags(&nb, cudaStreamNonBlocking);
  cudaEvent_t e, e2, t1, t2;
  cudaEventCreate(&t1);
  cudaEventCreate(&t2);
  cudaEventCreate(&e2);
  cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
  for (cudaEvent_t event : {e, t1, t2}) cudaEventRecord(event, s);
  cudaStreamSynchronize(s);
  const cudaMemLocation here{cudaMemLocationTypeDevice, 0};
  float ms;
  for (int mode = 0; mode < 3; mode++) {
    const auto M = static_cast<cudaStreamCaptureMode>(mode);
    const auto in = [&](const char *name, auto call) { in_capture(name, M, s, call); };
    const auto in_nb = [&](const char *name, auto call) { in_capture(name, M, nb, call); };
    const auto launched = [&](cudaStream_t stream, int threads) {
      k<<<1, threads, 0, stream>>>(d);
      return cudaGetLastError();
    };
    int *q = nullptr;
    in("kernel", [&] { return launched(s, 32); });
    in("legacy kernel", [&] { return launched(0, 32); });
    in_nb("legacy kernel nb", [&] { return launched(0, 32); });
    in("legacy memcpy", [&] { return cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice); });
    in_nb("legacy memcpy nb", [&] { return cudaMemcpy(d, h, 4, cudaMemcpyHostToDevice); });
    in("legacy async", [&] { return cudaMemcpyAsync(d, h, 4, cudaMemcpyHostToDevice, 0); });
    in("async", [&] { return cudaMemcpyAsync(d, h, 4, cudaMemcpyHostToDevice, s); });
    in("async pageable", [&] { return cudaMemcpyAsync(d, page, 4, cudaMemcpyHostToDevice, s); });
    in("async pageable d2h", [&] { return cudaMemcpyAsync(page, d, 4, cudaMemcpyDeviceToHost, s); });
    in("malloc", [&] { return cudaMalloc(&q, 4); });
    in("free", [&] { return cudaFree(nullptr); });
    in("mallochost", [&] { return cudaMallocHost(&q, 4); });
    in("managed", [&] { return cudaMallocManaged(&q, 4); });
    in("mallocasync", [&] { return cudaMallocAsync(&q, 64, s); });
    in("sync stream", [&] { return cudaStreamSynchronize(s); });
    in("sync other", [&] { return cudaStreamSynchronize(nb); });
    in("query", [&] { return cudaStreamQuery(s); });
    in("query other", [&] { return cudaStreamQuery(nb); });
    in("device sync", [&] { return cudaDeviceSynchronize(); });
    in("legacy sync", [&] { return cudaStreamSynchronize(0); });
    in("event record sync", [&] { return cudaEventRecord(e, s), cudaEventSynchronize(e); });
    in("event record query", [&] { return cudaEventRecord(e, s), cudaEventQuery(e); });
    in("event other query", [&] { return cudaEventQuery(t1); });
    in("event other sync", [&] { return cudaEventSynchronize(t1); });
    in("event elapsed",
       [&] { return cudaEventRecord(t1, s), cudaEventRecord(t2, s), cudaEventElapsedTime(&ms, t1, t2); });
    in("fork unjoined", [&] { return cudaEventRecord(e, s), cudaStreamWaitEvent(nb, e, 0), launched(nb, 32); });
    in("fork joined", [&] {
      cudaEventRecord(e, s);
      cudaStreamWaitEvent(nb, e, 0);
      launched(nb, 32);
      return cudaEventRecord(e2, nb), cudaStreamWaitEvent(s, e2, 0);
    });
    in("wait legacy event", [&] { return cudaStreamWaitEvent(s, t1, 0); });
    in("legacy waits", [&] { return cudaEventRecord(e, s), cudaStreamWaitEvent(0, e, 0); });
    in("legacy record", [&] { return cudaEventRecord(e, 0); });
    in("hostfunc", [&] { return cudaLaunchHostFunc(s, on_host, nullptr); });
    in("callback", [&] { return cudaStreamAddCallback(s, called_back, nullptr, 0); });
    in("memset", [&] { return cudaMemsetAsync(d, 0, 64, s); });
    in("memset legacy", [&] { return cudaMemset(d, 0, 64); });
    in("memset 0", [&] { return cudaMemsetAsync(d, 0, 0, s); });
    in("memcpy 0", [&] { return cudaMemcpyAsync(d, h, 0, cudaMemcpyDefault, s); });
    in("stream create", [&] { cudaStream_t made; return cudaStreamCreate(&made); });
    in("event create", [&] { cudaEvent_t made; return cudaEventCreate(&made); });
    in("begin again", [&] { return cudaStreamBeginCapture(s, M); });
    in("destroy", [&] { return cudaStreamAttachMemAsync(s, m); });
    in("prefetch", [&] { return cudaMemPrefetchAsync(m, 4096, here, 0, s); });
    in("launch bad", [&] { return launched(s, 2048); });
    in("func attr", [&] { return cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024); });
    in("occupancy", [&] { int b; return cudaOccupancyMaxActiveBlocksPerMultiprocessor(&b, k, 32, 0); });
    in("getattr", [&] { cudaPointerAttributes a; return cudaPointerGetAttributes(&a, d); });
    in("meminfo", [&] { size_t a, b; return cudaMemGetInfo(&a, &b); });
    in("devlimit", [&] { return cudaDeviceSetLimit(cudaLimitStackSize, 2048); });
    in("hostregister", [&] {
      const cudaError_t result = cudaHostRegister(page, 4096, 0);
      cudaHostUnregister(page);
      return result;
    });
  }
}
