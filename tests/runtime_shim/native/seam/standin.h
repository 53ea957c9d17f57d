// What all functions of the stand-in share: the record of calls, closed device memory, handles.
#pragma once
#include <hip/hip_runtime_api.h>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

constexpr size_t kPage = 4096;
std::recursive_mutex g_mutex;

std::string env(const char *name, const char *otherwise = "") {
  const char *text = getenv(name);
  return text ? text : otherwise;
}

FILE *record() {
  static FILE *file = [] {
    std::string dir = env("SX_STANDIN_DIR");
    return dir.empty() ? nullptr : fopen((dir + "/calls.jsonl").c_str(), "ae");
  }();
  return file;
}

// One call; `format` gives the members after its name.
void say(const char *call, const char *format = "", ...) {
  if (!record()) return;
  char text[8192];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  fprintf(record(), "{\"call\": \"%s\", \"pid\": %d%s%s}\n", call, int(getpid()), *text ? ", " : "", text);
  fflush(record());
}

hipError_t wrong(const char *call, const std::string &what) {
  say("VIOLATION", "\"of\": \"%s\", \"what\": \"%s\"", call, what.c_str());
  return hipErrorInvalidValue;
}

void *worker(const char *name) {
  static void *library = [] {  // the emulated device is the processor that the GPU is
    std::string arch = env("SX_STANDIN_ARCH");
    if (!arch.empty()) setenv("SASSXLATE_TARGET", arch.substr(0, arch.find(':')).c_str(), 1);
    return dlopen(env("SX_STANDIN_DEVICE").c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  void *found = library ? dlsym(library, name) : nullptr;
  if (!found) {
    fprintf(stderr, "stand-in: no %s in SX_STANDIN_DEVICE\n", name);
    _exit(99);
  }
  return found;
}
// The emulated device's function, called with the types of AMD's header (which overloads some names).
template <typename Result = int, typename... Args>
Result forward(const char *name, Args... args) {
  return reinterpret_cast<Result (*)(Args...)>(worker(name))(args...);
}
#define DO(name, ...) static_cast<hipError_t>(forward(#name __VA_OPT__(, ) __VA_ARGS__))

int device_count() { return atoi(env("SX_STANDIN_DEVICES", "1").c_str()); }
thread_local int t_device = 0;
thread_local hipError_t t_last = hipSuccess;

hipError_t done(hipError_t status) {
  if (status != hipSuccess) t_last = status;
  return status;
}

// --- Device memory: whole pages, closed to the host ------------------------------------------

struct Block {
  size_t asked, pages;
  void *raw;
};
std::map<uintptr_t, Block> g_blocks;
std::map<uintptr_t, size_t> g_hosts;  // pinned and registered memory
bool g_open = true;

void set_doors(bool open) {
  for (auto &[base, block] : g_blocks)
    mprotect(reinterpret_cast<void *>(base), block.pages, open ? PROT_READ | PROT_WRITE : PROT_NONE);
  g_open = open;
}

// Device memory is open while one of these lives; at the end all work is done, then it closes.
struct Work {
  std::unique_lock<std::recursive_mutex> guard{g_mutex};
  bool outer = !g_open || g_blocks.empty();
  hipError_t status = hipSuccess;
  Work() {
    if (outer) set_doors(true);
  }
  ~Work() {
    if (!outer) return;
    (void)DO(hipDeviceSynchronize);
    set_doors(false);
  }
};

const std::pair<const uintptr_t, Block> *block_of(const void *pointer) {
  auto at = g_blocks.upper_bound(reinterpret_cast<uintptr_t>(pointer));
  if (at == g_blocks.begin()) return nullptr;
  --at;
  return reinterpret_cast<uintptr_t>(pointer) < at->first + at->second.asked ? &*at : nullptr;
}

// Empty where [pointer, pointer + size) is one block's, or is the host's; else what is wrong.
std::string misplaced(const void *pointer, size_t size, bool must_be_device) {
  auto at = reinterpret_cast<uintptr_t>(pointer);
  if (auto *found = block_of(pointer)) {
    return at + size <= found->first + found->second.asked ? "" : "runs past the end of its allocation";
  }
  if (!must_be_device) return "";
  for (auto &[base, length] : g_hosts)
    if (at >= base && at + size <= base + length) return "";
  return "is not device memory";
}

hipError_t allocate(void **out, size_t size) {
  if (!out) return hipErrorInvalidValue;
  *out = nullptr;
  if (!size) return hipSuccess;
  Work work;
  size_t pages = (size + kPage - 1) / kPage * kPage;
  void *raw = nullptr;
  hipError_t status = DO(hipMalloc, &raw, pages + kPage);
  if (status != hipSuccess) return done(status);
  uintptr_t base = (reinterpret_cast<uintptr_t>(raw) + kPage - 1) / kPage * kPage;
  g_blocks[base] = Block{size, pages, raw};
  *out = reinterpret_cast<void *>(base);
  return hipSuccess;
}

hipError_t release(const char *call, void *pointer) {
  if (!pointer) return hipSuccess;
  Work work;
  auto at = g_blocks.find(reinterpret_cast<uintptr_t>(pointer));
  if (at == g_blocks.end()) {
    // Managed memory is the emulated device's own.
    hipError_t status = DO(hipFree, pointer);
    if (status != hipSuccess) say(call, "\"unknown\": true");
    return done(status);
  }
  (void)DO(hipDeviceSynchronize);
  void *raw = at->second.raw;
  g_blocks.erase(at);
  return done(DO(hipFree, raw));
}

// --- Handles ---------------------------------------------------------------------------------

std::set<const void *> g_streams, g_events;
std::map<const void *, int> g_modules;  // to the number of the code object's file
// AMD's library keeps the pointer that it was given, not a copy: the image must stay as long as its module.
struct Image {
  const void *given;
  std::string copy;
};
std::map<int, Image> g_images;
bool image_is_there(int code) {
  const Image &image = g_images[code];
  return !memcmp(image.given, image.copy.data(), image.copy.size());
}
struct Kernel {
  int code;
  std::string name;
};
std::map<const void *, Kernel> g_kernels;
bool g_hung = false;

std::string stream_name(hipStream_t s) {
  if (!s) return "null";
  if (s == hipStreamPerThread) return "per-thread";
  if (s == hipStreamLegacy) return "legacy";
  return g_streams.count(s) ? "created" : "";
}

// hipStreamLegacy is of ROCm 6.3; older ones follow it as a pointer.
std::string bad_stream(hipStream_t s) {
  std::string name = stream_name(s);
  return name.empty() ? "unknown stream" : name == "legacy" ? "hipStreamLegacy, which ROCm 6.0 does not know" : "";
}

void wait_forever_if_hung() {
  while (g_hung) pause();
}

std::string hex(const void *data, size_t size) {
  std::string text;
  char two[3];
  for (size_t i = 0; i < size; ++i) {
    snprintf(two, sizeof two, "%02x", static_cast<const unsigned char *>(data)[i]);
    text += two;
  }
  return text;
}

__attribute__((constructor)) void loaded() {
  if (getenv("SX_STANDIN_NOISE")) puts("amdgpu.ids: No such file or directory");
}

}  // namespace

#define CHECK_STREAM(s) \
  if (std::string bad = bad_stream(s); !bad.empty()) return done(wrong(__func__, bad))
#define CHECK_EVENT(e) \
  if (!g_events.count(e)) return done(wrong(__func__, "unknown event"))
#define CHECK_RANGE(p, n, device) \
  if (std::string bad = misplaced(p, n, device); !bad.empty()) return done(wrong(__func__, #p " " + bad))
