// Streams, events and capture.
#include "state.h"

using namespace sx;

// Defines name and name_ptsz; in the second, stream 0 is the thread's own default stream.
#define SX_STREAM_API(name, parameters, call)                               \
  SX_API name parameters {                                                  \
    return with_context([&] { return driver().call; });                     \
  }                                                                         \
  SX_API name##_ptsz parameters {                                           \
    stream = per_thread(stream);                                            \
    return with_context([&] { return driver().call; });                     \
  }

SX_API cudaStreamCreate(CUstream *stream) {
  return with_context([&] { return driver().cuStreamCreate(stream, 0); });
}
SX_API cudaStreamCreateWithFlags(CUstream *stream, unsigned flags) {
  return with_context([&] { return driver().cuStreamCreate(stream, flags); });
}
SX_API cudaStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority) {
  return with_context([&] { return driver().cuStreamCreateWithPriority(stream, flags, priority); });
}
SX_API cudaStreamDestroy(CUstream stream) {
  return with_context([&] { return driver().cuStreamDestroy_v2(stream); });
}

SX_STREAM_API(cudaStreamSynchronize, (CUstream stream), cuStreamSynchronize(stream))
SX_STREAM_API(cudaStreamQuery, (CUstream stream), cuStreamQuery(stream))
SX_STREAM_API(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
              cuStreamWaitEvent(stream, event, flags))
SX_STREAM_API(cudaStreamAddCallback, (CUstream stream, CUstreamCallback function, void *data, unsigned flags),
              cuStreamAddCallback(stream, function, data, flags))
SX_STREAM_API(cudaStreamGetFlags, (CUstream stream, unsigned *flags), cuStreamGetFlags(stream, flags))
SX_STREAM_API(cudaStreamGetId, (CUstream stream, uint64_t *id), cuStreamGetId(stream, id))
SX_STREAM_API(cudaStreamGetPriority, (CUstream stream, int *priority), cuStreamGetPriority(stream, priority))
SX_STREAM_API(cudaStreamAttachMemAsync, (CUstream stream, void *p, size_t size, unsigned flags),
              cuStreamAttachMemAsync(stream, reinterpret_cast<CUdeviceptr>(p), size, flags))
SX_STREAM_API(cudaStreamSetAttribute, (CUstream stream, int attribute, const void *value),
              cuStreamSetAttribute(stream, attribute, value))
SX_STREAM_API(cudaStreamGetAttribute, (CUstream stream, int attribute, void *value),
              cuStreamGetAttribute(stream, attribute, value))
SX_STREAM_API(cudaStreamIsCapturing, (CUstream stream, int *status), cuStreamIsCapturing(stream, status))
SX_STREAM_API(cudaStreamBeginCapture, (CUstream stream, int mode), cuStreamBeginCapture_v2(stream, mode))
SX_STREAM_API(cudaStreamEndCapture, (CUstream stream, CUgraph *graph), cuStreamEndCapture(stream, graph))

#if SX_CUDART_MAJOR >= 13
#define SX_CAPTURE_INFO cudaStreamGetCaptureInfo
#else
#define SX_CAPTURE_INFO cudaStreamGetCaptureInfo_v3
SX_STREAM_API(cudaStreamGetCaptureInfo, (CUstream stream, int *status, uint64_t *id),
              cuStreamGetCaptureInfo_v2(stream, status, id, nullptr, nullptr, nullptr))
SX_STREAM_API(cudaStreamGetCaptureInfo_v2,
              (CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *n),
              cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, n))
#endif
#define SX_EXPANDED(name, parameters, call) SX_STREAM_API(name, parameters, call)
SX_EXPANDED(SX_CAPTURE_INFO,
            (CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes, const void **,
             size_t *n),
            cuStreamGetCaptureInfo_v2(stream, status, id, graph, nodes, n))
SX_STREAM_API(cudaGraphLaunch, (CUgraphExec exec, CUstream stream), cuGraphLaunch(exec, stream))
SX_STREAM_API(cudaGraphUpload, (CUgraphExec exec, CUstream stream), cuGraphUpload(exec, stream))

SX_API cudaGraphCreate(CUgraph *graph, unsigned flags) {
  return with_context([&] { return driver().cuGraphCreate(graph, flags); });
}
SX_API cudaGraphDestroy(CUgraph graph) {
  return with_context([&] { return driver().cuGraphDestroy(graph); });
}
SX_API cudaGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  return with_context([&] { return driver().cuGraphInstantiateWithFlags(exec, graph, flags); });
}
#if SX_CUDART_MAJOR >= 12
SX_API cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  return with_context([&] { return driver().cuGraphInstantiateWithFlags(exec, graph, flags); });
}
#else
// The node that is at fault and a log of the fault: optional, and nothing says more than the error.
SX_API cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *, char *log, size_t size) {
  if (log && size) *log = '\0';
  return with_context([&] { return driver().cuGraphInstantiateWithFlags(exec, graph, 0); });
}
#endif
SX_API cudaGraphExecDestroy(CUgraphExec exec) {
  return with_context([&] { return driver().cuGraphExecDestroy(exec); });
}

SX_API cudaStreamCopyAttributes(CUstream to, CUstream from) {
  return with_context([&] { return driver().cuStreamCopyAttributes(to, from); });
}

SX_API cudaThreadExchangeStreamCaptureMode(int *mode) {
  return with_driver([&] { return driver().cuThreadExchangeStreamCaptureMode(mode); });
}

SX_API cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  return with_context([&] { return driver().cuCtxGetStreamPriorityRange(least, greatest); });
}

SX_API cudaEventCreate(CUevent *event) {
  return with_context([&] { return driver().cuEventCreate(event, 0); });
}
SX_API cudaEventCreateWithFlags(CUevent *event, unsigned flags) {
  return with_context([&] {
    constexpr unsigned known = 7;  // blocking, no timing, for other processes
    return flags & ~known ? static_cast<int>(kInvalidValue) : driver().cuEventCreate(event, flags);
  });
}
SX_API cudaEventDestroy(CUevent event) {
  return with_context([&] { return driver().cuEventDestroy_v2(event); });
}
SX_API cudaEventQuery(CUevent event) {
  return with_context([&] { return driver().cuEventQuery(event); });
}
SX_API cudaEventSynchronize(CUevent event) {
  return with_context([&] { return driver().cuEventSynchronize(event); });
}
SX_API cudaEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return with_context([&] { return driver().cuEventElapsedTime(milliseconds, start, end); });
}
#if SX_CUDART_MAJOR <= 12
SX_API cudaEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  return cudaEventElapsedTime(milliseconds, start, end);
}
#endif
SX_STREAM_API(cudaEventRecord, (CUevent event, CUstream stream), cuEventRecord(event, stream))
SX_STREAM_API(cudaEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
              cuEventRecordWithFlags(event, stream, flags))
