#include "overruns.h"

#include "log.h"
#include "state.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

namespace sx {
namespace {

constexpr uint64_t kWatched = 4096;
constexpr unsigned kRows = 100;  // a program that overruns one array in a loop has said so by then

const std::string &report_path() {
  static const std::string *const path = new std::string(env_string("SASSXLATE_REPORT"));
  return *path;
}

bool watching() { return !config().strict && !report_path().empty(); }

uint64_t watched(uint64_t size, uint64_t span) { return std::min(span - size, kWatched); }

}  // namespace

void overrun_watch(uint64_t base, uint64_t size, uint64_t span) {
  if (watching()) memset(reinterpret_cast<void *>(base + size), 0, watched(size, span));
}

void overrun_check(uint64_t base, uint64_t size, uint64_t span) {
  if (!watching()) return;
  const auto *slack = reinterpret_cast<const volatile uint8_t *>(base + size);
  uint64_t end = watched(size, span);
  while (end && !slack[end - 1]) --end;
  static std::atomic<unsigned> rows{0};
  if (!end || rows.fetch_add(1) >= kRows) return;
  char row[240];
  snprintf(row, sizeof row,
           "forgiven\tSX0679\t%llu bytes past the end of an allocation of %llu bytes (0x%llx) were written\n",
           static_cast<unsigned long long>(end), static_cast<unsigned long long>(size),
           static_cast<unsigned long long>(base));
  append_row(report_path(), row);
}

}  // namespace sx
