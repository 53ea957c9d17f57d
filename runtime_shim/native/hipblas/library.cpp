#include "library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "device.h"
#include "log.h"

namespace sx::hipblas {
namespace {

constexpr int kSuccess = 0, kAtomicsNotAllowed = 0, kAtomicsAllowed = 1;

struct HipBlas {
  void *handle = nullptr;
  int release = 0;
  int (*create)(void **) = nullptr;
  int (*destroy)(void *) = nullptr;
  int (*set_stream)(void *, CUstream) = nullptr;
  int (*set_pointer_mode)(void *, int) = nullptr;
  int (*set_atomics_mode)(void *, int) = nullptr;
};

// What the library says that it is, whatever its file is called.
std::string soname(void *handle) {
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map) return "";
  const char *strings = nullptr;
  uint64_t at = 0;
  for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_STRTAB) strings = reinterpret_cast<const char *>(d->d_un.d_ptr);
    if (d->d_tag == DT_SONAME) at = d->d_un.d_val;
  }
  return strings && at ? strings + at : "";
}

// hipBLAS brings the HIP library that it was linked with; another than the driver's would have memory of its own.
bool two_hips() {
  int loaded = 0;
  for (const char *name : {"libamdhip64.so.6", "libamdhip64.so.7"}) loaded += dlopen(name, RTLD_NOW | RTLD_NOLOAD) != nullptr;
  return loaded > 1;
}

void unusable(const std::string &why) { replace::refuse("cublas", "SX0786: cuBLAS on an AMD card needs hipBLAS of ROCm 6 or 7: " + why); }

