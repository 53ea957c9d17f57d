// Streams and events: HIP's own, under the same handles.
#include "access.h"
#include "driver.h"
#include "graph.h"
#include "hostcall.h"
#include "pointer.h"
#include "unsupported.h"

#include <cstring>
#include <unordered_map>

struct CUgreenCtx_st;

using namespace sx;

namespace {

std::mutex g_mutex;

// Stream ids: the default streams have fixed ones, others get theirs when first asked.
unsigned long long stream_id(CUstream stream) {
  static auto *ids = new std::unordered_map<CUstream, unsigned long long>;
  static unsigned long long next = 16;
  if (!stream || stream == CU_STREAM_LEGACY) return 1;
  if (stream == CU_STREAM_PER_THREAD) return 2;
  std::lock_guard<std::mutex> guard(g_mutex);
  auto found = ids->find(stream);
  if (found == ids->end()) found = ids->emplace(stream, next++).first;
  return found->second;
}

bool is_default(CUstream stream) { return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD; }

CUresult create(CUstream *out, unsigned flags, int priority, bool with_priority) {
  if (!out || flags > 1) return CUDA_ERROR_INVALID_VALUE;
  hipStream_t stream = nullptr;
  CUresult result = with_priority && hip().hipStreamCreateWithPriority
                        ? from_hip(hip().hipStreamCreateWithPriority(&stream, flags, priority))
                        : from_hip(hip().hipStreamCreateWithFlags(&stream, flags));
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUstream>(stream);
  return result;
}

struct Callback {
  CUstreamCallback function;
  CUstream stream;
  void *user;
};

void run_callback(hipStream_t, hipError_t status, void *data) {
  auto *callback = static_cast<Callback *>(data);
  callback->function(callback->stream, from_hip(status), callback->user);
  delete callback;
}

CUresult add_callback(CUstream stream, CUstreamCallback function, void *user, unsigned flags) {
  if (!function || flags) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult refused = refused_in_capture(stream)) return refused;
  auto *callback = new Callback{function, stream, user};
  CUresult result = SX_HIP(hipStreamAddCallback, to_hip(stream), run_callback, callback, 0);
  if (result != CUDA_SUCCESS) delete callback;
  return result;
}

CUresult query_event(CUevent event) {
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult refused = refused_as_captured(event)) return refused;
  if (CUresult unsafe = unsafe_in_capture()) return unsafe;
  return SX_HIP(hipEventQuery, to_hip(event));
}

CUresult elapsed(float *milliseconds, CUevent start, CUevent end) {
  if (!start || !end) return CUDA_ERROR_INVALID_HANDLE;
  if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
  if (is_captured(start) || is_captured(end)) return CUDA_ERROR_CAPTURED_EVENT;
  return SX_HIP(hipEventElapsedTime, milliseconds, to_hip(start), to_hip(end));
}

// CU_EVENT_RECORD_EXTERNAL and CU_EVENT_WAIT_EXTERNAL: in a captured stream, a node of the graph.
constexpr unsigned kExternal = 1;

CUresult capture_event(NodeType type, CUevent event, CUstream stream) {
  GraphWork work(type);
  work.event = event;
  return capture(stream, std::move(work));
}

