#include "files.h"

#include "log.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
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

std::string cache_dir() {
  std::string dir = env_string("SASSXLATE_CACHE_DIR");
  if (!dir.empty()) return dir;
  std::string xdg = env_string("XDG_CACHE_HOME");
  // The XDG specification: a relative path is invalid and is ignored.
  return (!xdg.empty() && xdg[0] == '/' ? xdg : home_directory() + "/.cache") + "/sassxlate";
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
  std::string path;
  int fd = -1;
  // A relative path means another place to the service.
  if (own[0] == '/') mkdir(own.c_str(), 0700);
  else own = "/nonexistent";
  for (const std::string &start : {own + "/", env_string("TMPDIR", "/tmp") + "/sassxlate-", std::string("/tmp/sassxlate-")}) {
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

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

bool MappedFile::open(const std::string &path, std::string &error) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd_ < 0 || fstat(fd_, &st) != 0) {
    error = path + ": " + strerror(errno);
    return false;
  }
  if (!S_ISREG(st.st_mode) || (st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022)) {
    error = path + ": not a file of this user's that only he can write";
    return false;
  }
  if (st.st_size <= 0) {
    error = path + ": empty file";
    return false;
  }
  size_ = static_cast<size_t>(st.st_size);
  void *view = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0);
  if (view == MAP_FAILED) {
    error = path + ": " + strerror(errno);
    return false;
  }
  data_ = static_cast<uint8_t *>(view);
  return true;
}

}  // namespace sx
