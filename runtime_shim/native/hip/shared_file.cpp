#include "shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>

namespace sx {
namespace {

constexpr char kName[] = "shared device memory (sassxlate)";
constexpr int kFixed = F_SEAL_SHRINK | F_SEAL_GROW;

}  // namespace

int shared_file(uint64_t size) {
  const int file = memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return file;
  if (ftruncate(file, static_cast<off_t>(size)) == 0 && fcntl(file, F_ADD_SEALS, kFixed | F_SEAL_SEAL) == 0) return file;
  close(file);
  return -1;
}

uint64_t shared_size(int file) {
  char target[128];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), target, sizeof target);
  const std::string start = std::string("/memfd:") + kName;
  if (length < 0 || std::string_view(target, static_cast<size_t>(length)).substr(0, start.size()) != start) return 0;
  const int seals = fcntl(file, F_GET_SEALS), flags = fcntl(file, F_GETFL);
  if (seals < 0 || (seals & kFixed) != kFixed || flags < 0 || (flags & O_ACCMODE) != O_RDWR) return 0;
  struct stat info = {};
  return fstat(file, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace sx