CUresult record(CUevent event, CUstream stream, unsigned flags) {
  CUresult result;
  if (flags > kExternal) return CUDA_ERROR_INVALID_VALUE;
  if (event && flags && is_capturing(stream)) return capture_event(NodeType::RecordEvent, event, stream);
  if (event && flags) return CUDA_ERROR_ILLEGAL_STATE;  // there is no graph for its node
  if (event && captured_record(event, stream, result)) return result;
  return event ? from_hip(hip().hipEventRecord(to_hip(event), to_hip(stream))) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult wait_event(CUstream stream, CUevent event, unsigned flags) {
  CUresult result;
  if (flags > kExternal) return CUDA_ERROR_INVALID_VALUE;
  if (event && flags && is_capturing(stream)) return capture_event(NodeType::WaitEvent, event, stream);
  if (event && captured_wait(stream, event, result)) return result;
  return event ? SX_HIP(hipStreamWaitEvent, to_hip(stream), to_hip(event), 0) : CUDA_ERROR_INVALID_HANDLE;
}

// CU_STREAM_WAIT_VALUE_*: GEQ 0, EQ 1, AND 2, NOR 3, as in HIP; FLUSH (1 << 30) orders remote writes.
constexpr unsigned kWaitFlush = 1u << 30;

CUresult wait_value(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags, bool wide) {
  flags &= ~kWaitFlush;
  if (flags > 3 || !address) return CUDA_ERROR_INVALID_VALUE;
  if (wide) return SX_HIP(hipStreamWaitValue64, to_hip(stream), to_pointer(address), value, flags, UINT64_MAX);
  return SX_HIP(hipStreamWaitValue32, to_hip(stream), to_pointer(address), static_cast<uint32_t>(value), flags,
                UINT32_MAX);
}

CUresult write_value(CUstream stream, CUdeviceptr address, uint64_t value, unsigned flags, bool wide) {
  if (flags > 1 || !address) return CUDA_ERROR_INVALID_VALUE;
  if (!hip().emulated && !may_access(to_pointer(address), wide ? 8 : 4, true)) return CUDA_ERROR_INVALID_VALUE;
  if (wide) return SX_HIP(hipStreamWriteValue64, to_hip(stream), to_pointer(address), value, 0);
  return SX_HIP(hipStreamWriteValue32, to_hip(stream), to_pointer(address), static_cast<uint32_t>(value), 0);
}

// CU_STREAM_MEM_OP_*.
enum : int { kWait32 = 1, kWrite32 = 2, kFlushRemote = 3, kWait64 = 4, kWrite64 = 5, kBarrier = 6 };

CUresult operate(CUstream stream, const CUstreamBatchMemOpParams *operations, size_t count) {
  if (!operations) return CUDA_ERROR_INVALID_VALUE;
  if (is_capturing(stream)) {
    GraphWork work(NodeType::Operations);
    work.operations.assign(operations, operations + count);
    return capture(stream, std::move(work));
  }
  for (size_t i = 0; i < count; ++i) {
    CUresult result = memory_operation(operations[i], stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult operate(CUstream stream, int operation, CUdeviceptr address, uint64_t value, unsigned flags) {
  CUstreamBatchMemOpParams one = {operation, address, value, flags, {}};
  return operate(stream, &one, 1);
}

// Attributes of streams are hints (which part of the L2 to keep, how to wait): stored, and returned.
struct Attribute {
  char bytes[64] = {};
};

std::unordered_map<CUstream, std::unordered_map<int, Attribute>> &attributes() {
  static auto *all = new std::unordered_map<CUstream, std::unordered_map<int, Attribute>>;
  return *all;
}

CUresult set_attribute(CUstream stream, int id, const void *value) {
  if (!value || id <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(g_mutex);
  memcpy(attributes()[stream][id].bytes, value, sizeof(Attribute));
  return CUDA_SUCCESS;
}

CUresult get_attribute(CUstream stream, int id, void *value) {
  if (!value || id <= 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::mutex> guard(g_mutex);
  memcpy(value, attributes()[stream][id].bytes, sizeof(Attribute));
  return CUDA_SUCCESS;
}

CUresult copy_attributes(CUstream to, CUstream from) {
  std::lock_guard<std::mutex> guard(g_mutex);
  attributes()[to] = std::unordered_map<int, Attribute>(attributes()[from]);
  return CUDA_SUCCESS;
}

CUresult current_of(CUstream, CUcontext *context) {
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = current_context()->handle();
  return CUDA_SUCCESS;
}

// Green contexts cannot be made: no stream is of one.
CUresult contexts_of(CUstream s, CUcontext *context, CUgreenCtx_st **green) {
  if (!green) return CUDA_ERROR_INVALID_VALUE;
  *green = nullptr;
  return current_of(s, context);
}

CUresult stream_flags(CUstream stream, unsigned *flags) {
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  return is_default(stream) ? CUDA_SUCCESS : SX_HIP(hipStreamGetFlags, to_hip(stream), flags);
}

CUresult stream_priority(CUstream stream, int *priority) {
  if (!priority) return CUDA_ERROR_INVALID_VALUE;
  *priority = 0;
  return is_default(stream) ? CUDA_SUCCESS : SX_HIP(hipStreamGetPriority, to_hip(stream), priority);
}

CUresult get_id(CUstream stream, unsigned long long *id) {
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = stream_id(stream);
  return CUDA_SUCCESS;
}

CUresult get_device(CUstream, CUdevice *device) {
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  *device = current_device().ordinal;
  return CUDA_SUCCESS;
}

// Managed memory is visible everywhere at all times: attaching it changes nothing.  It is attached as a whole, and not
// to the default stream, which is none in particular.
CUresult attach(CUstream stream, CUdeviceptr pointer, size_t size, unsigned flags) {
  if (CUresult refused = refused_in_capture(stream)) return refused;
  enum : unsigned { kGlobal = 1, kHost = 2, kSingle = 4 };
  const MemoryRange whole = managed_memory(pointer);
  if ((flags != kGlobal && flags != kHost && flags != kSingle) || !whole.size) return CUDA_ERROR_INVALID_VALUE;
  if (flags == kSingle && (!stream || stream == CU_STREAM_LEGACY)) return CUDA_ERROR_INVALID_VALUE;
  return !size || (pointer == whole.base && size == whole.size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult stream_done(CUstream stream) {
  if (CUresult refused = refused_in_capture(stream)) return refused;
  if (CUresult unsafe = unsafe_in_capture()) return unsafe;
  return flush(current_device(), from_hip(hip().hipStreamSynchronize(to_hip(stream))));
}
CUresult stream_query(CUstream stream) {
  if (CUresult refused = refused_in_capture(stream)) return refused;
  if (CUresult unsafe = unsafe_in_capture()) return unsafe;
  return SX_HIP(hipStreamQuery, to_hip(stream));
}

}  // namespace

CUresult sx::record_event(CUevent event, CUstream stream) { return record(event, stream, 0); }

CUresult sx::memory_operation(const CUstreamBatchMemOpParams &o, CUstream stream) {
  switch (o.operation) {
    case kWait32:
    case kWait64: return wait_value(stream, o.address, o.value, o.flags, o.operation == kWait64);
    case kWrite32:
    case kWrite64: return write_value(stream, o.address, o.value, o.flags, o.operation == kWrite64);
    case kFlushRemote:
    case kBarrier: return CUDA_SUCCESS;  // a stream's operations are in order, and seen by all
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

SX_API cuStreamCreate(CUstream *out, unsigned flags) {
  return enter<Need::Context>(__func__, [&] { return create(out, flags, 0, false); });
}

SX_API cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority) {
  return enter<Need::Context>(__func__, [&] { return create(out, flags, priority, true); });
}

SX_API cuStreamDestroy_v2(CUstream stream) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (is_default(stream)) return CUDA_ERROR_INVALID_HANDLE;
    {
      std::lock_guard<std::mutex> guard(g_mutex);
      attributes().erase(stream);  // the handle may come again
    }
    return from_hip(hip().hipStreamDestroy(to_hip(stream)));
  });
}

// A function of a stream in both forms; in `_ptsz` the null stream is the thread's own.
#define SX_STREAM(name, params, stream, ...)                                                  \
  SX_API name params {                                                                        \
    (void)stream;                                                                             \
    return enter<Need::Context>(__func__, [&] { return __VA_ARGS__; });                       \
  }                                                                                           \
  SX_API name##_ptsz params {                                                                 \
    if (!stream) stream = CU_STREAM_PER_THREAD;                                               \
    return enter<Need::Context>(__func__, [&] { return __VA_ARGS__; });                       \
  }

SX_STREAM(cuStreamSynchronize, (CUstream s), s, stream_done(s))
SX_STREAM(cuStreamQuery, (CUstream s), s, stream_query(s))
SX_STREAM(cuStreamWaitEvent, (CUstream s, CUevent event, unsigned flags), s, wait_event(s, event, flags))
SX_STREAM(cuStreamAddCallback, (CUstream s, CUstreamCallback function, void *user, unsigned flags), s,
          add_callback(s, function, user, flags))
SX_STREAM(cuStreamGetFlags, (CUstream s, unsigned *flags), s, stream_flags(s, flags))
SX_STREAM(cuStreamGetPriority, (CUstream s, int *priority), s, stream_priority(s, priority))
SX_STREAM(cuStreamGetId, (CUstream s, unsigned long long *id), s, get_id(s, id))
SX_STREAM(cuStreamGetDevice, (CUstream s, CUdevice *device), s, get_device(s, device))
SX_STREAM(cuStreamGetCtx, (CUstream s, CUcontext *context), s, current_of(s, context))
SX_STREAM(cuStreamGetCtx_v2, (CUstream s, CUcontext *context, CUgreenCtx_st **green), s, contexts_of(s, context, green))
SX_STREAM(cuStreamSetAttribute, (CUstream s, int id, const void *value), s, set_attribute(s, id, value))
SX_STREAM(cuStreamGetAttribute, (CUstream s, int id, void *value), s, get_attribute(s, id, value))
SX_STREAM(cuStreamCopyAttributes, (CUstream s, CUstream from), s, copy_attributes(s, from))
SX_STREAM(cuStreamAttachMemAsync, (CUstream s, CUdeviceptr p, size_t size, unsigned f), s, attach(s, p, size, f))
SX_STREAM(cuStreamWaitValue32_v2, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), s, operate(s, kWait32, a, v, f))
SX_STREAM(cuStreamWaitValue64_v2, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), s, operate(s, kWait64, a, v, f))
SX_STREAM(cuStreamWriteValue32_v2, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned f), s, operate(s, kWrite32, a, v, f))
SX_STREAM(cuStreamWriteValue64_v2, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned f), s, operate(s, kWrite64, a, v, f))
SX_STREAM(cuStreamBatchMemOp_v2, (CUstream s, unsigned count, CUstreamBatchMemOpParams *list, unsigned), s, operate(s, list, count))
SX_STREAM(cuEventRecord, (CUevent event, CUstream s), s, record(event, s, 0))
SX_STREAM(cuEventRecordWithFlags, (CUevent event, CUstream s, unsigned flags), s, record(event, s, flags))

