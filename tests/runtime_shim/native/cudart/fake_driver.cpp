// A driver library that records its calls on standard error, one line each, and does nothing else but keep
// memory.  Every code path of the runtime over it is visible in the lines.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define ENTRY extern "C" int

static int say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("CALL ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  return 0;
}

static thread_local void *t_context;
static int g_managed[4];
static float g_global[16];

static int number(const char *name, int fallback) {
  const char *text = getenv(name);
  return text ? atoi(text) : fallback;
}

ENTRY cuDriverGetVersion(int *v) { return *v = number("FAKE_VERSION", 13000), 0; }
ENTRY cuInit(unsigned) { return say("cuInit"), number("FAKE_INIT", 0); }
ENTRY cuDeviceGetCount(int *n) { return *n = 1, 0; }
ENTRY cuDeviceGet(int *d, int ordinal) { return ordinal ? 101 : (*d = 0); }
ENTRY cuDeviceGetName(char *s, int n, int) { return snprintf(s, static_cast<size_t>(n), "recorder"), 0; }
ENTRY cuDeviceGetUuid(char *u, int) { return memset(u, 7, 16), 0; }
ENTRY cuDeviceTotalMem_v2(size_t *s, int) { return *s = size_t{3} << 30, 0; }
ENTRY cuDeviceGetAttribute(int *v, int a, int) { return *v = 1000 + a, 0; }
ENTRY cuCtxGetCurrent(void **c) { return *c = t_context, 0; }
ENTRY cuCtxSetCurrent(void *c) { return t_context = c, say("cuCtxSetCurrent"); }
ENTRY cuCtxGetDevice(int *d) { return *d = 0; }
ENTRY cuCtxSynchronize() { return say("cuCtxSynchronize"); }
ENTRY cuDevicePrimaryCtxRetain(void **c, int) { return *c = &g_managed, say("cuDevicePrimaryCtxRetain"); }
ENTRY cuDevicePrimaryCtxReset_v2(int) { return say("cuDevicePrimaryCtxReset"); }
ENTRY cuMemAlloc_v2(uint64_t *p, size_t n) {
  say("cuMemAlloc %zu", n);
  if (n > size_t{1} << 32) return 2;
  return *p = reinterpret_cast<uint64_t>(malloc(n)), 0;
}
ENTRY cuMemGetInfo_v2(size_t *a, size_t *b) { return *a = *b = 1 << 20, 0; }
ENTRY cuMemFree_v2(uint64_t p) {
  say("cuMemFree");
  if (!p) return 0;
  if (p < 4096) return 1;
  return free(reinterpret_cast<void *>(p)), 0;
}
ENTRY cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n) {
  memcpy(reinterpret_cast<void *>(to), from, n);
  return say("cuMemcpyHtoD %zu", n);
}
ENTRY cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n) {
  memcpy(to, reinterpret_cast<void *>(from), n);
  return say("cuMemcpyDtoH %zu", n);
}
ENTRY cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream) {
  memcpy(reinterpret_cast<void *>(to), from, n);
  return say("cuMemcpyHtoDAsync %zu stream %p", n, stream);
}
ENTRY cuStreamSynchronize(void *stream) { return say("cuStreamSynchronize %p", stream); }
ENTRY cuStreamQuery(void *) { return 600; }
ENTRY cuLibraryLoadData(void **library, const uint32_t *image, int *, void **, unsigned, int *options, void **,
                        unsigned count) {
  *library = &g_global;
  return say("cuLibraryLoadData %x option %d of %u", image[0], options[0], count);
}
ENTRY cuLibraryUnload(void *) { return say("cuLibraryUnload"); }
ENTRY cuLibraryGetKernel(void **kernel, void *, const char *name) {
  say("cuLibraryGetKernel %s", name);
  if (strstr(name, "missing")) return 209;
  return *kernel = strdup(name), 0;
}
ENTRY cuLibraryGetGlobal(uint64_t *p, size_t *n, void *, const char *name) {
  *p = reinterpret_cast<uint64_t>(g_global), *n = 16;
  return say("cuLibraryGetGlobal %s", name);
}
ENTRY cuLibraryGetManaged(uint64_t *p, size_t *n, void *, const char *name) {
  *p = reinterpret_cast<uint64_t>(g_managed), *n = 4;
  return say("cuLibraryGetManaged %s", name);
}
ENTRY cuKernelGetAttribute(int *v, int a, void *, int) { return *v = 100 + a, 0; }
ENTRY cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, void *kernel, int size, size_t, unsigned) {
  *n = 7;
  return say("cuOccupancy %s %d", static_cast<char *>(kernel), size);
}
ENTRY cuLaunchKernel(void *kernel, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                     unsigned shared, void *stream, void **arguments, void **) {
  return say("cuLaunchKernel %s grid %u %u %u block %u %u %u shared %u stream %p first %d",
             static_cast<char *>(kernel), gx, gy, gz, bx, by, bz, shared, stream, *static_cast<int *>(arguments[0]));
}