HipBlas load() {
  HipBlas api;
  std::string reason;
  void *handle = open_library("SASSXLATE_HIPBLAS", {"libhipblas.so.3", "libhipblas.so.2"}, reason);
  if (!handle) return unusable("it cannot be loaded: " + reason), api;
  const std::string name = soname(handle);
  const int release = name == "libhipblas.so.2" ? 2 : name == "libhipblas.so.3" ? 3 : 0;
  if (!release) return unusable("the one that is there is " + (name.empty() ? "of an unknown release" : name)), api;
  if (two_hips()) return unusable(name + " is linked with another HIP library than " + replace::hip_library()), api;
#define F(member, function)                                                                                \
  api.member = reinterpret_cast<decltype(api.member)>(dlsym(handle, #function));                           \
  if (!api.member) return unusable(name + " has no " #function), api;
  F(create, hipblasCreate)
  F(destroy, hipblasDestroy)
  F(set_stream, hipblasSetStream)
  F(set_pointer_mode, hipblasSetPointerMode)
  F(set_atomics_mode, hipblasSetAtomicsMode)
#undef F
  api.handle = handle;
  api.release = release;
  return api;
}

const HipBlas &api() {
  static const HipBlas loaded = load();
  return loaded;
}

}  // namespace

void *open_library(const char *variable, std::initializer_list<const char *> names, std::string &reason) {
  std::vector<std::string> all;
  const std::string given = env_string(variable);
  if (!given.empty()) {
    all.push_back(given);
  } else {
    const std::string &hip = replace::hip_library();
    const size_t slash = hip.rfind('/');
    if (slash != std::string::npos)
      for (const char *name : names) all.push_back(hip.substr(0, slash + 1) + name);
    all.insert(all.end(), names.begin(), names.end());
  }
  for (const std::string &name : all) {
    if (void *handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char *text = dlerror();
    if (text) reason = text;
  }
  return nullptr;
}

int release() { return api().release; }

void *function(const char *cuda, const std::string &name) {
  void *found = api().handle ? dlsym(api().handle, name.c_str()) : nullptr;
  if (!found) refuse(cuda, "this hipBLAS has no " + name);
  return found;
}

cublasStatus refuse(const char *cuda, const std::string &why) {
  const std::string line = std::string("SX0780: ") + cuda + ": " + why + "; it returns 15 (CUBLAS_STATUS_NOT_SUPPORTED)";
  replace::refuse(line, line);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus status_of(const char *cuda, int status) {
  switch (status) {
    case kSuccess: return CUBLAS_STATUS_SUCCESS;
    case 1:                                          // NOT_INITIALIZED
    case 9: return CUBLAS_STATUS_NOT_INITIALIZED;    // HANDLE_IS_NULLPTR
    case 2: return CUBLAS_STATUS_ALLOC_FAILED;
    case 3:                                          // INVALID_VALUE
    case 10: return CUBLAS_STATUS_INVALID_VALUE;     // INVALID_ENUM
    case 4: return CUBLAS_STATUS_MAPPING_ERROR;
    case 5: return CUBLAS_STATUS_EXECUTION_FAILED;
    case 6: return CUBLAS_STATUS_INTERNAL_ERROR;
    case 7: return refuse(cuda, "hipBLAS does not do this");
    case 8: return CUBLAS_STATUS_ARCH_MISMATCH;
    default: return CUBLAS_STATUS_INTERNAL_ERROR;    // UNKNOWN, and what later releases may add
  }
}

cublasStatus prepare(void *engine, CUstream stream, int pointer_mode, int atomics_mode) {
  int status = api().set_stream(engine, native_stream(stream));
  if (!status) status = api().set_pointer_mode(engine, pointer_mode);
  // cuBLAS's default is without atomics, hipBLAS's with.
  if (!status) status = api().set_atomics_mode(engine, atomics_mode ? kAtomicsAllowed : kAtomicsNotAllowed);
  return status_of("cublas", status);
}

CUstream native_stream(CUstream stream) { return reinterpret_cast<uintptr_t>(stream) == 1 ? nullptr : stream; }

cublasStatus check_stream(const char *cuda, CUstream stream) {
  bool captured = false;
  if (replace::capturing(stream, captured)) return CUBLAS_STATUS_EXECUTION_FAILED;
  // Graphs are the driver library's own here; what hipBLAS launches would run at once.
  return captured ? refuse(cuda, "on an AMD card it cannot be captured in a graph") : CUBLAS_STATUS_SUCCESS;
}

cublasStatus Type::convert(const char *cuda, int value, int &out) {
  // hipDataType's numbers are cudaDataType's.
  for (const int known : {kR32F, kR64F, kR16F, kR8I, kC32F, kC64F, kR32I, kR16BF})
    if (value == known) return out = value, CUBLAS_STATUS_SUCCESS;
  return refuse(cuda, "data type " + std::to_string(value) + " is not passed on to hipBLAS");
}

cublasStatus Compute::convert(const char *cuda, int value, int &out) {
  // The types that allow less than float, or emulate it, are float: never less precise than asked for.
  constexpr struct {
    int cuda, hip;
  } kAll[] = {{kCompute16F, 0}, {kCompute16FPedantic, 1}, {kCompute32F, 2}, {kCompute32FPedantic, 3},
              {kCompute32FFast16F, 2}, {kCompute32FFast16BF, 2}, {kCompute32FFastTf32, 2}, {kCompute32FEmulated, 2},
              {kCompute64F, 7}, {kCompute64FPedantic, 8}, {kCompute32I, 9}, {kCompute32IPedantic, 10}};
  for (const auto &each : kAll)
    if (each.cuda == value) return out = each.hip, CUBLAS_STATUS_SUCCESS;
  return refuse(cuda, "compute type " + std::to_string(value) + " is not passed on to hipBLAS");
}

Entry::Entry(const char *cuda_name, const char *base, bool typed, bool wide) : cuda(cuda_name) {
  const bool second = typed && release() == 2;
  address = function(cuda, std::string(base) + (second ? "_v2" : "") + (wide ? "_64" : ""));
}

}  // namespace sx::hipblas

namespace sx::cublas {

cublasStatus ready() {
  if (replace::enter()) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!hipblas::release()) return CUBLAS_STATUS_NOT_INITIALIZED;
  replace::note_replaced("cublas", "hipBLAS");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus attach(Mark &handle) { return hipblas::status_of("cublasCreate", hipblas::api().create(&handle.engine)); }
void detach(Mark &handle) {
  std::lock_guard<std::mutex> guard(handle.calls);
  if (handle.light) handle.destroy_light(handle.light);
  hipblas::api().destroy(handle.engine);
}

// A fault on a card is the driver's to tell.
bool faulted() { return false; }

}  // namespace sx::cublas
