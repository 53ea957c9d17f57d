#include "spawn.h"

#include "files.h"
#include "log.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
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

// fork() without the application's atfork handlers and without SIGCHLD: the application must not notice.
pid_t quiet_fork() { return static_cast<pid_t>(syscall(SYS_clone, 0, 0, 0, 0, 0)); }

struct Report {
  pid_t pid;
  int error;
};

// In the grandchild only async-signal-safe calls are allowed.
[[noreturn]] void become(char **argv, char **envp, const char *log, int report_fd, int max_fd) {
  signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  umask(077);
  if (chdir("/") != 0) {
  }
  int in = open("/dev/null", O_RDONLY);
  int out = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
  if (out < 0) out = open("/dev/null", O_WRONLY);
  int keep = fcntl(report_fd, F_DUPFD_CLOEXEC, 10);
  dup2(in, 0);
  dup2(out, 1);
  dup2(out, 2);
  for (int fd = 3; fd < max_fd; ++fd)
    if (fd != keep) close(fd);
  execve(argv[0], argv, envp);
  Report report = {getpid(), errno};
  if (write(keep, &report, sizeof report) < 0) {
  }
  _exit(127);
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
  pid_t child = quiet_fork();
  if (child == 0) {
    setsid();
    pid_t grandchild = quiet_fork();
    if (grandchild == 0) become(args.data(), env.data(), log.c_str(), ends[1], max_fd);
    Report report = {grandchild, grandchild < 0 ? errno : 0};
    if (write(ends[1], &report, sizeof report) < 0) {
    }
    _exit(0);
  }
  close(ends[1]);
  if (child < 0) {
    error = std::string("fork: ") + strerror(errno);
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
