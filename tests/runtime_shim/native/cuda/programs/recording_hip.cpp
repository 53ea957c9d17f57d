// A stand-in for AMD's libamdhip64.so, written against AMD's own header: it keeps memory on the heap, runs
// no kernel, and writes one line per call to the file that SX_RECORD names.
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include <elf.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace {

FILE *record() {
  static FILE *file = fopen(getenv("SX_RECORD"), "ae");
  return file;
}

void say(const char *format, ...) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> guard(mutex);
  va_list args;
  va_start(args, format);
  vfprintf(record(), format, args);
  va_end(args);
  fputc('\n', record());
  fflush(record());
}

std::string hex(const void *data, size_t size) {
  std::string text;
  char two[3];
  for (size_t i = 0; i < size; ++i) {
    snprintf(two, sizeof two, "%02x", static_cast<const unsigned char *>(data)[i]);
    text += two;
  }
  return text.empty() ? "-" : text;
}

int g_tokens = 0;
template <typename T>
T token() {
  return reinterpret_cast<T>(static_cast<uintptr_t>(0x1000 + 16 * ++g_tokens));
}

// The name of the stream: 0, 2 (the thread's own) or s (one that was created).
const char *stream_name(hipStream_t s) {
  return !s ? "0" : s == hipStreamPerThread ? "2" : s == hipStreamLegacy ? "1" : "s";
}

}  // namespace

extern "C" {

hipError_t hipInit(unsigned flags) { say("hipInit %u", flags); return hipSuccess; }
hipError_t hipGetDeviceCount(int *n) { *n = 1; say("hipGetDeviceCount"); return hipSuccess; }
hipError_t hipSetDevice(int d) { say("hipSetDevice %d", d); return hipSuccess; }
hipError_t hipGetLastError() { return hipSuccess; }
hipError_t hipDeviceSynchronize() { say("hipDeviceSynchronize"); return hipSuccess; }
hipError_t hipMalloc(void **p, size_t n) { *p = aligned_alloc(256, (n + 255) / 256 * 256); say("hipMalloc %zu", n); return hipSuccess; }
hipError_t hipFree(void *p) { free(p); say("hipFree"); return hipSuccess; }
hipError_t hipMemcpy(void *d, const void *s, size_t n, hipMemcpyKind k) {
  say("hipMemcpy %zu %d", n, k);
  memcpy(d, s, n);
  return hipSuccess;
}
hipError_t hipMemcpyAsync(void *d, const void *s, size_t n, hipMemcpyKind k, hipStream_t stream) {
  say("hipMemcpyAsync %zu %d %s", n, k, stream_name(stream));
  memcpy(d, s, n);
  return hipSuccess;
}
hipError_t hipMemsetAsync(void *d, int v, size_t n, hipStream_t stream) {
  say("hipMemsetAsync %d %zu %s", v, n, stream_name(stream));
  memset(d, v, n);
  return hipSuccess;
}
hipError_t hipMemGetInfo(size_t *a, size_t *t) { *a = 1u << 30; *t = 2u << 30; return hipSuccess; }
hipError_t hipModuleLoadData(hipModule_t *m, const void *image) {
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  size_t size = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  *m = token<hipModule_t>();
  say("hipModuleLoadData %p %s", static_cast<void *>(*m), hex(image, size).c_str());
  return getenv("SX_REFUSE") ? hipErrorNoBinaryForGpu : hipSuccess;
}
hipError_t hipModuleUnload(hipModule_t m) { say("hipModuleUnload %p", static_cast<void *>(m)); return hipSuccess; }
hipError_t hipModuleGetFunction(hipFunction_t *f, hipModule_t m, const char *name) {
  *f = token<hipFunction_t>();
  say("hipModuleGetFunction %p %p %s", static_cast<void *>(*f), static_cast<void *>(m), name);
  return hipSuccess;
}
hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, hipStream_t s, void **params, void **extra) {
  bool good = !params && extra && extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER &&
              extra[2] == HIP_LAUNCH_PARAM_BUFFER_SIZE && extra[4] == HIP_LAUNCH_PARAM_END;
  say("hipModuleLaunchKernel %p %u %u %u %u %u %u %u %s %s", static_cast<void *>(f), gx, gy, gz, bx, by, bz, shared,
      stream_name(s), good ? hex(extra[1], *static_cast<size_t *>(extra[3])).c_str() : "bad");
  return good ? hipSuccess : hipErrorInvalidValue;
}
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned shared, hipStream_t s, void **params) {
  // As AMD's does it: argument 0 is copied by the size in the code object's metadata.
  size_t size = strtoul(getenv("SX_ARGUMENT"), nullptr, 10);
  say("hipModuleLaunchCooperativeKernel %p %u %u %u %u %u %u %u %s %s", static_cast<void *>(f), gx, gy, gz, bx, by, bz,
      shared, stream_name(s), hex(params[0], size).c_str());
  return hipSuccess;
}
hipError_t hipStreamCreateWithFlags(hipStream_t *s, unsigned flags) {
  *s = token<hipStream_t>();
  say("hipStreamCreateWithFlags %u", flags);
  return hipSuccess;
}
hipError_t hipStreamDestroy(hipStream_t s) { say("hipStreamDestroy %s", stream_name(s)); return hipSuccess; }
hipError_t hipStreamSynchronize(hipStream_t s) { say("hipStreamSynchronize %s", stream_name(s)); return hipSuccess; }
hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t, unsigned flags) { say("hipStreamWaitEvent %s %u", stream_name(s), flags); return hipSuccess; }
hipError_t hipEventCreateWithFlags(hipEvent_t *e, unsigned flags) {
  *e = token<hipEvent_t>();
  say("hipEventCreateWithFlags %u", flags);
  return hipSuccess;
}
hipError_t hipEventDestroy(hipEvent_t) { say("hipEventDestroy"); return hipSuccess; }
hipError_t hipEventRecord(hipEvent_t, hipStream_t s) { say("hipEventRecord %s", stream_name(s)); return hipSuccess; }
hipError_t hipEventSynchronize(hipEvent_t) { say("hipEventSynchronize"); return hipSuccess; }
}
