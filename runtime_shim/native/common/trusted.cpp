#include "trusted.h"

#include "blake2b.h"
#include "files.h"
#include "log.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace sx {
namespace {

constexpr int kMostLinks = 40;  // as the kernel's own limit (path_resolution(7))
constexpr time_t kTouchAfterSeconds = 3600;
constexpr char kSealMagic[] = "SXSEAL01";

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { reset(); }
  void reset(int fd = -1) {
    int error = errno;
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
    errno = error;
  }
  int get() const { return fd_; }
  int release() {
    int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// The owner of "/" can replace everything below.  In a container that maps no root this is "nobody".
bool may_own_folders(uid_t owner) {
  static const uid_t top = [] {
    struct stat st;
    return stat("/", &st) == 0 ? st.st_uid : uid_t{0};
  }();
  return owner == geteuid() || owner == 0 || owner == top;
}

std::string owned_by(uid_t owner) { return " belongs to user " + std::to_string(owner); }

std::string writable(mode_t mode) {
  char text[64];
  snprintf(text, sizeof text, " can be written by other users (mode %04o)", static_cast<unsigned>(mode & 07777));
  return text;
}

bool folder_fits(const struct stat &st, const std::string &place, std::string &why) {
  if (!may_own_folders(st.st_uid)) why = place + owned_by(st.st_uid);
  else if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX)) why = place + writable(st.st_mode);
  return why.empty();
}

// The names of a path, the next one last.
void push_names(const std::string &path, std::vector<std::string> &names) {
  std::vector<std::string> found;
  for (size_t at = 0; at < path.size();) {
    size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at && path.compare(at, slash - at, ".") != 0) found.push_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  names.insert(names.end(), found.rbegin(), found.rend());
}

