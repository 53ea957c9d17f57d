#include "spawn.h"

#include "files.h"
#include "log.h"
#include "sanitizers.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace sx {
namespace {

constexpr const char *kKeep[] = {"HOME=", "PATH=", "USER=", "LOGNAME=", "LANG=", "LC_", "TMPDIR=",
                                 "TMP=", "TEMP=", "TZ=", "XDG_", "SASSXLATE_"};

// The variables that the service inherits: an application's LD_PRELOAD, PYTHONPATH or CUDA settings must not affect it.
std::vector<std::string> clean_environment() {
  std::vector<std::string> kept;
  for (char **entry = environ; entry && *entry; ++entry)
    for (const char *prefix : kKeep)
      if (strncmp(*entry, prefix, strlen(prefix)) == 0) {
        kept.emplace_back(*entry);
        break;
      }
  std::string path = env_string("SASSXLATE_PYTHONPATH");
  if (!path.empty()) kept.push_back("PYTHONPATH=" + path);
  return kept;
}

std::vector<char *> pointers(std::vector<std::string> &strings) {
  std::vector<char *> out;
  out.reserve(strings.size() + 1);
  for (auto &text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// fork() without the application's atfork handlers and without SIGCHLD: the application must not notice.  Nor must its
// debugger: gdb takes a child without SIGCHLD for a thread, and its exec for the application's.
SX_UNSANITIZED pid_t quiet_fork() { return static_cast<pid_t>(syscall(SYS_clone, CLONE_UNTRACED, 0, 0, 0, 0)); }

// While this exists no signal comes, in this thread and in what it forks: a handler of the application's must not run
// in a copy of its process.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals &) = delete;
  NoSignals &operator=(const NoSignals &) = delete;

 private:
  sigset_t before_;
};

struct Report {
  pid_t pid;
  int error;
};

// The processes between fork and exec make system calls alone.  Other threads of the application may have held any lock
// when they were copied, those of a library that stands before the C library's functions (a sanitizer's) among them.
SX_UNSANITIZED void say(int file, pid_t pid, int error) {
  Report report = {pid, error};
  syscall(SYS_write, file, &report, sizeof report);
}

[[noreturn]] SX_UNSANITIZED void end(int status) {
  while (true) syscall(SYS_exit_group, status);
}

// As the kernel has it.
struct Action {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

// Handlers go, then signals may come again; SIGPIPE, which an application may ignore, is what it is by default.
SX_UNSANITIZED void take_signals() {
  const unsigned long none = 0;
  const Action plain = {SIG_DFL, 0, nullptr, 0};
  for (int number = 1; number <= 64; ++number) {
    Action now = plain;
    syscall(SYS_rt_sigaction, number, nullptr, &now, sizeof none);
    if (now.handler != SIG_IGN || number == SIGPIPE) syscall(SYS_rt_sigaction, number, &plain, nullptr, sizeof none);
  }
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
}

[[noreturn]] SX_UNSANITIZED void become(char **argv, char **envp, const char *log, int report_fd, int max_fd) {
  take_signals();
  syscall(SYS_umask, 077);
  syscall(SYS_chdir, "/");
  long in = syscall(SYS_open, "/dev/null", O_RDONLY);
  long out = syscall(SYS_open, log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (out < 0) out = syscall(SYS_open, "/dev/null", O_WRONLY);
  long keep = syscall(SYS_fcntl, report_fd, F_DUPFD_CLOEXEC, 10);
  syscall(SYS_dup2, in, 0);
  syscall(SYS_dup2, out, 1);
  syscall(SYS_dup2, out, 2);
  for (int fd = 3; fd < max_fd; ++fd)
    if (fd != keep) syscall(SYS_close, fd);
  syscall(SYS_execve, argv[0], argv, envp);
  say(static_cast<int>(keep), static_cast<pid_t>(syscall(SYS_getpid)), errno);
  end(127);
}

// Forks twice, so that the service is no child of the application's.  The child's number.
SX_UNSANITIZED pid_t start(char **argv, char **envp, const char *log, int report_fd, int max_fd) {
  pid_t child = quiet_fork();
  if (child != 0) return child;
  syscall(SYS_setsid);
  pid_t grandchild = quiet_fork();
  if (grandchild == 0) become(argv, envp, log, report_fd, max_fd);
  say(report_fd, grandchild, grandchild < 0 ? errno : 0);
  end(0);
}

int highest_descriptor() {
  int highest = 1024;
  if (DIR *dir = opendir("/proc/self/fd")) {
    while (dirent *entry = readdir(dir)) {
      int fd = atoi(entry->d_name);
      if (fd >= highest) highest = fd + 1;
    }
    closedir(dir);
  }
  return highest + 64;  // some more, for those that other threads are opening now
}

}  // namespace

std::string service_python() {
  std::string python = env_string("SASSXLATE_PYTHON");
  if (!python.empty()) return python;
  std::string beside = library_dir() + "/python";
  char link[4096];
  ssize_t n = readlink(beside.c_str(), link, sizeof link - 1);
  // Only one level: where a virtual environment's interpreter points would be outside of it.
  if (n > 0 && link[0] == '/') return std::string(link, static_cast<size_t>(n));
  if (n < 0 && read_file(beside, python, 4096) && python[0] == '/')
    return python.substr(0, python.find('\n'));
  std::string path = env_string("PATH", "/usr/local/bin:/usr/bin:/bin");
  for (size_t at = 0; at <= path.size();) {
    size_t colon = path.find(':', at);
    if (colon == std::string::npos) colon = path.size();
    std::string candidate = path.substr(at, colon - at) + "/python3";
    if (candidate[0] == '/' && access(candidate.c_str(), X_OK) == 0) return candidate;
    at = colon + 1;
  }
  return "";
}

pid_t spawn_detached(const std::vector<std::string> &argv, const std::string &log, std::string &error) {
  std::vector<std::string> arguments = argv, environment = clean_environment();
  std::vector<char *> args = pointers(arguments), env = pointers(environment);
  int max_fd = highest_descriptor();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    error = std::string("pipe: ") + strerror(errno);
    return -1;
  }
  pid_t child;
  int failed = 0;
  {
    NoSignals guard;
    child = start(args.data(), env.data(), log.c_str(), ends[1], max_fd);
    if (child < 0) failed = errno;
  }
  close(ends[1]);
  if (child < 0) {
    error = std::string("fork: ") + strerror(failed);
    close(ends[0]);
    return -1;
  }
  // One report of the child, then the end of file when the grandchild's exec succeeds, or its error.
  Report report, result = {-1, 0};
  while (true) {
    ssize_t n = read(ends[0], &report, sizeof report);
    if (n < 0 && errno == EINTR) continue;
    if (n != sizeof report) break;
    result.pid = report.pid;
    if (report.error) result.error = report.error;
  }
  close(ends[0]);
  while (waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  if (result.error) {
    error = argv[0] + ": " + strerror(result.error);
    return -1;
  }
  return result.pid;
}

bool process_alive(pid_t pid) {
  if (pid <= 0 || kill(pid, 0) != 0) return false;
  std::string stat;
  if (!read_file("/proc/" + std::to_string(pid) + "/stat", stat, 4096)) return true;
  size_t close_paren = stat.rfind(')');
  return close_paren == std::string::npos || stat.compare(close_paren, 3, ") Z") != 0;
}

}  // namespace sx
