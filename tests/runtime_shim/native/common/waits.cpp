// Waits for answers as the libraries do, on a clock that runs 40 times as fast: arguments are a kernel and the seconds
// (of that clock) that its answer takes, in turn.  Or prints the short names of its arguments.
#include "json.h"
#include "log.h"
#include "waiting.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

constexpr double kFast = 40;

extern "C" int clock_gettime(clockid_t which, timespec *t) noexcept {
  static timespec start = {};
  timespec real;
  syscall(SYS_clock_gettime, which, &real);
  if (!start.tv_sec) start = real;
  double passed = static_cast<double>(real.tv_sec - start.tv_sec) + 1e-9 * static_cast<double>(real.tv_nsec - start.tv_nsec);
  passed = 100 + kFast * passed;
  t->tv_sec = static_cast<time_t>(passed);
  t->tv_nsec = static_cast<long>((passed - static_cast<double>(t->tv_sec)) * 1e9);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 2 && !strcmp(argv[1], "names")) {
    for (int i = 2; i < argc; ++i) puts(sx::short_name(argv[i], 60).c_str());
    return 0;
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    int ends[2];
    if (pipe(ends)) return 1;
    double seconds = atof(argv[i + 1]) / kFast;
    std::thread answer([&] {
      usleep(static_cast<useconds_t>(seconds * 1e6));
      if (write(ends[1], "x", 1) != 1) abort();
    });
    {
      sx::Waiting waiting("{\"op\":\"translate\",\"kernel\":" + sx::json::quote(argv[i]) + "}");
      waiting.wait(ends[0]);
    }
    answer.join();
    close(ends[0]);
    close(ends[1]);
  }
  sx::log_line("done");
}