// Goes from "/" to the folder, and gives its descriptor (O_PATH); -1 as open_trusted.
int walk(const std::string &path, std::string &why) {
  why.clear();
  std::vector<std::string> names;
  push_names(absolute_path(path), names);
  Descriptor at(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string place;  // of `at`, for messages
  struct stat st;
  if (at.get() < 0 || fstat(at.get(), &st) != 0 || !folder_fits(st, "/", why)) return -1;
  for (int links = 0; !names.empty();) {
    std::string name = std::move(names.back());
    names.pop_back();
    Descriptor next(openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (next.get() < 0 || fstat(next.get(), &st) != 0) return -1;
    std::string here = place + "/" + name;
    if (S_ISLNK(st.st_mode)) {
      char target[4096];
      ssize_t n = readlinkat(next.get(), "", target, sizeof target);
      if (n <= 0 || n == static_cast<ssize_t>(sizeof target) || ++links > kMostLinks) {
        errno = ELOOP;
        return -1;
      }
      if (!may_own_folders(st.st_uid)) {
        why = here + " is a link that" + owned_by(st.st_uid);
        return -1;
      }
      push_names(std::string(target, static_cast<size_t>(n)), names);
      if (target[0] != '/') continue;
      at.reset(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
      place.clear();
      continue;
    }
    if (!S_ISDIR(st.st_mode)) {
      errno = ENOTDIR;
      return -1;
    }
    if (!folder_fits(st, here, why)) return -1;
    at.reset(next.release());
    place = std::move(here);
  }
  return at.release();
}

// Once in a process: one folder may hold all files.
void say_untrusted(const std::string &why) {
  static std::atomic<bool> said{false};
  if (!why.empty() && !said.exchange(true)) log_line("SX0912: a file of the cache is not used: %s", why.c_str());
}

std::string base_name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

void touch(int fd) {
  struct stat st;
  if (fstat(fd, &st) == 0 && time(nullptr) - st.st_mtime > kTouchAfterSeconds) futimens(fd, nullptr);
}

bool read_all(int fd, std::string &out, size_t limit) {
  struct stat st;
  out.clear();
  if (fstat(fd, &st) != 0 || st.st_size < 0 || static_cast<uint64_t>(st.st_size) > limit) return false;
  out.resize(static_cast<size_t>(st.st_size));
  for (size_t done = 0; done < out.size();) {
    ssize_t n = read(fd, out.data() + done, out.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

namespace {

// As open_trusted, for other ways to open; a file that is made is this user's alone.
int open_in_trusted(const std::string &path, int flags, std::string &why) {
  size_t slash = path.rfind('/');
  std::string name = base_name(path);
  Descriptor folder(walk(slash == std::string::npos ? "." : path.substr(0, slash + 1), why));
  if (folder.get() < 0) return -1;
  // Non-blocking: the path may be a pipe.
  Descriptor file(openat(folder.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600));
  struct stat st;
  if (file.get() < 0) {
    if (errno == ELOOP) why = path + " is a link";
    return -1;
  }
  if (fstat(file.get(), &st) != 0) return -1;
  if (!S_ISREG(st.st_mode)) why = path + " is not a regular file";
  else if (st.st_uid != geteuid() && st.st_uid != 0) why = path + owned_by(st.st_uid);
  else if (st.st_mode & 022) why = path + writable(st.st_mode);
  return why.empty() ? file.release() : -1;
}

}  // namespace

int open_trusted(const std::string &path, std::string &why) { return open_in_trusted(path, O_RDONLY, why); }

bool append_trusted(const std::string &path, const std::string &bytes, size_t limit) {
  std::string why;
  Descriptor file(open_in_trusted(path, O_WRONLY | O_APPEND | O_CREAT, why));
  struct stat st;
  return file.get() >= 0 && fstat(file.get(), &st) == 0 && static_cast<uint64_t>(st.st_size) + bytes.size() <= limit &&
         write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
}

size_t trusted_size(const std::string &path) {
  std::string why;
  Descriptor file(open_trusted(path, why));
  struct stat st;
  return file.get() >= 0 && fstat(file.get(), &st) == 0 ? static_cast<size_t>(st.st_size) : 0;
}

bool trusted_directory(const std::string &path, std::string &why) {
  Descriptor folder(walk(path, why));
  return why.empty();
}

bool sealed_size(const std::string &name, const uint8_t *data, size_t size, size_t &content) {
  if (size < kSealSize) return false;
  content = size - kSealSize;
  const uint8_t *seal = data + content;
  uint64_t said = 0;
  for (int i = 7; i >= 0; --i) said = said << 8 | seal[8 + i];
  if (memcmp(seal, kSealMagic, 8) != 0 || said != content) return false;
  Blake2b hash(16);
  hash.update(name);
  hash.update("\0", 1);
  hash.update(data, content);
  uint8_t sum[16];
  hash.digest(sum);
  return memcmp(seal + 16, sum, sizeof sum) == 0;
}

bool read_sealed(const std::string &path, std::string &out, size_t limit) {
  std::string why;
  Descriptor file(open_trusted(path, why));
  if (file.get() < 0) {
    say_untrusted(why);
    return false;
  }
  size_t content = 0;
  if (!read_all(file.get(), out, limit) ||
      !sealed_size(base_name(path), reinterpret_cast<const uint8_t *>(out.data()), out.size(), content)) {
    out.clear();
    return false;
  }
  out.resize(content);
  touch(file.get());
  return true;
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

bool MappedFile::open(const std::string &path, std::string &error) {
  fd_ = open_trusted(path, error);
  struct stat st;
  if (fd_ < 0 || fstat(fd_, &st) != 0) {
    say_untrusted(error);
    if (error.empty() && errno != ENOENT) error = path + ": " + strerror(errno);
    return false;
  }
  size_ = static_cast<size_t>(st.st_size);
  void *view = size_ ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd_, 0) : nullptr;
  if (view == MAP_FAILED) {
    error = path + ": " + strerror(errno);
    size_ = 0;
    return false;
  }
  data_ = static_cast<uint8_t *>(view);
  if (!data_ || !sealed_size(base_name(path), data_, size_, content_)) {
    error = path + ": damaged: its seal does not match";
    // It is ours, or it would not be open: remove it, because it blocks an intact one.
    unlink(path.c_str());
    return false;
  }
  touch(fd_);
  return true;
}

}  // namespace sx
