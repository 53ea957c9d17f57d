// Files that only this user or root can have written, and files of the cache with their seals.
// runtime_shim/trusted.py and the seals of runtime_shim/cache/store.py are the same rules in Python; docs/runtime.md describes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace sx {

// Opens the regular file `path` for reading, every folder of the path by its own descriptor, so that nothing can be
// exchanged between the check and the use.  The file is not a link, belongs to this user or root, and gives others no
// right to write; every folder belongs to this user, root or the owner of "/", and gives others no right to write
// unless it is sticky.  A link among the folders is followed if it belongs to one of those.
//
// -1 where that does not hold: `why` says what is wrong; it is empty if the file is missing or cannot be opened
// (errno).
int open_trusted(const std::string &path, std::string &why);

// Whether the same holds for the folder `path`, as far as it exists; `why` names the folder that breaks it.
bool trusted_directory(const std::string &path, std::string &why);

// The end of a file of the cache: "SXSEAL01", the size of the content (u64), and BLAKE2b-128 of the file's name, a zero
// byte and the content.
constexpr size_t kSealSize = 32;

// The size of the content of a sealed file called `name`; false if the seal does not fit.
bool sealed_size(const std::string &name, const uint8_t *data, size_t size, size_t &content);

// Reads the content of a file of the cache, at most `limit` bytes, and marks it as used, so that eviction takes others
// first.  False if it is missing, damaged or not trusted; the last is reported once on standard error (SX0912).
bool read_sealed(const std::string &path, std::string &out, size_t limit);

// Adds bytes to such a file that has no seal, made where it is missing, unless it would have more than `limit` then; false
// if they were not added.
bool append_trusted(const std::string &path, const std::string &bytes, size_t limit);

// The size of such a file; 0 if it is missing or not trusted.
size_t trusted_size(const std::string &path);

// A read-only view of a file of the cache, under the same conditions.
class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();
  // False if the file cannot be used, with a reason in `error`; that is empty if it is missing.
  bool open(const std::string &path, std::string &error);
  const uint8_t *data() const { return data_; }
  size_t size() const { return content_; }  // without the seal
  int fd() const { return fd_; }

 private:
  uint8_t *data_ = nullptr;
  size_t size_ = 0, content_ = 0;
  int fd_ = -1;
};

}  // namespace sx
