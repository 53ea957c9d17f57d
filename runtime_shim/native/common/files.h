// Files and places: the library's own directory, the cache, temporary files, read-only views.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sx {

// The directory that this library was loaded from, without a slash at its end.
std::string library_dir();

// SASSXLATE_CACHE_DIR, else $XDG_CACHE_HOME/sassxlate, else ~/.cache/sassxlate; it need not exist.
std::string cache_dir();

// The whole of a file, at most `limit` bytes; false where it cannot be read or is longer.
bool read_file(const std::string &path, std::string &out, size_t limit);

// Writes `data` to a new private file in the cache (else $TMPDIR, /tmp) and gives its path; "" on failure.
std::string write_temporary(const char *stem, const void *data, size_t size);

// Makes a directory with mode 0700 where it is missing, and its parents as the umask says; true where it
// is a directory of this user's that nobody else may enter.
bool private_directory(const std::string &path);

// A read-only view of a regular file that belongs to this user or to root and that others cannot write.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();
  // False, with a reason in `error`, where the file is missing, empty or not trustworthy.
  bool open(const std::string &path, std::string &error);
  const uint8_t *data() const { return data_; }
  size_t size() const { return size_; }
  int fd() const { return fd_; }

 private:
  uint8_t *data_ = nullptr;
  size_t size_ = 0;
  int fd_ = -1;
};

}  // namespace sx
