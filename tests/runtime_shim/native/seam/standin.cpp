// A stand-in for AMD's libamdhip64.so, written against AMD's own header: it checks every argument as
// AMD's library would have it, writes one line of JSON a call, and lets the emulated device do the work.
//
// Device memory is unreadable for the host between calls, as it may be on a card: whoever touches it
// from outside dies of SIGSEGV.  Work is done at once, so that this can be held.
//
//   SX_STANDIN_DEVICE    the emulated libamdhip64.so that does the work
//   SX_STANDIN_DIR       where calls.jsonl and the code objects go (optional)
//   SX_STANDIN_DEVICES   how many GPUs there are (1); 0 answers as AMD's does without a card
//   SX_STANDIN_REFUSE    ordinals of GPUs that take no gfx1100 code, as a string of digits
//   SX_STANDIN_ARCH      what the GPUs call their processor (gfx1100)
//   SX_STANDIN_NOISE     print a line on standard output when loaded, as drivers do
//   SX_STANDIN_HANG, SX_STANDIN_ABORT, SX_STANDIN_FAULT, SX_STANDIN_WRONG
//                        name a kernel whose launch never ends, ends the process (as AMD's does on a fault of
//                        the queue), is answered with 719, or leaves a bit of its newest buffer flipped
#define __HIP_PLATFORM_AMD__
#include "standin.h"

extern "C" {

// --- Device and process ----------------------------------------------------------------------

hipError_t hipInit(unsigned flags) {
  say(__func__, "\"flags\": %u", flags);
  if (flags) return done(wrong(__func__, "flags must be 0"));
  return device_count() ? hipSuccess : hipErrorInvalidDevice;  // 101, as AMD's without a card
}
hipError_t hipGetDeviceCount(int *count) {
  *count = device_count();
  say(__func__);
  return *count ? hipSuccess : hipErrorNoDevice;
}
hipError_t hipSetDevice(int device) {
  say(__func__, "\"device\": %d", device);
  if (device < 0 || device >= device_count()) return done(hipErrorInvalidDevice);
  t_device = device;
  return hipSuccess;
}
hipError_t hipGetDevice(int *device) { *device = t_device; return hipSuccess; }
hipError_t hipGetLastError() { hipError_t last = t_last; t_last = hipSuccess; return last; }
const char *hipGetErrorName(hipError_t error) { return forward<const char *>(__func__, error); }
const char *hipGetErrorString(hipError_t error) { return forward<const char *>(__func__, error); }
hipError_t hipDriverGetVersion(int *version) { *version = 60443483; return hipSuccess; }
hipError_t hipRuntimeGetVersion(int *version) { *version = 60443483; return hipSuccess; }
hipError_t hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device) {
  say(__func__, "\"attribute\": %d, \"device\": %d", int(attribute), device);
  if (attribute == hipDeviceAttributeMultiprocessorCount) *value = 48;
  else if (attribute == hipDeviceAttributeClockRate) *value = 2500000;
  else if (attribute == hipDeviceAttributeVirtualMemoryManagementSupported) *value = 0;
  else return done(hipErrorInvalidValue);
  return hipSuccess;
}
hipError_t hipDeviceGetName(char *name, int length, hipDevice_t) {
  snprintf(name, size_t(length), "Stand-in for a gfx1100");
  return hipSuccess;
}
hipError_t hipDeviceGetUuid(hipUUID *uuid, hipDevice_t) { memset(uuid->bytes, 'u', 16); return hipSuccess; }
hipError_t hipDeviceGetPCIBusId(char *text, int length, int) {
  snprintf(text, size_t(length), "0000:03:00.0");
  return hipSuccess;
}
hipError_t hipDeviceTotalMem(size_t *bytes, hipDevice_t) { *bytes = size_t(24) << 30; return hipSuccess; }
hipError_t hipGetDeviceProperties(hipDeviceProp_t *p, int) {  // exported as hipGetDevicePropertiesR0600
  memset(p, 0, sizeof *p);
  strcpy(p->name, "Stand-in for a gfx1100");
  const char *arch = getenv("SX_STANDIN_ARCH");
  snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s", arch ? arch : "gfx1100");
  p->totalGlobalMem = size_t(24) << 30;
  p->sharedMemPerBlock = 65536;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->clockRate = 2500000;
  p->memoryClockRate = 1249000;
  p->multiProcessorCount = 48;
  return hipSuccess;
}
hipError_t hipDeviceReset() {
  say(__func__);
  Work work;
  (void)DO(hipDeviceSynchronize);
  for (auto &[base, block] : g_blocks) (void)DO(hipFree, block.raw);
  g_blocks.clear();
  g_hosts.clear();
  g_streams.clear();
  g_events.clear();
  g_modules.clear();
  g_kernels.clear();
  return DO(hipDeviceReset);
}
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) { *least = 1; *greatest = -1; return hipSuccess; }
hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value) {
  say(__func__, "\"limit\": %d, \"value\": %zu", int(limit), value);
  return hipSuccess;
}
hipError_t hipDeviceSynchronize() {
  say(__func__);
  wait_forever_if_hung();
  Work work;
  return done(DO(hipDeviceSynchronize));
}

