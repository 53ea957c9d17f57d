// Device nodes and /proc/driver/nvidia, for programs that look there before they ask CUDA (JAX, XLA).
//
// The functions of the C library that take a path are passed on first.  Only where one finds nothing, and the path is
// one of ours, the answer is ours: a node that can be opened and knows no ioctl (it is /dev/null), and the text of the
// driver's version.  A machine with NVIDIA's driver keeps its own.
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "log.h"
#include "nvidia_driver.h"

namespace sx::preload {
namespace {

constexpr unsigned kMajor = 195, kControlMinor = 255;  // of NVIDIA's driver (Linux: admin-guide/devices.txt)

enum class Node { None, Device, Version, Directory };

struct Found {
  Node node = Node::None;
  unsigned minor = 0;
};

// How many devices the program has: SASSXLATE_DEVICES has a line for each of AMD's cards; there is one emulated device.
unsigned device_count() {
  static const unsigned count = [] {
    const std::string text = env_string("SASSXLATE_DEVICES");
    unsigned lines = 1;
    for (char c : text) lines += c == '\n';
    return lines;
  }();
  return count;
}

Found find(const char *path) {
  static const char device[] = "/dev/nvidia", folder[] = "/proc/driver/nvidia";
  if (!strncmp(path, folder, sizeof folder - 1)) {
    const char *rest = path + sizeof folder - 1;
    if (!*rest || !strcmp(rest, "/")) return {Node::Directory, 0};
    return {strcmp(rest, "/version") ? Node::None : Node::Version, 0};
  }
  if (strncmp(path, device, sizeof device - 1) != 0) return {};
  const char *rest = path + sizeof device - 1;
  if (!strcmp(rest, "ctl")) return {Node::Device, kControlMinor};
  if (*rest < '0' || *rest > '9' || (*rest == '0' && rest[1])) return {};
  char *end = nullptr;
  const unsigned long number = strtoul(rest, &end, 10);
  if (*end || number >= device_count()) return {};
  return {Node::Device, static_cast<unsigned>(number)};
}

// Whether a failed call is for us; `path` was readable, or the error would be EFAULT.
Found missing(const char *path) { return errno == ENOENT && path && *path == '/' ? find(path) : Found{}; }

std::string version_text() {
  return std::string("NVRM version: NVIDIA UNIX x86_64 Kernel Module  ") + kNvidiaDriver +
         "  (not loaded: provided by sassxlate)\n";
}

mode_t mode_of(const Found &found) {
  return found.node == Node::Device ? S_IFCHR | 0666 : found.node == Node::Version ? S_IFREG | 0444 : S_IFDIR | 0555;
}

int fill(const Found &found, struct stat *out) {
  memset(out, 0, sizeof *out);
  out->st_mode = mode_of(found);
  out->st_nlink = 1;
  out->st_blksize = 4096;
  if (found.node == Node::Device) out->st_rdev = makedev(kMajor, found.minor);
  return 0;
}

int fill(const Found &found, struct statx *out) {
  memset(out, 0, sizeof *out);
  out->stx_mask = STATX_BASIC_STATS;
  out->stx_mode = static_cast<uint16_t>(mode_of(found));
  out->stx_nlink = 1;
  out->stx_blksize = 4096;
  if (found.node == Node::Device) {
    out->stx_rdev_major = kMajor;
    out->stx_rdev_minor = found.minor;
  }
  return 0;
}

int check(const Found &found, int wanted) {
  if (!(wanted & ((mode_of(found) & 0222 ? 0 : W_OK) | (mode_of(found) & 0111 ? 0 : X_OK)))) return 0;
  errno = EACCES;
  return -1;
}

int open_found(const Found &found, int flags) {
  if (found.node == Node::Device)
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", flags & ~(O_CREAT | O_EXCL | O_TRUNC), 0));
  if (found.node == Node::Directory || (flags & O_ACCMODE) != O_RDONLY) {
    errno = EACCES;
    return -1;
  }
  const int file = memfd_create("nvidia-version", flags & O_CLOEXEC ? MFD_CLOEXEC : 0u);
  const std::string text = version_text();
  if (file >= 0 && (!write_quietly(file, text.data(), text.size()) || lseek(file, 0, SEEK_SET) != 0)) {
    close(file);
    errno = EIO;
    return -1;
  }
  return file;
}

// The function of this name that the program would have without us.
template <typename Function>
Function next(Function, const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  // From 2.33 on, glibc keeps the older forms of stat for old programs alone.
  if (!found) found = dlvsym(RTLD_NEXT, name, "GLIBC_2.2.5");
  return reinterpret_cast<Function>(found);
}

}  // namespace
}  // namespace sx::preload

using namespace sx::preload;

