#include "trace.h"

#include "driver.h"
#include "log.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sx {
namespace {

constexpr size_t kNested = 16;  // calls of the driver inside calls
constexpr size_t kNote = 200;

thread_local char t_note[kNote];  // what the call in progress has to say
thread_local uint64_t t_begun[kNested];
thread_local size_t t_depth;

bool has_times() {
  static const bool times = env_string("SASSXLATE_TRACE_FORMAT") == "perfetto";
  return times;
}

int open_trace() {
  std::string dir = env_string("SASSXLATE_TRACE");
  if (dir.empty()) return -1;
  std::string name = dir + "/cuda-" + std::to_string(getpid()) + (has_times() ? ".times" : ".txt");
  return open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

int trace_file() {
  static const int file = open_trace();
  return file;
}

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

void put(const char *line, int size, size_t room) {
  if (size <= 0) return;
  size_t whole = static_cast<size_t>(size) < room ? static_cast<size_t>(size) : room - 1;
  if (write(trace_file(), line, whole) < 0) {
  }
}

void put_span(uint64_t begun, const char *name, CUresult result, const char *note) {
  char line[600];
  uint64_t end = now();
  int size = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 " %ld %s %d %s\n", begun, end - begun, syscall(SYS_gettid),
                      name, result, note);
  put(line, size, sizeof line);
}

// A text field of a request; empty if it has none.  Quotes in it are escaped, and end it here.
std::string field(const std::string &request, const std::string &name) {
  std::string head = "\"" + name + "\":\"";
  size_t at = request.find(head);
  if (at == std::string::npos) return "";
  at += head.size();
  return request.substr(at, std::min(request.find('"', at), at + kNote) - at);
}

}  // namespace

void trace_enter() {
  if (trace_file() < 0 || !has_times()) return;
  if (t_depth < kNested) t_begun[t_depth] = now();
  ++t_depth;
}

void trace_leave(const char *name, CUresult result) {
  if (trace_file() < 0) return;
  if (has_times()) {
    --t_depth;
    if (t_depth < kNested) put_span(t_begun[t_depth], name, result, t_note);
  } else {
    char line[400];
    int size = snprintf(line, sizeof line, "%s %d%s%s\n", name, result, *t_note ? " " : "", t_note);
    put(line, size, sizeof line);
  }
  *t_note = 0;
}

void note(const char *format, ...) {
  if (trace_file() < 0) return;
  va_list args;
  va_start(args, format);
  vsnprintf(t_note, sizeof t_note, format, args);
  va_end(args);
}

TracedRequest::TracedRequest(const std::string &request) {
  if (trace_file() < 0 || !has_times()) return;
  begun_ = now();
  what_ = field(request, "op") + " " + field(request, "kernel");
}

void TracedRequest::end(CUresult result) const {
  if (begun_ != 0) put_span(begun_, "(service)", result, what_.c_str());
}

}  // namespace sx
