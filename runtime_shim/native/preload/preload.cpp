#include "preload.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "detour.h"
#include "image.h"
#include "report.h"
#include "sanitizers.h"
#include "signature.h"
#include "summary.h"
#include "symbols.h"

namespace sx::preload {
namespace {

// An object is the same one while its headers are at the same place: closing it is reported as a change, too.
using Seen = std::vector<const void *>;

// Created at the first use, which is before this library's own constructors.
Seen &seen() {
  static Seen *const list = new Seen;
  return *list;
}

std::atomic<bool> g_scanned{false};

struct Visit {
  Seen now;
  std::vector<Image> fresh;
};

int visit(dl_phdr_info *info, size_t, void *data) {
  auto *v = static_cast<Visit *>(data);
  v->now.push_back(info->dlpi_phdr);
  const Seen &before = seen();
  if (std::find(before.begin(), before.end(), info->dlpi_phdr) != before.end()) return 0;
  Image image;
  if (read_image(*info, image)) v->fresh.push_back(std::move(image));
  return 0;
}

bool is_ours(const Image &image) {
  const std::string &directory = own_directory();
  if (is_own_copy(image.path)) return true;
  return !directory.empty() && image.path.compare(0, directory.size(), directory) == 0;
}

// By its soname: NVIDIA's, or that of the copy in a wheel ("libcudart-53d54daa.so.12.6.68", as auditwheel names it).
bool is_shared_runtime(const Image &image) {
  constexpr std::string_view kName = "libcudart", kSuffix = ".so.";
  std::string_view rest = image.soname;
  if (rest.substr(0, kName.size()) != kName) return false;
  rest.remove_prefix(kName.size());
  if (rest.substr(0, 1) == "-") rest.remove_prefix(std::min(rest.find_first_not_of("0123456789abcdef", 1), rest.size()));
  return rest.substr(0, kSuffix.size()) == kSuffix;
}

// All runtimes load the driver with dlopen and dlsym, so what mentions neither holds none.
bool may_hold_runtime(const Image &image) { return image.mentions("dlsym") && image.mentions("dlopen"); }

bool search(const Image &image, Match &match, bool &near) {
  for (const Segment &s : image.segments)
    if ((s.flags & (PF_X | PF_R)) == (PF_X | PF_R) && find_by_signature(s.start, s.size, match, near)) return true;
  return false;
}

constexpr const char kUnknown[] = "its statically linked CUDA runtime is of an unknown release (known: 11.7, 11.8, 12.0 to 12.6, 12.8, 12.9 and "
                                  "13.0 to 13.5; with symbols, all of 11, 12 and 13)";

// A library whose runtime is unknown, and where it was loaded.
struct Unknown {
  std::string path;
  uintptr_t low, high;
};

// Like seen(): created before this library's constructors.
std::vector<Unknown> &unknown() {
  static auto *const list = new std::vector<Unknown>;
  return *list;
}

std::mutex &unknown_mutex() {
  static auto *const mutex = new std::mutex;
  return *mutex;
}

// NVIDIA's libraries that ours take the place of, by their sonames, and the folder of ours.
struct Replaced {
  const char *soname, *word;
  std::vector<std::string_view> prefixes;  // of what they export
};

const Replaced *replaced(const Image &image) {
  static const auto *const all = new std::vector<Replaced>{
      {"libcufft.so.11", "cufft", {"cufft", "__cufft"}},
      {"libcufft.so.12", "cufft", {"cufft", "__cufft"}},
      {"libcufftw.so.11", "cufft", {"fftw_", "fftwf_"}},
      {"libcufftw.so.12", "cufft", {"fftw_", "fftwf_"}},
      {"libcublas.so.12", "cublas", {"cublas"}},
      {"libcublas.so.13", "cublas", {"cublas"}},
      {"libcublasLt.so.12", "cublas", {"cublasLt"}},
      {"libcublasLt.so.13", "cublas", {"cublasLt"}},
      {"libcublas.so.12", "hipblas", {"cublas"}},
      {"libcublas.so.13", "hipblas", {"cublas"}},
      {"libcublasLt.so.12", "hipblas", {"cublasLt"}},
      {"libcublasLt.so.13", "hipblas", {"cublasLt"}},
  };
  for (const Replaced &r : *all)
    if (image.soname == r.soname && replaces(r.word)) return &r;
  return nullptr;
}

// What was loaded where an image is now, and was closed since.
void forget_unknown(const Image &image) {
  std::lock_guard<std::mutex> guard(unknown_mutex());
  auto &all = unknown();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [&](const Unknown &u) { return u.low < image.high() && image.low() < u.high; }),
            all.end());
}