#define SX_WRAP extern "C" __attribute__((visibility("default")))
#define SX_NEXT(name) \
  static const auto real = next(&name, #name); \
  if (!real) return errno = ENOSYS, -1

// `otherwise` where the call has failed on one of our paths.
#define SX_PASS(call, path, otherwise)                                     \
  const int result = call;                                                 \
  if (result != -1) return result;                                         \
  const Found found = missing(path);                                       \
  return found.node == Node::None ? -1 : (otherwise)

#define SX_STAT(name, type) \
  SX_WRAP int name(const char *path, struct type *out) noexcept { \
    SX_NEXT(name); \
    SX_PASS(real(path, out), path, fill(found, reinterpret_cast<struct stat *>(out))); \
  }
SX_STAT(stat, stat)
SX_STAT(stat64, stat64)
SX_STAT(lstat, stat)
SX_STAT(lstat64, stat64)

#define SX_STAT_AT(name, type) \
  SX_WRAP int name(int folder, const char *path, struct type *out, int flags) noexcept { \
    SX_NEXT(name); \
    SX_PASS(real(folder, path, out, flags), path, fill(found, reinterpret_cast<struct stat *>(out))); \
  }
SX_STAT_AT(fstatat, stat)
SX_STAT_AT(fstatat64, stat64)

// The forms that programs built with glibc before 2.33 call.
#define SX_OLD_STAT(name) \
  SX_WRAP int name(int version, const char *path, void *out); \
  SX_WRAP int name(int version, const char *path, void *out) { \
    SX_NEXT(name); \
    SX_PASS(real(version, path, out), path, fill(found, static_cast<struct stat *>(out))); \
  }
SX_OLD_STAT(__xstat)
SX_OLD_STAT(__xstat64)
SX_OLD_STAT(__lxstat)
SX_OLD_STAT(__lxstat64)

#define SX_OLD_STAT_AT(name) \
  SX_WRAP int name(int version, int folder, const char *path, void *out, int flags); \
  SX_WRAP int name(int version, int folder, const char *path, void *out, int flags) { \
    SX_NEXT(name); \
    SX_PASS(real(version, folder, path, out, flags), path, fill(found, static_cast<struct stat *>(out))); \
  }
SX_OLD_STAT_AT(__fxstatat)
SX_OLD_STAT_AT(__fxstatat64)

SX_WRAP int statx(int folder, const char *path, int flags, unsigned mask, struct statx *out) noexcept {
  SX_NEXT(statx);
  SX_PASS(real(folder, path, flags, mask, out), path, fill(found, out));
}

#define SX_ACCESS(name) \
  SX_WRAP int name(const char *path, int wanted) noexcept { \
    SX_NEXT(name); \
    SX_PASS(real(path, wanted), path, check(found, wanted)); \
  }
SX_ACCESS(access)
SX_ACCESS(euidaccess)
SX_ACCESS(eaccess)

SX_WRAP int faccessat(int folder, const char *path, int wanted, int flags) noexcept {
  SX_NEXT(faccessat);
  SX_PASS(real(folder, path, wanted, flags), path, check(found, wanted));
}

// The mode is there only where a file may be created.
#define SX_MODE(flags, mode)                      \
  mode_t mode = 0;                                \
  if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
    va_list more;                                 \
    va_start(more, flags);                        \
    mode = va_arg(more, mode_t);                  \
    va_end(more);                                 \
  }

#define SX_OPEN(name) \
  SX_WRAP int name(const char *path, int flags, ...) { \
    SX_NEXT(name); \
    SX_MODE(flags, mode) \
    SX_PASS(real(path, flags, mode), path, open_found(found, flags)); \
  }
SX_OPEN(open)
SX_OPEN(open64)

#define SX_OPEN_AT(name) \
  SX_WRAP int name(int folder, const char *path, int flags, ...) { \
    SX_NEXT(name); \
    SX_MODE(flags, mode) \
    SX_PASS(real(folder, path, flags, mode), path, open_found(found, flags)); \
  }
SX_OPEN_AT(openat)
SX_OPEN_AT(openat64)

// Those without a mode, which programs built with _FORTIFY_SOURCE call.
#define SX_OPEN_2(name) \
  SX_WRAP int name(const char *path, int flags); \
  SX_WRAP int name(const char *path, int flags) { \
    SX_NEXT(name); \
    SX_PASS(real(path, flags), path, open_found(found, flags)); \
  }
SX_OPEN_2(__open_2)
SX_OPEN_2(__open64_2)

#define SX_FOPEN(name) \
  SX_WRAP FILE *name(const char *path, const char *mode) { \
    static const auto real = next(&name, #name); \
    if (!real) return errno = ENOSYS, nullptr; \
    FILE *stream = real(path, mode); \
    const Found found = stream ? Found{} : missing(path); \
    if (found.node == Node::None) return stream; \
    const bool reads = *mode == 'r' && !strchr(mode, '+'); \
    const int file = open_found(found, (reads ? O_RDONLY : O_RDWR) | (strchr(mode, 'e') ? O_CLOEXEC : 0)); \
    stream = file < 0 ? nullptr : fdopen(file, mode); \
    if (file >= 0 && !stream) close(file); \
    return stream; \
  }
SX_FOPEN(fopen)
SX_FOPEN(fopen64)
