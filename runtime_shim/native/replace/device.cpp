#include "device.h"

#include <dlfcn.h>
#include <sys/stat.h>

#include <mutex>
#include <set>

#include "files.h"
#include "float_controls.h"
#include "log.h"

namespace sx::replace {
namespace {

constexpr int kNotInitialized = 3, kNotSupported = 801, kCapturing = 1;

// clang-format off
#define SX_FUNCTIONS(F)                                                                                            \
  F(cuInit, (unsigned)) F(cuCtxGetCurrent, (CUcontext *)) F(cuCtxSetCurrent, (CUcontext))                          \
  F(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) F(cuMemGetInfo_v2, (size_t *, size_t *))                    \
  F(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr)) F(cuLaunchHostFunc, (CUstream, CUhostFn, void *)) \
  F(cuStreamSynchronize, (CUstream)) F(cuStreamIsCapturing, (CUstream, int *)) F(cuGraphRetainUserObject, (CUgraph, CUuserObject, unsigned, unsigned)) \
  F(cuStreamGetCaptureInfo_v2, (CUstream, int *, uint64_t *, CUgraph *, const CUgraphNode **, size_t *))           \
  F(cuUserObjectCreate, (CUuserObject *, void *, CUhostFn, unsigned, unsigned))
// clang-format on

struct Driver {
#define F(name, parameters) int(*name) parameters = nullptr;
  SX_FUNCTIONS(F)
#undef F
  bool complete = false;
};

Driver load() {
  Driver d;
  void *handle = dlopen((home() + "/libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    log_line("SX0750: libcuda.so.1 cannot be loaded: %s", dlerror());
    return d;
  }
  d.complete = true;
#define F(name, parameters)                                                      \
  d.name = reinterpret_cast<int(*) parameters>(dlsym(handle, #name));            \
  if (!d.name) {                                                                 \
    log_line("SX0751: libcuda.so.1 has no " #name);                              \
    d.complete = false;                                                          \
  }
  SX_FUNCTIONS(F)
#undef F
  return d;
}

const Driver &driver() {
  static const Driver loaded = load();
  return loaded;
}

bool same_file(const std::string &a, const std::string &b) {
  struct stat x, y;
  return !stat(a.c_str(), &x) && !stat(b.c_str(), &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void run_once(void *work) {
  const std::unique_ptr<Work> owned(static_cast<Work *>(work));
  const FloatControls defaults;
  owned->run();
}
void run_again(void *work) {
  const FloatControls defaults;
  static_cast<Work *>(work)->run();
}
void destroy(void *work) { delete static_cast<Work *>(work); }

// Whether this is said for the first time.
bool first(const std::string &key) {
  static std::mutex mutex;
  static auto *const said = new std::set<std::string>;
  std::lock_guard<std::mutex> guard(mutex);
  return said->insert(key).second;
}

void write_row(const std::string &row) {
  if (!append_row(env_string("SASSXLATE_REPORT"), row)) log_line("the report cannot be written");
}

}  // namespace

const std::string &home() {
  static const std::string folder = [] {
    const std::string own = library_dir();
    return own.substr(0, own.rfind('/'));
  }();
  return folder;
}

const std::string &hip_library() {
  static const std::string path = env_string("SASSXLATE_HIP", home() + "/libamdhip64.so");
  return path;
}

bool emulated() {
  static const bool yes = same_file(hip_library(), home() + "/libamdhip64.so");
  return yes;
}

int enter() {
  const Driver &d = driver();
  if (!d.complete) return kNotInitialized;
  CUcontext context = nullptr;
  if (int error = d.cuInit(0)) return error;
  if (int error = d.cuCtxGetCurrent(&context)) return error;
  if (context) return 0;
  if (int error = d.cuDevicePrimaryCtxRetain(&context, 0)) return error;
  return d.cuCtxSetCurrent(context);
}

size_t total_memory() {
  size_t some = 0, all = 0;
  return driver().cuMemGetInfo_v2(&some, &all) ? 0 : all;
}

namespace {

template <class F>
F *of_emulator(const char *name) {
  void *handle = emulated() ? dlopen(hip_library().c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  return handle ? reinterpret_cast<F *>(dlsym(handle, name)) : nullptr;
}

}  // namespace

bool reachable(const void *address, size_t bytes, bool write) {
  CUdeviceptr base = 0;
  size_t size = 0;
  const auto at = reinterpret_cast<CUdeviceptr>(address);
  if (driver().cuMemGetAddressRange_v2(&base, &size, at)) return false;
  if (at < base || at - base > size || bytes > size - (at - base)) return false;
  return !write || !emulated() || reachable_from_work(address, bytes, true);
}

bool reachable_from_work(const void *address, size_t bytes, bool write) {
  static auto *const reaches = of_emulator<int(const void *, size_t, int)>("sassxlate_emulated_reaches");
  return reaches && reaches(address, bytes, write);
}

void fault_from_work() {
  static auto *const fault = of_emulator<void()>("sassxlate_emulated_fault");
  if (fault) fault();
}

int capturing(CUstream stream, bool &yes) {
  int status = 0;
  const int error = driver().cuStreamIsCapturing(stream, &status);
  yes = status == kCapturing;
  return error;
}

int enqueue(CUstream stream, std::unique_ptr<Work> work) {
  const Driver &d = driver();
  bool captured = false;
  if (int error = capturing(stream, captured)) return error;
  if (!captured) {
    Work *mine = work.release();  // the stream's from now on: it may have run before the call returns
    const int error = d.cuLaunchHostFunc(stream, run_once, mine);
    if (error) destroy(mine);
    return error;
  }
  int status = 0;
  CUgraph graph = nullptr;
  if (int error = d.cuStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr)) return error;
  if (!graph) return kNotSupported;
  // The graph, its clones and what is instantiated of it keep the work alive.
  constexpr unsigned kNoSync = 1, kMove = 1;
  CUuserObject object = nullptr;
  if (int error = d.cuUserObjectCreate(&object, work.get(), destroy, 1, kNoSync)) return error;
  Work *kept = work.release();
  if (int error = d.cuGraphRetainUserObject(graph, object, 1, kMove)) return error;
  return d.cuLaunchHostFunc(stream, run_again, kept);
}

int synchronize(CUstream stream) { return driver().cuStreamSynchronize(stream); }

void note_replaced(const char *word, const char *by) {
  if (first(word)) write_row(std::string("replaced\t") + word + "\t" + by + "\n");
}

void refuse(const std::string &key, const std::string &line) {
  if (!first(line.substr(0, line.find(':')) + key)) return;
  log_line("%s", line.c_str());
  // The fields of every refusal: what, code, CUDA error, kernel, text.
  write_row("refused\t" + line.substr(0, line.find(':')) + "\t801\t" + key + "\t" + line + "\n");
}

}  // namespace sx::replace