SX_API cuStreamGetGreenCtx(CUstream, CUgreenCtx_st **green) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!green) return CUDA_ERROR_INVALID_VALUE;
    *green = nullptr;
    return CUDA_SUCCESS;
  });
}

SX_API cuEventCreate(CUevent *out, unsigned flags) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    // As an H100: one that other processes open has no time.
    if ((flags & 6) == 4) return CUDA_ERROR_INVALID_VALUE;
    if (flags & 4) return refuse("an interprocess event");
    hipEvent_t event = nullptr;
    CUresult result = from_hip(hip().hipEventCreateWithFlags(&event, flags & 3));
    if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUevent>(event);
    return result;
  });
}

SX_API cuEventDestroy_v2(CUevent event) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    forget_event(event);
    return from_hip(hip().hipEventDestroy(to_hip(event)));
  });
}

SX_API cuEventSynchronize(CUevent event) {
  return enter<Need::Context>(__func__, [&]() -> CUresult {
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    if (CUresult refused = refused_as_captured(event)) return refused;
    if (CUresult unsafe = unsafe_in_capture()) return unsafe;
    return flush(current_device(), from_hip(hip().hipEventSynchronize(to_hip(event))));
  });
}

SX_API cuEventQuery(CUevent event) {
  return enter<Need::Context>(__func__, [&] { return query_event(event); });
}
SX_API cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  return enter<Need::Context>(__func__, [&] { return elapsed(milliseconds, start, end); });
}
SX_API cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  return enter<Need::Context>(__func__, [&] { return elapsed(milliseconds, start, end); });
}

// There is no profiler to start: report success, as the driver does without one.
SX_API cuProfilerStart() {
  return enter<Need::Context>(__func__, []() -> CUresult { return CUDA_SUCCESS; });
}
SX_API cuProfilerStop() {
  return enter<Need::Context>(__func__, []() -> CUresult { return CUDA_SUCCESS; });
}