void examine(const Image &image) {
  forget_unknown(image);
  if (is_ours(image)) return;
  if (const Replaced *r = replaced(image)) {
    // One found by a path that ours does not precede.  All that it exports is ours then, and nothing of it runs but
    // constructors; the runtime in it is therefore none to look for.
    Match match;
    match.library = std::string(r->word) + "/" + r->soname;
    if (!find_exported(image, r->prefixes, kJump, match))
      return report("SX0783", image.path, "its functions cannot be found or are too short, so it is not replaced");
    redirect(image, match);
    trace("%s: replaced, %zu functions redirected", image.path.c_str(), match.entries.size());
    return;
  }
  if (!may_hold_runtime(image)) return;
  Match match;
  bool near = false;
  const char *how = "by signature";
  if (is_shared_runtime(image)) {
    // NVIDIA's shared library, found by a search path that ours does not precede.
    how = "by exported name";
    find_by_symbol(image, true, match);
    near = true;
  } else if (!search(image, match, near)) {
    how = "by symbol";
    const Named named = find_by_symbol(image, false, match);
    if (named == Named::Stubs) {
      trace("%s: has functions with the CUDA runtime's names, but is not a runtime: not changed", image.path.c_str());
      return;
    }
    near = near || named == Named::Runtime;
  }
  if (match.major) {
    redirect(image, match);
    trace("%s: CUDA runtime %s %s, %zu functions redirected", image.path.c_str(), match.release.c_str(), how,
          match.entries.size());
    return;
  }
  // Device code has to be registered with some runtime; where none is imported, it is inside, and unknown.
  if (!near && (image.mentions("__cudaRegisterFatBinary") || !has_device_code(image))) return;
  if (image.executable) refuse("SX0761", image.path, kUnknown);
  // A library may never be used; where it is, its runtime asks the driver for a table that only NVIDIA's has
  // (sassxlate_runtime_starts), and fails.
  trace("%s: %s", image.path.c_str(), kUnknown);
  std::lock_guard<std::mutex> guard(unknown_mutex());
  unknown().push_back({image.path, image.low(), image.high()});
}

}  // namespace

// A call comes while the dynamic linker holds its lock, so there is one at a time, or one inside another: to redirect
// a program loads a library.
void scan_new_objects() {
#if defined(SX_TSAN)
  __tsan_acquire(&g_scanned);  // it does not see that lock
#endif
  Visit v;
  dl_iterate_phdr(visit, &v);
  seen() = std::move(v.now);
  g_scanned = true;
  for (const Image &image : v.fresh) examine(image);
#if defined(SX_TSAN)
  __tsan_release(&g_scanned);
#endif
}

bool scanned() { return g_scanned; }

}  // namespace sx::preload

// Called by libcuda when code at `caller` asks for a private table, as NVIDIA's runtime does when it starts: if that
// is a library's unknown runtime, the library is used after all, which is reported once.
extern "C" __attribute__((visibility("default"))) void sassxlate_runtime_starts(const void *caller) {
  using namespace sx::preload;
  const auto at = reinterpret_cast<uintptr_t>(caller);
  std::string path;
  {
    std::lock_guard<std::mutex> guard(unknown_mutex());
    auto found = std::find_if(unknown().begin(), unknown().end(),
                              [at](const Unknown &u) { return u.low <= at && at < u.high; });
    if (found == unknown().end()) return;
    path = found->path;
    unknown().erase(found);
  }
  report("SX0761", path, kUnknown);
}

namespace {

// If the command that started this program is killed by SIGKILL, it cannot forward that; the kernel then does.
void end_with_runner() {
  const char *runner = std::getenv("SASSXLATE_RUNNER");
  if (runner == nullptr) return;
  const pid_t parent = static_cast<pid_t>(std::strtol(runner, nullptr, 10));
  if (parent <= 1 || getppid() != parent) return;  // a child of the application, or started by hand
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) raise(SIGKILL);  // it ended meanwhile
}

}  // namespace

__attribute__((constructor)) static void start() {
  sx::preload::begin_summary();
  end_with_runner();
  if (!sx::preload::hooked()) sx::preload::hook_late();
  if (!sx::preload::hooked()) sx::preload::trace("libraries loaded later with dlopen are not examined");
  // Without the linker's lock, which a thread of an earlier constructor may hold: only where nothing else has done it.
  if (!sx::preload::scanned()) sx::preload::scan_new_objects();
}