// --- Memory ----------------------------------------------------------------------------------

hipError_t hipMalloc(void **pointer, size_t size) { say(__func__, "\"size\": %zu", size); return allocate(pointer, size); }
hipError_t hipMallocAsync(void **pointer, size_t size, hipStream_t s) {
  say(__func__, "\"size\": %zu, \"stream\": \"%s\"", size, stream_name(s).c_str());
  CHECK_STREAM(s);
  return allocate(pointer, size);
}
hipError_t hipFree(void *pointer) { say(__func__); return release(__func__, pointer); }
hipError_t hipFreeAsync(void *pointer, hipStream_t s) {
  say(__func__, "\"stream\": \"%s\"", stream_name(s).c_str());
  CHECK_STREAM(s);
  return release(__func__, pointer);
}
hipError_t hipMallocManaged(void **pointer, size_t size, unsigned flags) {
  say(__func__, "\"size\": %zu, \"flags\": %u", size, flags);
  if (flags != hipMemAttachGlobal && flags != hipMemAttachHost) return done(wrong(__func__, "unknown flags"));
  Work work;
  return done(DO(hipMallocManaged, pointer, size, flags));
}
hipError_t hipHostMalloc(void **pointer, size_t size, unsigned flags) {
  say(__func__, "\"size\": %zu, \"flags\": %u", size, flags);
  constexpr unsigned known = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined |
                             hipHostMallocNumaUser | hipHostMallocCoherent | hipHostMallocNonCoherent;
  if (flags & ~known) return done(wrong(__func__, "unknown flags"));
  Work work;
  hipError_t status = DO(hipHostMalloc, pointer, size, flags);
  if (status == hipSuccess) g_hosts[reinterpret_cast<uintptr_t>(*pointer)] = size;
  return done(status);
}
hipError_t hipHostFree(void *pointer) {
  say(__func__);
  Work work;
  g_hosts.erase(reinterpret_cast<uintptr_t>(pointer));
  return done(DO(hipHostFree, pointer));
}
hipError_t hipHostRegister(void *pointer, size_t size, unsigned flags) {
  say(__func__, "\"size\": %zu, \"flags\": %u", size, flags);
  constexpr unsigned known = hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory |
                             hipHostRegisterReadOnly;
  if (flags & ~known) return done(wrong(__func__, "unknown flags"));
  Work work;
  hipError_t status = DO(hipHostRegister, pointer, size, flags);
  if (status == hipSuccess) g_hosts[reinterpret_cast<uintptr_t>(pointer)] = size;
  return done(status);
}
hipError_t hipHostUnregister(void *pointer) {
  say(__func__);
  Work work;
  g_hosts.erase(reinterpret_cast<uintptr_t>(pointer));
  return done(DO(hipHostUnregister, pointer));
}
hipError_t hipHostGetDevicePointer(void **device, void *host, unsigned flags) {
  say(__func__);
  if (flags) return done(wrong(__func__, "flags must be 0"));
  Work work;
  return done(DO(hipHostGetDevicePointer, device, host, flags));
}
hipError_t hipHostGetFlags(unsigned *flags, void *host) { Work work; return done(DO(hipHostGetFlags, flags, host)); }
hipError_t hipMemGetInfo(size_t *available, size_t *total) {
  *total = size_t(24) << 30;
  *available = *total - (size_t(1) << 30);
  return hipSuccess;
}
hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t pointer) {
  Work work;
  if (auto *found = block_of(pointer)) {
    if (base) *base = reinterpret_cast<void *>(found->first);
    if (size) *size = found->second.asked;
    return hipSuccess;
  }
  return done(DO(hipMemGetAddressRange, base, size, pointer));
}
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *pointer) {
  Work work;
  return done(DO(hipPointerGetAttributes, attributes, pointer));
}

