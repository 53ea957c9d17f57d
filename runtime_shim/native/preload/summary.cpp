#include "summary.h"

#include "carried.h"
#include "log.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

namespace sx::preload {
namespace {

constexpr int kRefused = 3;
constexpr size_t kMostRows = 1000;

struct Refusal {
  std::string code, kernel, line;
  // As application.Refusal.lost: a launch was lost, not a request to a library.
  bool lost() const { return kernel != "(runtime)" && code.compare(0, 5, "SX078") != 0; }
};

struct State {
  std::mutex mutex;
  std::vector<Refusal> refusals;
};

// Like seen() in preload.cpp: created before this library's constructors.
State &state() {
  static State *const one = new State;
  return *one;
}

// The fields of a row: what, code, CUDA error, kernel, text.
void add(const char *row) {
  std::vector<std::string> fields(1);
  for (const char *c = row; *c && *c != '\n'; ++c)
    if (*c == '\t') fields.emplace_back();
    else fields.back() += *c;
  if (fields.size() != 5 || fields[0] != "refused") return;
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  for (const Refusal &known : s.refusals)
    if (known.line == fields[4] && known.kernel == fields[3]) return;
  if (s.refusals.size() < kMostRows) s.refusals.push_back({fields[1], fields[3], fields[4]});
}

std::string program() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return "the program";
  path[size] = 0;
  return strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

// The last of `exit`'s functions: a second exit changes the status, and goes on with what is left (glibc's manual,
// "Normal Termination"; its own functions flush the streams after this one).
void at_end() {
  {
    State &s = state();
    std::lock_guard<std::mutex> guard(s.mutex);
    if (s.refusals.empty()) return;
  }
  say_summary();
  if (!env_flag("SASSXLATE_RUN_KEEP_STATUS")) exit(kRefused);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

void begin_summary() {
  if (program_carries()) atexit(at_end);
}

void say_summary() {
  State &s = state();
  std::lock_guard<std::mutex> guard(s.mutex);
  if (s.refusals.empty()) return;
  const size_t many = s.refusals.size();
  log_line("%zu %s in this run; attach to a report:", many, many == 1 ? "refusal" : "refusals");
  log_line("  sassxlate %s, embedded, targets %s", carried_setting("version").c_str(), carried_setting("targets").c_str());
  for (const Refusal &refusal : s.refusals) log_line("  %s", refusal.line.c_str());
  const Refusal *first = &s.refusals.front();
  for (const Refusal &refusal : s.refusals)
    if (refusal.lost()) {
      first = &refusal;
      break;
    }
  std::string what = first->lost() ? "kernels of a module were not run" : "a request was refused";
  if (first->lost() && first->kernel != "*") what = "kernel " + first->kernel + " was not run";
  const std::string more = many > 1 ? ", and " + std::to_string(many - 1) + " more" : "";
  log_line("DO NOT TRUST the output of %s: %s (%s)%s", program().c_str(), what.c_str(), first->code.c_str(), more.c_str());
}

}  // namespace sx::preload

// Called with rows for a run's report where there is no `sassxlate run` (common/log.cpp).
extern "C" __attribute__((visibility("default"))) void sassxlate_collect_row(const char *row) {
  if (sx::program_carries()) sx::preload::add(row);
}
