// Starts programs in the background, as the service is started, in a process that is busy.
// spawning threads|signals COUNT: prints how many were started, and how often a handler ran in a copy of the process.
#include "spawn.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

pid_t g_self;
std::atomic<int> *g_elsewhere;  // in memory that copies share

void handle(int) {
  if (syscall(SYS_getpid) != g_self) ++*g_elsewhere;
}

std::atomic<bool> g_done{false};

// Threads come and go, so that the thread that counts them often holds its lock.
void make_threads() {
  while (!g_done) std::thread([] {}).join();
}

void send_signals() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  while (!g_done) kill(0, SIGUSR1);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  g_self = getpid();
  setpgid(0, 0);
  void *shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  g_elsewhere = new (shared) std::atomic<int>(0);
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  std::vector<std::thread> others;
  if (!strcmp(argv[1], "signals")) others.emplace_back(send_signals);
  else
    for (int i = 0; i < 3; ++i) others.emplace_back(make_threads);
  int started = 0;
  for (int i = 0, count = atoi(argv[2]); i < count; ++i) {
    std::string error;
    if (sx::spawn_detached({"/bin/true"}, "/dev/null", error) > 0) ++started;
    else fprintf(stderr, "%s\n", error.c_str());
  }
  g_done = true;
  for (std::thread &other : others) other.join();
  printf("started %d, handled elsewhere %d\n", started, g_elsewhere->load());
}