#include "standin_virtual.h"

static hipError_t copy(const char *call, void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t s) {
  say(call, "\"size\": %zu, \"kind\": %d, \"stream\": \"%s\"", size, int(kind), stream_name(s).c_str());
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return done(wrong(call, "unknown kind"));
  CHECK_STREAM(s);
  CHECK_RANGE(dst, size, kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice);
  CHECK_RANGE(src, size, kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice);
  wait_forever_if_hung();
  Work work;
  return done(DO(hipMemcpyWithStream, dst, src, size, kind, s));
}
hipError_t hipMemcpy(void *dst, const void *src, size_t size, hipMemcpyKind kind) {
  return copy(__func__, dst, src, size, kind, nullptr);
}
hipError_t hipMemcpyAsync(void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t s) {
  return copy(__func__, dst, src, size, kind, s);
}
hipError_t hipMemcpyWithStream(void *dst, const void *src, size_t size, hipMemcpyKind kind, hipStream_t s) {
  return copy(__func__, dst, src, size, kind, s);
}
hipError_t hipMemcpy2DAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t s) {
  say(__func__, "\"width\": %zu, \"height\": %zu, \"kind\": %d, \"stream\": \"%s\"", width, height, int(kind),
      stream_name(s).c_str());
  if (width > dpitch || width > spitch) return done(wrong(__func__, "a row is wider than its pitch"));
  CHECK_STREAM(s);
  if (width && height) {
    CHECK_RANGE(dst, dpitch * (height - 1) + width, false);
    CHECK_RANGE(src, spitch * (height - 1) + width, false);
  }
  Work work;
  return done(DO(hipMemcpy2DAsync, dst, dpitch, src, spitch, width, height, kind, s));
}
hipError_t hipMemsetAsync(void *dst, int value, size_t size, hipStream_t s) {
  say(__func__, "\"size\": %zu, \"value\": %d, \"stream\": \"%s\"", size, value, stream_name(s).c_str());
  CHECK_STREAM(s);
  CHECK_RANGE(dst, size, true);
  Work work;
  return done(DO(hipMemsetAsync, dst, value, size, s));
}
hipError_t hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count, hipStream_t s) {
  say(__func__, "\"count\": %zu, \"stream\": \"%s\"", count, stream_name(s).c_str());
  CHECK_STREAM(s);
  CHECK_RANGE(dst, 2 * count, true);
  Work work;
  return done(DO(hipMemsetD16Async, dst, value, count, s));
}
hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t s) {
  say(__func__, "\"count\": %zu, \"stream\": \"%s\"", count, stream_name(s).c_str());
  CHECK_STREAM(s);
  CHECK_RANGE(dst, 4 * count, true);
  Work work;
  return done(DO(hipMemsetD32Async, dst, value, count, s));
}
hipError_t hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height, hipStream_t s) {
  say(__func__, "\"width\": %zu, \"height\": %zu, \"stream\": \"%s\"", width, height, stream_name(s).c_str());
  CHECK_STREAM(s);
  if (width && height) CHECK_RANGE(dst, pitch * (height - 1) + width, true);
  Work work;
  return done(DO(hipMemset2DAsync, dst, pitch, value, width, height, s));
}

// --- Modules and launches --------------------------------------------------------------------

