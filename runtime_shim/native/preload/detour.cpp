// Each function's first five bytes become a near jump to a slot of a table close to the image, built like a
// procedure linkage table: the slot's first jump goes to bind(), which loads our runtime and puts the function's
// address into the slot.  Five bytes fit where an absolute jump of fourteen would not: the shortest entries of
// the runtime have ten bytes, or three and padding.
#include "detour.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "near.h"
#include "report.h"
#include "sanitizers.h"
#include "seal.h"

namespace sx::preload {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStub = 16;       // jmp *slot; push index; jmp common

// One redirected runtime.  Never freed: the image's code jumps through it.
struct Detour {
  std::string object;
  std::string library;  // ours, below own_directory()
  bool instance;        // whether each image has one of its own
  std::vector<std::string> names;
  std::atomic<void *> *slots;
  Sealed sealed;
  std::string release;
  uintptr_t bias;           // of the image
  void *runtime = nullptr;  // the handle of ours, from the first call on
  std::recursive_mutex mutex{};
};

size_t round_up(size_t size) { return (size + kPage - 1) & ~(kPage - 1); }

void put32(unsigned char *at, int64_t value) {
  int32_t narrow = static_cast<int32_t>(value);
  memcpy(at, &narrow, 4);
}

constexpr char kProc[] = "/proc/", kCopies[] = "/./fd/";

// This process's folder below /proc.  Not /proc/self: a debugger opens the files that a program has loaded by the
// same names, and its own descriptor of that number may be a pipe, from which it would read for ever.
std::string process_folder() {
  char number[32];
  const ssize_t size = readlink("/proc/self", number, sizeof number);
  return kProc + (size > 0 ? std::string(number, static_cast<size_t>(size)) : "self");
}

// Each statically linked runtime is a separate instance, with its own last error and chosen device: two
// libraries of one process must not see each other's.  The linker loads a file once, so a library gets a copy of
// ours under a unique name, which is given here.  Null if the system forbids it.
void *load_copy(const std::string &path) {
  static std::atomic<int> copies;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  int copy = memfd_create("libcudart (sassxlate)", MFD_CLOEXEC);
  struct stat size;
  bool whole = copy >= 0 && fstat(file, &size) == 0;
  for (off_t at = 0; whole && at < size.st_size;)
    whole = sendfile(copy, file, &at, static_cast<size_t>(size.st_size - at)) > 0;
  void *handle = nullptr;
  if (whole) {
    // It looks for the driver in its own folder, then for a loaded one.
    dlopen((own_directory() + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string name = process_folder() + kCopies;
    for (int i = copies++; i > 0; --i) name += "./";
    handle = dlopen((name + std::to_string(copy)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  close(file);
  if (copy >= 0) close(copy);
  return handle;
}

void *load_runtime(Detour *detour) {
  std::lock_guard<std::recursive_mutex> lock(detour->mutex);
  if (detour->runtime) return detour->runtime;
  std::string path = own_directory() + detour->library;
  if (detour->instance) detour->runtime = load_copy(path);
  if (!detour->runtime) detour->runtime = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!detour->runtime) refuse("SX0763", path, std::string("cannot be loaded: ") + dlerror());
  return detour->runtime;
}

}  // namespace

// What a slot's first call reaches, through sx_bind_entry.
// `back` is where the call returns to.
extern "C" __attribute__((visibility("hidden"), used)) void *sx_bind(Detour *detour, size_t index, const unsigned char *back) {
  if (index == detour->names.size()) refuse_unknown(detour->object, detour->release, detour->sealed, back, detour->bias);
  const std::string &name = detour->names[index];
  void *function = dlsym(load_runtime(detour), name.c_str());
  if (!function)
    refuse("SX0764", detour->object, name + " has no counterpart in our " + detour->library);
  detour->slots[index].store(function);
  return function;
}

extern "C" __attribute__((visibility("hidden"))) void sx_bind_entry();

// On the stack: the detour, the index, then the caller's return address, which sx_bind gets, too.  Every register that can carry an
// argument is kept.
asm(R"(
  .pushsection .text
  .globl sx_bind_entry
  .hidden sx_bind_entry
  .type sx_bind_entry, @function
sx_bind_entry:
  endbr64
  push %rbp
  mov %rsp, %rbp
  and $-16, %rsp
  sub $192, %rsp
  mov %rdi, 0(%rsp)
  mov %rsi, 8(%rsp)
  mov %rdx, 16(%rsp)
  mov %rcx, 24(%rsp)
  mov %r8, 32(%rsp)
  mov %r9, 40(%rsp)
  mov %rax, 48(%rsp)
  movaps %xmm0, 64(%rsp)
  movaps %xmm1, 80(%rsp)
  movaps %xmm2, 96(%rsp)
  movaps %xmm3, 112(%rsp)
  movaps %xmm4, 128(%rsp)
  movaps %xmm5, 144(%rsp)
  movaps %xmm6, 160(%rsp)
  movaps %xmm7, 176(%rsp)
  mov 8(%rbp), %rdi
  mov 16(%rbp), %rsi
  mov 24(%rbp), %rdx
  call sx_bind
  mov %rax, %r11
  mov 0(%rsp), %rdi
  mov 8(%rsp), %rsi
  mov 16(%rsp), %rdx
  mov 24(%rsp), %rcx
  mov 32(%rsp), %r8
  mov 40(%rsp), %r9
  mov 48(%rsp), %rax
  movaps 64(%rsp), %xmm0
  movaps 80(%rsp), %xmm1
  movaps 96(%rsp), %xmm2
  movaps 112(%rsp), %xmm3
  movaps 128(%rsp), %xmm4
  movaps 144(%rsp), %xmm5
  movaps 160(%rsp), %xmm6
  movaps 176(%rsp), %xmm7
  leave
  add $16, %rsp
  jmp *%r11
  .size sx_bind_entry, . - sx_bind_entry
  .popsection
)");

namespace {

// Writes the stubs at `code` and points their slots at their second halves.
void write_stubs(unsigned char *code, Detour *detour, size_t count) {
  unsigned char *common = code + count * kStub;
  for (size_t i = 0; i < count; ++i) {
    unsigned char *stub = code + i * kStub;
    stub[0] = 0xff, stub[1] = 0x25;  // jmp *slot(%rip)
    put32(stub + 2, reinterpret_cast<unsigned char *>(&detour->slots[i]) - (stub + 6));
    stub[6] = 0x68;  // push index
    put32(stub + 7, static_cast<int64_t>(i));
    stub[11] = 0xe9;  // jmp common
    put32(stub + 12, common - (stub + 16));
    detour->slots[i].store(stub + 6);
  }
  const void *target = reinterpret_cast<const void *>(&sx_bind_entry);
  common[0] = 0x49, common[1] = 0xbb;  // movabs detour, %r11
  memcpy(common + 2, &detour, 8);
  common[10] = 0x41, common[11] = 0x53;  // push %r11
  common[12] = 0x49, common[13] = 0xbb;  // movabs sx_bind_entry, %r11
  memcpy(common + 14, &target, 8);
  common[22] = 0x41, common[23] = 0xff, common[24] = 0xe3;  // jmp *%r11
}

// Not memcpy, which sanitizers intercept: they assume that code is never written.
SX_UNSANITIZED void copy_code(unsigned char *to, const unsigned char *from, size_t size) {
  for (size_t i = 0; i < size; ++i) const_cast<volatile unsigned char *>(to)[i] = from[i];
}

// Writes the jumps, page by page opened for writing together; what is sealed jumps to the stub after the entries'.
bool write_jumps(const Match &match, unsigned char *code) {
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (const Entry &entry : match.entries) {
    low = std::min(low, reinterpret_cast<uintptr_t>(entry.address));
    high = std::max(high, reinterpret_cast<uintptr_t>(entry.address) + kJump);
  }
  const Sealed &sealed = match.sealed;
  if (sealed.length) {
    low = std::min(low, reinterpret_cast<uintptr_t>(sealed.start));
    high = std::max(high, reinterpret_cast<uintptr_t>(sealed.start) + sealed.length);
  }
  low &= ~(kPage - 1);
  void *start = reinterpret_cast<void *>(low);
  size_t size = round_up(high - low);
  // Never writable and executable at once; nothing in these pages runs before the image's constructors.
  if (mprotect(start, size, PROT_READ | PROT_WRITE)) return false;
  if (sealed.length) seal(match, code + match.entries.size() * kStub);
  for (size_t i = 0; i < match.entries.size(); ++i) {
    unsigned char *at = match.entries[i].address, jump[kJump] = {0xe9};
    put32(jump + 1, code + i * kStub - (at + kJump));
    copy_code(at, jump, kJump);
  }
  return mprotect(start, size, PROT_READ | PROT_EXEC) == 0;
}

// Entries lie at least a jump apart, or writing one would damage the next.
bool have_room(const Match &match) {
  for (size_t i = 1; i < match.entries.size(); ++i) {
    auto gap = match.entries[i].address - match.entries[i - 1].address;
    if (gap != 0 && gap < static_cast<std::ptrdiff_t>(kJump)) return false;
  }
  return true;
}

}  // namespace

const std::string &own_directory() {
  static const std::string directory = [] {
    Dl_info info;
    std::string path;
    if (dladdr(reinterpret_cast<void *>(&sx_bind_entry), &info) && info.dli_fname) path = info.dli_fname;
    size_t slash = path.rfind('/');
    path.resize(slash == std::string::npos ? 0 : slash + 1);
    return path;
  }();
  return directory;
}

bool is_own_copy(const std::string &path) {
  const size_t number = sizeof kProc - 1;
  const size_t end = path.compare(0, number, kProc) ? std::string::npos : path.find('/', number);
  return end != std::string::npos && path.compare(end, sizeof kCopies - 1, kCopies) == 0;
}

// The file name that NVIDIA's library of that major has: 11's has a minor version, for all releases of 11.
static std::string runtime_library(int major) {
  return "libcudart.so." + (major == 11 ? "11.0" : std::to_string(major));
}

void redirect(const Image &image, const Match &match) {
  const bool is_runtime = match.library.empty();
  const std::string library = is_runtime ? runtime_library(match.major) : match.library;
  const std::string path = own_directory() + library;
  if (!can_read(path)) refuse("SX0763", path, "cannot be read");
  if (!have_room(match)) refuse("SX0762", image.path, "the functions to redirect lie too close together");

  // One stub more for what is sealed.
  size_t count = match.entries.size() + (match.sealed.length ? 1 : 0);
  size_t code_size = round_up(count * kStub + 32), slots_size = round_up(count * sizeof(void *));
  unsigned char *region = map_near(image, code_size + slots_size);
  if (!region) refuse("SX0762", image.path, "no memory near its code for the jumps");

  // A runtime in a library has a state of its own; the program itself has the file, so that debuggers find it.
  Detour *detour = new Detour{image.path, library, is_runtime && !image.executable, {},
                              reinterpret_cast<std::atomic<void *> *>(region + code_size), match.sealed, match.release,
                              image.bias};
  for (const Entry &entry : match.entries) detour->names.emplace_back(entry.name);
  write_stubs(region, detour, count);
  if (mprotect(region, code_size, PROT_READ | PROT_EXEC) || !write_jumps(match, region))
    refuse("SX0762", image.path,
           std::string("the system forbids changing its code (") + strerror(errno) +
               "); SELinux needs execmod for it");
}

}  // namespace sx::preload
