#include "report.h"

#include <cstdarg>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

#include "carried.h"
#include "log.h"
#include "summary.h"

namespace sx::preload {
namespace {

constexpr int kUnsupported = 3;

// An environment variable as the process started with it; "" where unset.  Not getenv: before the first
// constructor the C library has not set its copy up.
std::string environment(const char *name) {
  std::string text;
  int file = open("/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (file < 0) return text;
  char buffer[4096];
  for (ssize_t n; (n = read(file, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(file);
  std::string wanted = std::string(name) + "=";
  for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1) {
    if (!text.compare(at, wanted.size(), wanted)) return text.c_str() + at + wanted.size();
    if (text.find('\0', at) == std::string::npos) break;
  }
  return "";
}

}  // namespace

void report(const char *code, const std::string &object, const std::string &text) {
  std::string line = std::string(code) + ": " + object + ": " + text;
  log_line("%s", line.c_str());
  // The fields of every refusal: what, code, CUDA error, kernel, text.
  std::string row = std::string("refused\t") + code + "\t35\t(runtime)\t" + line + "\n";
  if (!append_row(environment("SASSXLATE_REPORT"), row)) log_line("the report cannot be written");
}

void refuse(const char *code, const std::string &object, const std::string &text) {
  report(code, object, text);
  say_summary();
  _exit(kUnsupported);
}

bool replaces(const std::string &word) {
  static const std::string list = [] {
    const std::string given = environment("SASSXLATE_REPLACE");
    const std::string made_for = given.empty() ? carried_setting("replace") : given;
    return "," + (made_for.empty() ? "cufft" : made_for) + ",";
  }();
  return list.find("," + word + ",") != std::string::npos;
}

bool tracing() {
  static const bool on = environment("SASSXLATE_PRELOAD_TRACE") == "1";
  return on;
}

void trace(const char *format, ...) {
  if (!tracing()) return;
  char text[1536];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  log_line("%s", text);
}

}  // namespace sx::preload