hipError_t hipModuleLoadData(hipModule_t *module, const void *image) {
  std::lock_guard<std::recursive_mutex> guard(g_mutex);
  static int numbers = 0;
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  // What AMD's loader asks of a code object: an AMD ELF, and code for this very GPU.
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != 224)
    return done(wrong(__func__, "no code object"));
  if (header.e_ident[EI_OSABI] != 64 || header.e_ident[EI_ABIVERSION] != 3 || header.e_type != ET_DYN)
    return done(wrong(__func__, "not of version 5"));
  // Of another GPU than the usual one the emulated device asks.
  if (env("SX_STANDIN_ARCH").empty() && (header.e_flags & 0xff) != 0x41) return done(hipErrorNoBinaryForGpu);
  int number = numbers++;
  size_t size = header.e_shoff + size_t(header.e_shnum) * header.e_shentsize;
  std::string file;
  if (record()) {
    file = "code-" + std::to_string(getpid()) + "-" + std::to_string(number) + ".hsaco";
    FILE *out = fopen((env("SX_STANDIN_DIR") + "/" + file).c_str(), "wbe");
    fwrite(image, 1, size, out);
    fclose(out);
  }
  say(__func__, "\"code\": %d, \"file\": \"%s\"", number, file.c_str());
  if (env("SX_STANDIN_REFUSE").find(char('0' + t_device)) != std::string::npos) return done(hipErrorNoBinaryForGpu);
  Work work;
  hipError_t status = DO(hipModuleLoadData, module, image);
  if (status == hipSuccess) {
    g_modules[*module] = number;
    g_images[number] = Image{image, std::string(static_cast<const char *>(image), size)};
  }
  return done(status);
}
hipError_t hipModuleUnload(hipModule_t module) {
  std::lock_guard<std::recursive_mutex> guard(g_mutex);
  auto at = g_modules.find(module);
  if (at == g_modules.end()) return done(wrong(__func__, "unknown module"));
  say(__func__, "\"code\": %d", at->second);
  if (!image_is_there(at->second)) (void)wrong(__func__, "its code object is gone");
  for (auto k = g_kernels.begin(); k != g_kernels.end();) k = k->second.code == at->second ? g_kernels.erase(k) : ++k;
  g_modules.erase(at);
  Work work;
  return done(DO(hipModuleUnload, module));
}
hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  std::lock_guard<std::recursive_mutex> guard(g_mutex);
  auto at = g_modules.find(module);
  if (at == g_modules.end()) return done(wrong(__func__, "unknown module"));
  say(__func__, "\"code\": %d, \"kernel\": \"%s\"", at->second, name);
  hipError_t status = DO(hipModuleGetFunction, function, module, name);
  if (status == hipSuccess) g_kernels[*function] = Kernel{at->second, name};
  return done(status);
}

static std::string impossible(hipFunction_t f, const unsigned (&grid)[3], const unsigned (&block)[3], unsigned shared,
                              hipStream_t s) {
  if (!g_kernels.count(f)) return "unknown function";
  if (!image_is_there(g_kernels[f].code)) return "its code object is gone";
  for (unsigned n : grid)
    if (!n) return "an empty grid";
  for (unsigned n : block)
    if (!n) return "an empty block";
  if (size_t(block[0]) * block[1] * block[2] > 1024) return "more than 1024 threads";
  // HIP keeps a dimension's work items in 32 bits.
  for (int i = 0; i < 3; ++i)
    if (size_t(grid[i]) * block[i] > 0xffffffff) return "more than 2^32 work items in a dimension";
  if (shared > 65536) return "more than 64 KiB of dynamic LDS";
  return bad_stream(s);
}
static void say_launch(const char *call, hipFunction_t f, const unsigned (&g)[3], const unsigned (&b)[3],
                       unsigned shared, hipStream_t s, const std::string &segment) {
  const Kernel &kernel = g_kernels[f];
  say(call,
      "\"code\": %d, \"kernel\": \"%s\", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %u, "
      "\"stream\": \"%s\", \"kernarg\": \"%s\"",
      kernel.code, kernel.name.c_str(), g[0], g[1], g[2], b[0], b[1], b[2], shared, stream_name(s).c_str(),
      segment.c_str());
}
// What the tests of selftest want to happen; hipSuccess: the launch itself.
static hipError_t mischief(hipFunction_t f) {
  const std::string &name = g_kernels[f].name;
  if (name == env("SX_STANDIN_HANG")) g_hung = true;
  if (name == env("SX_STANDIN_ABORT")) abort();
  if (name == env("SX_STANDIN_FAULT")) return hipErrorLaunchFailure;
  return hipSuccess;
}
static void flip_a_bit(hipFunction_t f) {
  if (g_kernels[f].name != env("SX_STANDIN_WRONG") || g_blocks.empty()) return;
  (void)DO(hipDeviceSynchronize);
  uintptr_t newest = 0;
  for (auto &[base, block] : g_blocks) newest = base > newest ? base : newest;
  *reinterpret_cast<unsigned *>(newest) ^= 1;
}

