// Versions, the profiler's switches, libraries loaded by hand, and access to the driver.
#include <atomic>
#include <cstring>
#include <dlfcn.h>

#include "log.h"
#include "registry.h"
#include "state.h"

using namespace sx;

SX_API cudaRuntimeGetVersion(int *version) {
  if (!version) return record(kInvalidValue);
  *version = kRuntimeVersion;
  return kSuccess;
}

// Returns 0 if there is no driver, which is not an error.
SX_API cudaDriverGetVersion(int *version) {
  if (!version) return record(kInvalidValue);
  *version = 0;
  const Driver *d = load_driver();
  return record(d ? d->cuDriverGetVersion(version) : static_cast<int>(kSuccess));
}

#if SX_CUDART_MAJOR >= 13
SX_API cudaLogsRegisterCallback(void *heard, void *data, void **handle) {
  return with_driver([&] { return driver().cuLogsRegisterCallback(heard, data, handle); });
}
SX_API cudaLogsUnregisterCallback(void *handle) {
  return with_driver([&] { return driver().cuLogsUnregisterCallback(handle); });
}
SX_API cudaLogsCurrent(unsigned *iterator, unsigned flags) {
  return with_driver([&] { return driver().cuLogsCurrent(iterator, flags); });
}
SX_API cudaLogsDumpToMemory(unsigned *iterator, char *buffer, size_t *size, unsigned flags) {
  return with_driver([&] { return driver().cuLogsDumpToMemory(iterator, buffer, size, flags); });
}
SX_API cudaLogsDumpToFile(unsigned *iterator, const char *path, unsigned flags) {
  return with_driver([&] { return driver().cuLogsDumpToFile(iterator, path, flags); });
}
#endif

SX_API cudaProfilerStart() {
  return with_context([] { return driver().cuProfilerStart(); });
}

SX_API cudaProfilerStop() {
  return with_context([] { return driver().cuProfilerStop(); });
}

// The tables are private interfaces of NVIDIA's own runtime; this one has none and answers for none.
// Said once, because what asks for one may show another error, or none: cuBLAS says CUBLAS_STATUS_ARCH_MISMATCH.
SX_API cudaGetExportTable(const void **table, const void *id) {
  if (table) *table = nullptr;
  static std::atomic<bool> said;
  Dl_info caller;
  if (id && !said.exchange(true)) {
    const bool known = dladdr(__builtin_return_address(0), &caller) && caller.dli_fname;
    unsigned char b[4];
    memcpy(b, id, sizeof b);
    log_line("SX0765: %s requests a private table of NVIDIA's runtime (%02x%02x%02x%02x), which does not exist here: its call may fail",
             known ? caller.dli_fname : "the application", b[0], b[1], b[2], b[3]);
  }
  return record(kNotSupported);
}

namespace {

int entry_point(const char *symbol, void **function, int version, uint64_t flags, int *status) {
  return with_driver([&] {
    if (!symbol || !function) return static_cast<int>(kInvalidValue);
    int found = 0;
    int error = driver().cuGetProcAddress_v2(symbol, function, version, flags, &found);
    if (status) *status = found;
    return error;
  });
}

constexpr uint64_t kPerThreadEntry = 2;  // asks the driver for the variant with a default stream per thread

}  // namespace

#if SX_CUDART_MAJOR >= 12
#define SX_STATUS , int *status
#else
#define SX_STATUS  // 11 reports no status
constexpr int *status = nullptr;
#endif
SX_API cudaGetDriverEntryPoint(const char *symbol, void **function, uint64_t flags SX_STATUS) {
  return entry_point(symbol, function, kRuntimeVersion, flags, status);
}
SX_API cudaGetDriverEntryPoint_ptsz(const char *symbol, void **function, uint64_t flags SX_STATUS) {
  return entry_point(symbol, function, kRuntimeVersion, flags ? flags : kPerThreadEntry, status);
}
#if SX_CUDART_MAJOR >= 12
SX_API cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version, uint64_t flags,
                                        int *status) {
  return entry_point(symbol, function, static_cast<int>(version), flags, status);
}
SX_API cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **function, unsigned version, uint64_t flags,
                                             int *status) {
  return entry_point(symbol, function, static_cast<int>(version), flags ? flags : kPerThreadEntry, status);
}
#endif

SX_API cudaLibraryLoadData(CUlibrary *library, const void *code, int *jit, void **jit_values, unsigned jit_count,
                           int *options, void **values, unsigned count) {
  return with_driver([&] {
    return driver().cuLibraryLoadData(library, code, jit, jit_values, jit_count, options, values, count);
  });
}
SX_API cudaLibraryLoadFromFile(CUlibrary *library, const char *path, int *jit, void **jit_values, unsigned jit_count,
                               int *options, void **values, unsigned count) {
  return with_driver([&] {
    return driver().cuLibraryLoadFromFile(library, path, jit, jit_values, jit_count, options, values, count);
  });
}
SX_API cudaLibraryUnload(CUlibrary library) {
  return with_driver([&] { return driver().cuLibraryUnload(library); });
}
SX_API cudaLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  return with_driver([&] {
    int error = driver().cuLibraryGetKernel(kernel, library, name);
    if (error) return error;
    const char *lasting = nullptr;
    if (driver().cuKernelGetName(&lasting, *kernel)) lasting = nullptr;
    adopt_kernel(*kernel, lasting);
    return error;
  });
}
SX_API cudaLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  return with_driver([&] { return driver().cuLibraryGetKernelCount(count, library); });
}
SX_API cudaLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
  return with_driver([&] {
    int error = driver().cuLibraryEnumerateKernels(kernels, count, library);
    for (unsigned i = 0; !error && i < count; ++i) {
      const char *lasting = nullptr;
      if (driver().cuKernelGetName(&lasting, kernels[i])) lasting = nullptr;
      adopt_kernel(kernels[i], lasting);
    }
    return error;
  });
}
SX_API cudaLibraryGetGlobal(void **address, size_t *size, CUlibrary library, const char *name) {
  return with_context([&] {
    CUdeviceptr found = 0;
    int error = driver().cuLibraryGetGlobal(&found, size, library, name);
    if (!error && address) *address = reinterpret_cast<void *>(found);
    return error;
  });
}
SX_API cudaLibraryGetManaged(void **address, size_t *size, CUlibrary library, const char *name) {
  return with_context([&] {
    CUdeviceptr found = 0;
    int error = driver().cuLibraryGetManaged(&found, size, library, name);
    if (!error && address) *address = reinterpret_cast<void *>(found);
    return error;
  });
}

#if SX_CUDART_MAJOR <= 12
// Names of the first CUDA releases, kept by 12 and dropped by 13.
SX_API cudaDeviceSynchronize();
SX_API cudaDeviceReset();
SX_API cudaThreadSynchronize() { return cudaDeviceSynchronize(); }
SX_API cudaThreadExit() { return cudaDeviceReset(); }
#endif
