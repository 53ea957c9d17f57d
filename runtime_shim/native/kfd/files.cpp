// The files by which AMD's runtime reaches the kernel driver: /dev/kfd, /dev/dri/renderD128 and the topology below
// /sys/devices/virtual/kfd, which `run` has written to a folder (SASSXLATE_CARD).  Everything else goes to the C library.
#include "card.h"

#include "log.h"
#include "self.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sx::kfd {
namespace {

constexpr int kDescriptors = 65536;
std::atomic<uint8_t> g_nodes[kDescriptors];
std::atomic<bool> g_forked{false};

constexpr char kTopology[] = "/sys/devices/virtual/kfd/kfd/topology";

Node named(const char *path) {
  if (!path || strncmp(path, "/dev/", 5) != 0) return Node::None;
  if (!strcmp(path, "/dev/kfd")) return Node::Kfd;
  return strcmp(path, "/dev/dri/renderD128") ? Node::None : Node::Render;
}

// Where the topology's file, or the program's own, is really; "" of any other file.
std::string moved(const char *path) {
  if (const char *own = own_program(path)) return own;
  if (!path || strncmp(path, kTopology, sizeof kTopology - 1) != 0) return "";
  static const std::string *const folder = new std::string(env_string("SASSXLATE_CARD"));
  return folder->empty() ? "" : *folder + (path + sizeof kTopology - 1);
}

void in_child() { g_forked.store(true); }

int open_node(Node node, int flags) {
  static std::atomic<bool> once{false};
  if (!once.exchange(true)) pthread_atfork(nullptr, nullptr, in_child);
  if (g_forked.load()) {
    log_line("SX0870: the emulated card cannot be used in a copy of a process that has used it");
    errno = EBUSY;
    return -1;
  }
  int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | (flags & O_CLOEXEC), 0));
  if (fd >= kDescriptors) {
    syscall(SYS_close, fd);
    errno = EMFILE;
    return -1;
  }
  if (fd >= 0) set_node(fd, node);
  return fd;
}

template <typename Function>
Function next(Function, const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

Node node_of(int fd) {
  return fd < 0 || fd >= kDescriptors ? Node::None : static_cast<Node>(g_nodes[fd].load(std::memory_order_acquire));
}

void set_node(int fd, Node node) {
  if (fd >= 0 && fd < kDescriptors) g_nodes[fd].store(static_cast<uint8_t>(node), std::memory_order_release);
}

void *system_mmap(void *at, size_t size, int protection, int flags, int fd, int64_t offset) {
  return reinterpret_cast<void *>(syscall(SYS_mmap, at, size, protection, flags, fd, offset));
}

}  // namespace sx::kfd

using namespace sx::kfd;

#define SX_WRAP extern "C" __attribute__((visibility("default")))
#define SX_NEXT(name) static const auto real = next(&name, #name)

// The mode is there only where a file may be created.
#define SX_OPEN(name)                                                  \
  SX_WRAP int name(const char *path, int flags, ...) {                 \
    SX_NEXT(name);                                                     \
    mode_t mode = 0;                                                   \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {       \
      va_list more;                                                    \
      va_start(more, flags);                                           \
      mode = va_arg(more, mode_t);                                     \
      va_end(more);                                                    \
    }                                                                  \
    Node node = named(path);                                           \
    if (node != Node::None) return open_node(node, flags);             \
    const char *own = own_program(path);                               \
    return real(own ? own : path, flags, mode);                        \
  }
SX_OPEN(open)
SX_OPEN(open64)

#define SX_OPEN_2(name)                                                \
  SX_WRAP int name(const char *path, int flags);                       \
  SX_WRAP int name(const char *path, int flags) {                      \
    SX_NEXT(name);                                                     \
    Node node = named(path);                                           \
    if (node != Node::None) return open_node(node, flags);             \
    const char *own = own_program(path);                               \
    return real(own ? own : path, flags);                              \
  }
SX_OPEN_2(__open_2)
SX_OPEN_2(__open64_2)

#define SX_FOPEN(name)                                                 \
  SX_WRAP FILE *name(const char *path, const char *mode) {             \
    SX_NEXT(name);                                                     \
    const std::string ours = moved(path);                              \
    return real(ours.empty() ? path : ours.c_str(), mode);             \
  }
SX_FOPEN(fopen)
SX_FOPEN(fopen64)

SX_WRAP DIR *opendir(const char *path) {
  SX_NEXT(opendir);
  const std::string ours = moved(path);
  return real(ours.empty() ? path : ours.c_str());
}

SX_WRAP int access(const char *path, int wanted) noexcept {
  SX_NEXT(access);
  if (named(path) != Node::None) return 0;
  const std::string ours = moved(path);
  return real(ours.empty() ? path : ours.c_str(), wanted);
}

SX_WRAP int close(int fd) {
  SX_NEXT(close);
  set_node(fd, Node::None);
  return real(fd);
}

SX_WRAP void *mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  Node node = flags & MAP_ANONYMOUS ? Node::None : node_of(fd);
  if (node == Node::None) return system_mmap(at, size, protection, flags, fd, offset);
  return map_node(node, at, size, protection, flags, static_cast<uint64_t>(offset));
}

SX_WRAP void *mmap64(void *at, size_t size, int protection, int flags, int fd, off64_t offset) noexcept {
  return mmap(at, size, protection, flags, fd, offset);
}

SX_WRAP int ioctl(int fd, unsigned long number, ...) noexcept {
  va_list more;
  va_start(more, number);
  void *argument = va_arg(more, void *);
  va_end(more);
  Node node = node_of(fd);
  if (node == Node::Kfd) return request(number, argument);
  if (node == Node::Render) {
    sx::log_line("SX0870: the emulated card's display side has no ioctl 0x%lx", number);
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(syscall(SYS_ioctl, fd, number, argument));
}
