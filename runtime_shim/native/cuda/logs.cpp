// Error Log Management: messages in a buffer of 25,600 bytes, of which the oldest are overwritten.  What NVIDIA's manual
// leaves open is as driver 13.0 does it on an H100: callbacks get the text alone, in the order of their registration;
// calls before cuInit are not logged; iterators count messages; flags are not looked at.
#include "logs.h"

#include "driver.h"
#include "log.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <deque>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

namespace sx {
namespace {

using Heard = void (*)(void *data, int level, char *message, size_t length);
using Iterator = unsigned;

constexpr int kError = 0;          // CU_LOG_LEVEL_ERROR
constexpr size_t kBuffer = 25600;  // bytes
constexpr char kLost[] = "Older messages were left out\n";

struct Callback {
  Heard heard;
  void *data;
};

struct Log {
  std::mutex mutex;
  std::deque<std::string> lines;  // each with its end of line
  size_t bytes = 0;
  Iterator next = 0;  // the number of the next message
  std::vector<std::unique_ptr<Callback>> callbacks;
};

Log &all() {
  static auto *const log = new Log;  // not destroyed: calls may come at the very end
  return *log;
}

thread_local char t_reason[1024];
thread_local bool t_telling;  // inside a callback: what fails there is logged, and told to none

// CUDA_LOG_FILE: stdout, stderr or a path.
int log_file() {
  static const int file = [] {
    const std::string name = env_string("CUDA_LOG_FILE");
    if (name.empty()) return -1;
    if (name == "stdout") return STDOUT_FILENO;
    if (name == "stderr") return STDERR_FILENO;
    return open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  }();
  return file;
}

// "[time][thread][CUDA][E] text", as documented.
std::string line_of(const std::string &text) {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  tm parts;
  localtime_r(&time.tv_sec, &parts);
  char head[96];
  snprintf(head, sizeof head, "[%02d:%02d:%02d.%03ld][%lu][CUDA][E] ", parts.tm_hour, parts.tm_min, parts.tm_sec,
           time.tv_nsec / 1000000, static_cast<unsigned long>(pthread_self()));
  return head + text + "\n";
}

void add(std::string text) {
  Log &log = all();
  const std::string line = line_of(text);
  std::vector<Callback> told;
  {
    std::lock_guard<std::mutex> guard(log.mutex);
    log.lines.push_back(line);
    log.bytes += line.size();
    ++log.next;
    while (log.bytes > kBuffer) {
      log.bytes -= log.lines.front().size();
      log.lines.pop_front();
    }
    if (!t_telling)
      for (const auto &callback : log.callbacks) told.push_back(*callback);
  }
  if (log_file() >= 0) write_quietly(log_file(), line.data(), line.size());
  t_telling = true;
  for (const Callback &callback : told) callback.heard(callback.data, kError, text.data(), text.size());
  if (!told.empty()) t_telling = false;
}

// The messages from an iterator on (all without one), as many of the newest as fit into `room` bytes; false: none does.
// Advances the iterator.
bool newest(Iterator *iterator, size_t room, std::string &text) {
  Log &log = all();
  std::lock_guard<std::mutex> guard(log.mutex);
  const auto held = static_cast<Iterator>(log.lines.size());
  Iterator wanted = iterator ? log.next - *iterator : log.next;
  if (iterator && *iterator > log.next) wanted = 0;  // none of ours
  Iterator count = std::min(wanted, held);
  size_t size = 0;
  for (Iterator i = held - count; i < held; ++i) size += log.lines[i].size();
  const size_t mark = sizeof kLost - 1;
  while (count && size + (count < wanted ? mark : 0) > room) size -= log.lines[held - count--].size();
  if (wanted && !count) return false;
  if (count < wanted) text = kLost;
  for (Iterator i = held - count; i < held; ++i) text += log.lines[i];
  if (iterator) *iterator = log.next;
  return true;
}

CUresult invalid(const char *why) {
  log_reason(why);
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

void log_reason(const char *text) {
  const size_t used = strlen(t_reason);
  snprintf(t_reason + used, sizeof t_reason - used, "%s%s", used ? "\n" : "", text);
}

void log_result(const char *name, CUresult result) {
  const bool failed = result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY && result != CUDA_ERROR_NOT_INITIALIZED &&
                      result != CUDA_ERROR_DEINITIALIZED;
  if (*t_reason) {
    std::string reasons = t_reason;
    *t_reason = 0;
    while (failed && !reasons.empty()) {
      const size_t end = reasons.find('\n');
      add(reasons.substr(0, end));
      reasons.erase(0, end == std::string::npos ? end : end + 1);
    }
  }
  if (failed) add("Returning " + std::to_string(result) + " (" + error_name(result) + ") from " + name);
}

}  // namespace sx

using namespace sx;

SX_API cuLogsRegisterCallback(Heard heard, void *data, void **handle) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!heard) return invalid("callbackFunc cannot be NULL");
    Log &log = all();
    std::lock_guard<std::mutex> guard(log.mutex);
    log.callbacks.push_back(std::make_unique<Callback>(Callback{heard, data}));
    if (handle) *handle = log.callbacks.back().get();
    return CUDA_SUCCESS;
  });
}

SX_API cuLogsUnregisterCallback(void *handle) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    Log &log = all();
    std::lock_guard<std::mutex> guard(log.mutex);
    auto &list = log.callbacks;
    const auto it = std::find_if(list.begin(), list.end(), [&](const auto &one) { return one.get() == handle; });
    if (it == list.end()) return CUDA_ERROR_INVALID_VALUE;
    list.erase(it);
    return CUDA_SUCCESS;
  });
}

SX_API cuLogsCurrent(Iterator *iterator, unsigned /*flags*/) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!iterator) return invalid("Iterator cannot be NULL");
    Log &log = all();
    std::lock_guard<std::mutex> guard(log.mutex);
    *iterator = log.next;
    return CUDA_SUCCESS;
  });
}

SX_API cuLogsDumpToMemory(Iterator *iterator, char *buffer, size_t *size, unsigned /*flags*/) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!buffer) return invalid("buffer cannot be NULL");
    if (!size) return invalid("size cannot be NULL");
    std::string text;
    const size_t room = *size;
    *size = 0;
    if (!room || !newest(iterator, room - 1, text)) return invalid("Provided buffer is not large enough to write any logs to");
    memcpy(buffer, text.c_str(), text.size() + 1);
    *size = text.size();
    return CUDA_SUCCESS;
  });
}

SX_API cuLogsDumpToFile(Iterator *iterator, const char *path, unsigned /*flags*/) {
  return enter<Need::Nothing>(__func__, [&]() -> CUresult {
    if (!path) return invalid("pathToFile cannot be NULL");
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return invalid("the file cannot be opened");
    std::string text;
    newest(iterator, kBuffer + sizeof kLost, text);
    const bool written = write_quietly(file, text.data(), text.size());
    close(file);
    return written ? CUDA_SUCCESS : invalid("the file cannot be written");
  });
}
