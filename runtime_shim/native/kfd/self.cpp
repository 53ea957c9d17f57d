// The process's own program.  Where a dynamic linker was started with the program's name as an argument, /proc/self/exe
// is the linker.  AMD's runtime looks there for the file of a code object that is part of the program, and programs look
// there for what they have beside them: both are told of the program's file.
#include "self.h"

#include "card.h"

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace sx::kfd {
namespace {

// The linker's list begins with the program.
int first_object(dl_phdr_info *info, size_t, void *out) {
  *static_cast<uint64_t *>(out) = reinterpret_cast<uint64_t>(info->dlpi_phdr);
  return 1;
}

// All of a file of /proc, which has no size; without the C library's functions, which are ours here.
std::string contents(const char *path) {
  std::string text;
  int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
  if (fd < 0) return text;
  char part[4096];
  for (;;) {
    int64_t count = syscall(SYS_read, fd, part, sizeof part);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part, static_cast<size_t>(count));
  }
  syscall(SYS_close, fd);
  return text;
}

// The file that is mapped at the program's headers.
std::string mapped_program() {
  uint64_t headers = 0;
  dl_iterate_phdr(first_object, &headers);
  const std::string maps = contents("/proc/self/maps");
  for (size_t at = 0, end; at < maps.size(); at = end + 1) {
    end = maps.find('\n', at);
    if (end == std::string::npos) end = maps.size();
    const std::string line = maps.substr(at, end - at);
    char *rest = nullptr;
    uint64_t begin = strtoull(line.c_str(), &rest, 16);
    if (*rest != '-' || headers < begin || headers >= strtoull(rest + 1, nullptr, 16)) continue;
    size_t path = line.find('/');
    return path == std::string::npos ? "" : line.substr(path);
  }
  return "";
}

}  // namespace

const char *own_program(const char *path) {
  if (!path || strncmp(path, "/proc/", 6) != 0) return nullptr;
  const char *rest = path + 6;
  if (!strncmp(rest, "self/", 5)) {
    rest += 5;
  } else {
    char *after = nullptr;
    if (strtol(rest, &after, 10) != getpid() || *after != '/') return nullptr;
    rest = after + 1;
  }
  if (strcmp(rest, "exe") != 0) return nullptr;
  static const std::string *const program = new std::string(mapped_program());
  return program->empty() ? nullptr : program->c_str();
}

}  // namespace sx::kfd

namespace {

template <typename Function>
Function next(Function, const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// As readlink(2) does: cut off at `size`, without a zero at the end.
ssize_t link_text(const std::string &text, char *out, size_t size) { return static_cast<ssize_t>(text.copy(out, size)); }

}  // namespace

#define SX_WRAP extern "C" __attribute__((visibility("default")))
#define SX_NEXT(name) static const auto real = next(&name, #name)

// As the fortified functions of the C library end a program whose buffer is too small.
SX_WRAP [[noreturn]] void __chk_fail();
SX_WRAP ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room);
SX_WRAP char *__realpath_chk(const char *path, char *out, size_t room);

SX_WRAP ssize_t readlink(const char *path, char *out, size_t size) noexcept {
  SX_NEXT(readlink);
  const char *own = sx::kfd::own_program(path);
  return own && size ? link_text(own, out, size) : real(path, out, size);
}

SX_WRAP ssize_t __readlink_chk(const char *path, char *out, size_t size, size_t room) {
  if (size > room) __chk_fail();
  return readlink(path, out, size);
}

SX_WRAP ssize_t readlinkat(int folder, const char *path, char *out, size_t size) noexcept {
  SX_NEXT(readlinkat);
  const char *own = sx::kfd::own_program(path);
  return own && size ? link_text(own, out, size) : real(folder, path, out, size);
}

SX_WRAP char *realpath(const char *path, char *out) noexcept {
  SX_NEXT(realpath);
  const char *own = sx::kfd::own_program(path);
  return real(own ? own : path, out);
}

SX_WRAP char *__realpath_chk(const char *path, char *out, size_t room) {
  if (out && room < PATH_MAX) __chk_fail();
  return realpath(path, out);
}