hipError_t hipModuleLaunchKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                 unsigned bz, unsigned shared, hipStream_t s, void **params, void **extra) {
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  Work work;
  if (std::string why = impossible(f, grid, block, shared, s); !why.empty()) return done(wrong(__func__, why));
  // The two ways to give arguments exclude each other.
  if (params || !extra) return done(wrong(__func__, "arguments not in a packed buffer"));
  if (extra[0] != HIP_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != HIP_LAUNCH_PARAM_BUFFER_SIZE ||
      extra[4] != HIP_LAUNCH_PARAM_END)
    return done(wrong(__func__, "extra is not {POINTER, p, SIZE, &n, END}"));
  say_launch(__func__, f, grid, block, shared, s, hex(extra[1], *static_cast<size_t *>(extra[3])));
  if (hipError_t status = mischief(f); status != hipSuccess) return done(status);
  if (g_hung) return hipSuccess;
  hipError_t status = DO(hipModuleLaunchKernel, f, gx, gy, gz, bx, by, bz, shared, s, params, extra);
  flip_a_bit(f);
  return done(status);
}
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                            unsigned by, unsigned bz, unsigned shared, hipStream_t s, void **params) {
  const unsigned grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
  Work work;
  if (std::string why = impossible(f, grid, block, shared, s); !why.empty()) return done(wrong(__func__, why));
  if (!params || !params[0]) return done(wrong(__func__, "no arguments"));
  say_launch(__func__, f, grid, block, shared, s, "");
  return done(DO(hipModuleLaunchCooperativeKernel, f, gx, gy, gz, bx, by, bz, shared, s, params));
}
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, hipFunction_t f, int size, size_t shared) {
  std::lock_guard<std::recursive_mutex> guard(g_mutex);
  if (!g_kernels.count(f)) return done(wrong(__func__, "unknown function"));
  return done(DO(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, blocks, f, size, shared));
}

// --- Streams and events ----------------------------------------------------------------------

