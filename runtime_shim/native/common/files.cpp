#include "files.h"

#include "log.h"
#include "trusted.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <mutex>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <vector>

namespace sx {
namespace {

std::string home_directory() {
  std::string home = env_string("HOME");
  if (!home.empty()) return home;
  passwd entry, *found = nullptr;
  std::vector<char> buffer(16384);
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->pw_dir;
  return "/tmp";
}

bool make_parents(const std::string &path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0777) != 0 && errno != EEXIST) return false;
  }
  return true;
}

std::string wanted_cache() {
  std::string dir = env_string("SASSXLATE_CACHE_DIR");
  if (!dir.empty()) return absolute_path(dir);
  std::string xdg = env_string("XDG_CACHE_HOME");
  // The XDG specification: a relative path is invalid and is ignored.
  return (!xdg.empty() && xdg[0] == '/' ? xdg : home_directory() + "/.cache") + "/sassxlate";
}

}  // namespace

std::string library_dir() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&library_dir), &info) || !info.dli_fname) return ".";
  char *full = realpath(info.dli_fname, nullptr);
  std::string path = full ? full : info.dli_fname;
  free(full);
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string absolute_path(const std::string &path) {
  if (!path.empty() && path[0] == '/') return path;
  char *directory = getcwd(nullptr, 0);
  std::string full = directory ? std::string(directory) + "/" + path : path;
  free(directory);
  return full;
}

std::string runtime_dir() {
  std::string name = "/sassxlate-" + std::to_string(geteuid()), xdg = env_string("XDG_RUNTIME_DIR");
  struct stat st;
  // A variable left over from another session names a directory that is gone, or another user's.
  bool usable = !xdg.empty() && xdg[0] == '/' && (xdg + name + "/service.sock").size() < sizeof sockaddr_un::sun_path &&
                (private_directory(xdg + name) || lstat((xdg + name).c_str(), &st) == 0);
  return (usable ? xdg : "/tmp") + name;
}

std::string cache_dir() {
  static std::mutex mutex;
  static std::string asked, known;
  std::string wanted = wanted_cache(), why;
  std::lock_guard<std::mutex> guard(mutex);
  if (wanted == asked) return known;
  asked = known = wanted;
  if (!trusted_directory(wanted, why)) {
    std::string own = runtime_dir();
    if (private_directory(own)) known = own + "/cache";
    log_line("SX0912: the cache is not used: %s; using %s", why.c_str(), known.c_str());
  }
  return known;
}

bool can_read(const std::string &path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO does not hold the caller up
  if (fd < 0) return false;
  close(fd);
  return true;
}

bool read_file(const std::string &path, std::string &out, size_t limit) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  out.clear();
  char buffer[16384];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 && out.size() <= limit)
    out.append(buffer, static_cast<size_t>(n));
  close(fd);
  return n == 0 && out.size() <= limit;
}

std::string write_temporary(const char *stem, const void *data, size_t size) {
  // In the cache first: of a process that is killed, the service removes what the name says is its.
  std::string name = std::string(stem) + "-" + std::to_string(getpid()) + "-XXXXXX", own = cache_dir() + "/tmp";
  std::string path, why;
  int fd = -1;
  mkdir(own.c_str(), 0700);
  for (const std::string &start : {own + "/", absolute_path(env_string("TMPDIR", "/tmp")) + "/sassxlate-",
                                   std::string("/tmp/sassxlate-")}) {
    if (!trusted_directory(start.substr(0, start.rfind('/')), why)) continue;
    path = start + name;
    fd = mkostemp(path.data(), O_CLOEXEC);
    if (fd >= 0) break;
  }
  if (fd < 0) return "";
  bool whole = write_quietly(fd, data, size);
  close(fd);
  if (whole) return path;
  unlink(path.c_str());
  return "";
}

bool private_directory(const std::string &path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    if (errno != ENOENT || !make_parents(path)) return false;
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  struct stat st;
  return lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
         (st.st_mode & 077) == 0;
}

}  // namespace sx
