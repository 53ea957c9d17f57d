#include "log.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace sx {

namespace {

constexpr char kClear[] = "\r\x1b[K";
std::atomic<bool> g_status{false};  // whether the terminal's last line is ours

}  // namespace

void status_line(const std::string &text) {
  std::string whole = kClear + text;
  if (g_status.exchange(!text.empty()) || !text.empty()) write_quietly(STDERR_FILENO, whole.data(), whole.size());
}

void log_line(const char *format, ...) {
  static const char prefix[] = "sassxlate: ";
  char text[2048];
  size_t used = 0;
  if (g_status.exchange(false)) used = sizeof kClear - 1, memcpy(text, kClear, used);
  memcpy(text + used, prefix, sizeof prefix);
  used += sizeof prefix - 1;
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text + used, sizeof text - used - 1, format, args);
  va_end(args);
  if (n < 0) return;
  used += static_cast<size_t>(n);
  if (used > sizeof text - 2) used = sizeof text - 2;
  text[used++] = '\n';
  write_quietly(STDERR_FILENO, text, used);
}

bool write_quietly(int fd, const void *data, size_t size) {
  sigset_t ours, before, pending, mine;
  sigemptyset(&ours);
  sigaddset(&ours, SIGPIPE);
  sigaddset(&ours, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  sigpending(&pending);
  const char *bytes = static_cast<const char *>(data);
  bool failed = false;
  while (size && !failed) {
    ssize_t n = write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    failed = n <= 0;
    if (failed) break;
    bytes += n;
    size -= static_cast<size_t>(n);
  }
  int error = errno;
  if (failed && (error == EPIPE || error == EFBIG)) {
    // The signal of this write, unless one of the application's was waiting already.
    int number = error == EPIPE ? SIGPIPE : SIGXFSZ;
    sigemptyset(&mine);
    sigaddset(&mine, number);
    timespec now = {0, 0};
    if (!sigismember(&pending, number)) sigtimedwait(&mine, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return !failed;
}

bool append_row(const std::string &path, const std::string &row) {
  if (path.empty()) {
    // No command waits for the program's end: one that carries its translation says it itself (preload/summary.cpp).
    using Collect = void (*)(const char *);
    if (auto collect = reinterpret_cast<Collect>(dlsym(RTLD_DEFAULT, "sassxlate_collect_row"))) collect(row.c_str());
    return true;
  }
  const int file = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return true;
  const bool written = write_quietly(file, row.data(), row.size());
  close(file);
  return written;
}

namespace {

// The environment that the process started with.
std::string read_environment() {
  std::string text;
  // Not that of "self": it is empty once the main thread has ended by pthread_exit.
  int file = open("/proc/thread-self/environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(file);
  return text;
}

// A copy of the variables that `run` set: some applications clear their environment.
const char *first_value(const char *name) {
  static const std::string *const environment = new std::string(read_environment());
  size_t length = strlen(name);
  for (size_t at = 0; at < environment->size(); at = environment->find('\0', at) + 1) {
    if (!environment->compare(at, length, name) && (*environment)[at + length] == '=')
      return environment->c_str() + at + length + 1;
    if (environment->find('\0', at) == std::string::npos) break;
  }
  return nullptr;
}

const char *value_of(const char *name) {
  const char *value = getenv(name);
  return value || strncmp(name, "SASSXLATE_", 10) != 0 ? value : first_value(name);
}

}  // namespace

std::string env_string(const char *name, const std::string &fallback) {
  const char *value = value_of(name);
  return value && *value ? std::string(value) : fallback;
}

uint64_t env_size(const char *name, uint64_t fallback) {
  const char *value = value_of(name);
  if (!value || *value < '0' || *value > '9') return fallback;
  char *end = nullptr;
  uint64_t number = strtoull(value, &end, 0);
  unsigned shift = 0;
  switch (*end) {
    case 'k': case 'K': shift = 10; break;
    case 'm': case 'M': shift = 20; break;
    case 'g': case 'G': shift = 30; break;
    case 't': case 'T': shift = 40; break;
    default: break;
  }
  if (shift && number > (UINT64_MAX >> shift)) return fallback;
  return number << shift;
}

bool env_flag(const char *name) {
  std::string value = env_string(name);
  return !value.empty() && value != "0" && value != "no" && value != "off" && value != "false";
}

}  // namespace sx