static hipError_t created(hipError_t status, hipStream_t *s) {
  if (status == hipSuccess) g_streams.insert(*s);
  return done(status);
}
hipError_t hipStreamCreateWithFlags(hipStream_t *s, unsigned flags) {
  say(__func__, "\"flags\": %u", flags);
  if (flags > hipStreamNonBlocking) return done(wrong(__func__, "unknown flags"));
  Work work;
  return created(DO(hipStreamCreateWithFlags, s, flags), s);
}
hipError_t hipStreamCreateWithPriority(hipStream_t *s, unsigned flags, int priority) {
  say(__func__, "\"flags\": %u, \"priority\": %d", flags, priority);
  if (flags > hipStreamNonBlocking) return done(wrong(__func__, "unknown flags"));
  Work work;
  return created(DO(hipStreamCreateWithPriority, s, flags, priority), s);
}
hipError_t hipStreamDestroy(hipStream_t s) {
  say(__func__);
  Work work;
  if (!g_streams.erase(s)) return done(wrong(__func__, "no stream that was created"));
  return done(DO(hipStreamDestroy, s));
}
hipError_t hipStreamSynchronize(hipStream_t s) {
  say(__func__, "\"stream\": \"%s\"", stream_name(s).c_str());
  CHECK_STREAM(s);
  wait_forever_if_hung();
  Work work;
  return done(DO(hipStreamSynchronize, s));
}
hipError_t hipStreamQuery(hipStream_t s) { CHECK_STREAM(s); Work work; return done(DO(hipStreamQuery, s)); }
hipError_t hipStreamWaitEvent(hipStream_t s, hipEvent_t event, unsigned flags) {
  say(__func__, "\"stream\": \"%s\", \"flags\": %u", stream_name(s).c_str(), flags);
  CHECK_STREAM(s);
  CHECK_EVENT(event);
  if (flags) return done(wrong(__func__, "flags must be 0"));
  Work work;
  return done(DO(hipStreamWaitEvent, s, event, flags));
}
hipError_t hipStreamGetFlags(hipStream_t s, unsigned *flags) { CHECK_STREAM(s); Work work; return done(DO(hipStreamGetFlags, s, flags)); }
hipError_t hipStreamGetPriority(hipStream_t s, int *p) { CHECK_STREAM(s); Work work; return done(DO(hipStreamGetPriority, s, p)); }
hipError_t hipStreamAddCallback(hipStream_t s, hipStreamCallback_t callback, void *user, unsigned flags) {
  say(__func__, "\"stream\": \"%s\"", stream_name(s).c_str());
  CHECK_STREAM(s);
  if (!callback || flags) return done(wrong(__func__, "no callback, or flags"));
  return done(DO(hipStreamAddCallback, s, callback, user, flags));  // no lock: it may wait for another thread
}
hipError_t hipLaunchHostFunc(hipStream_t s, hipHostFn_t function, void *user) {
  say(__func__, "\"stream\": \"%s\"", stream_name(s).c_str());
  CHECK_STREAM(s);
  return done(DO(hipLaunchHostFunc, s, function, user));
}
hipError_t hipStreamWaitValue32(hipStream_t s, void *p, uint32_t value, unsigned flags, uint32_t mask) {
  CHECK_STREAM(s);
  if (flags > hipStreamWaitValueNor) return done(wrong(__func__, "unknown flags"));
  return done(DO(hipStreamWaitValue32, s, p, value, flags, mask));
}
hipError_t hipStreamWaitValue64(hipStream_t s, void *p, uint64_t value, unsigned flags, uint64_t mask) {
  CHECK_STREAM(s);
  if (flags > hipStreamWaitValueNor) return done(wrong(__func__, "unknown flags"));
  return done(DO(hipStreamWaitValue64, s, p, value, flags, mask));
}
hipError_t hipStreamWriteValue32(hipStream_t s, void *p, uint32_t value, unsigned flags) {
  CHECK_STREAM(s);
  Work work;
  return done(DO(hipStreamWriteValue32, s, p, value, flags));
}
hipError_t hipStreamWriteValue64(hipStream_t s, void *p, uint64_t value, unsigned flags) {
  CHECK_STREAM(s);
  Work work;
  return done(DO(hipStreamWriteValue64, s, p, value, flags));
}
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  say(__func__, "\"flags\": %u", flags);
  if (flags & ~(hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess))
    return done(wrong(__func__, "unknown flags"));
  Work work;
  hipError_t status = DO(hipEventCreateWithFlags, event, flags);
  if (status == hipSuccess) g_events.insert(*event);
  return done(status);
}
hipError_t hipEventDestroy(hipEvent_t event) {
  say(__func__);
  Work work;
  if (!g_events.erase(event)) return done(wrong(__func__, "unknown event"));
  return done(DO(hipEventDestroy, event));
}
hipError_t hipEventRecord(hipEvent_t event, hipStream_t s) {
  say(__func__, "\"stream\": \"%s\"", stream_name(s).c_str());
  CHECK_EVENT(event);
  CHECK_STREAM(s);
  Work work;
  return done(DO(hipEventRecord, event, s));
}
hipError_t hipEventSynchronize(hipEvent_t event) {
  say(__func__);
  CHECK_EVENT(event);
  wait_forever_if_hung();
  Work work;
  return done(DO(hipEventSynchronize, event));
}
hipError_t hipEventQuery(hipEvent_t event) { CHECK_EVENT(event); Work work; return done(DO(hipEventQuery, event)); }
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  CHECK_EVENT(start);
  CHECK_EVENT(stop);
  Work work;
  return done(DO(hipEventElapsedTime, milliseconds, start, stop));
}

}  // extern "C"
